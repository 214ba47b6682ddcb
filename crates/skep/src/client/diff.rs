//! The difference of two texts, as `diff -u` prints it, for one changed place.

use std::path::Path;

/// How many equal lines are shown around the change.
const CONTEXT: usize = 3;

/// The lines that differ, with some around them. Nothing if the texts are equal.
pub(super) fn diff(file: &Path, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (before, after): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let rest = (before.len().min(after.len())) - same;
    let tail = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take(rest)
        .take_while(|(one, other)| one == other)
        .count();
    let first = same.saturating_sub(CONTEXT);
    let mut text = format!("--- {0}\n+++ {0}\n", file.display());
    let count = |lines: &[&str]| lines.len() - tail + tail.min(CONTEXT) - first;
    text.push_str(&format!("@@ -{0},{1} +{0},{2} @@\n", first + 1, count(&before), count(&after)));
    let mut add = |mark: char, lines: &[&str]| {
        for line in lines {
            text.push_str(&format!("{mark}{line}\n"));
        }
    };
    add(' ', &before[first..same]);
    add('-', &before[same..before.len() - tail]);
    add('+', &after[same..after.len() - tail]);
    add(' ', &after[after.len() - tail..after.len() - tail + tail.min(CONTEXT)]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changed_lines_are_shown_with_some_around_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let expected = "--- f\n+++ f\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+x\n+y\n 6\n 7\n 8\n";
        assert_eq!(diff(Path::new("f"), old, &old.replace("5\n", "x\ny\n")), expected);
        assert_eq!(diff(Path::new("f"), old, old), "");
        assert_eq!(diff(Path::new("f"), "", "a\n"), "--- f\n+++ f\n@@ -1,0 +1,1 @@\n+a\n");
        // A repeated line belongs to one of both.
        assert!(diff(Path::new("f"), "a\na\n", "a\na\na\n").contains("\n+a\n"));
    }
}
