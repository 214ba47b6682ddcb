//! The order of keys in a mapping that is no struct: by letters, with numbers in them by their size.

use std::cmp::Ordering;

/// Compares two keys: `a2` comes before `a10`.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else { return a.len().cmp(&b.len()) };
    let (x, y) = (a[at], b[at]);
    let after_digit = at > 0 && a[at - 1].is_ascii_digit();
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => x.cmp(&y),
        // A number that goes on is greater than one after which a letter follows; elsewhere, letters come last.
        (true, false) => {
            if after_digit {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        (false, true) => {
            if after_digit {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        (false, false) => {
            // A zero within a number counts as a digit, one at its beginning does not.
            let within = (x == '0' || y == '0')
                && a[..at].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
            let (a, b) = (number(&a[at..], within), number(&b[at..], within));
            a.cmp(&b).then(x.cmp(&y))
        }
    }
}

/// The number that the characters begin with, and how many digits it has.
fn number(chars: &[char], within: bool) -> (i64, usize) {
    let digits = chars.iter().take_while(|c| c.is_ascii_digit());
    let (mut number, mut count) = (i64::from(within), 0);
    for digit in digits {
        number =
            number.wrapping_mul(10).wrapping_add(i64::from(u32::from(*digit)) - i64::from(u32::from('0')));
        count += 1;
    }
    (number, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_their_size() {
        let sorted = [
            "", "-a", "1", "01x", "2", "10", "A1", "a", "a-b", "a_b", "a1", "a1b", "a01", "a2", "a10",
            "a10b", "aB", "ab", "b", "x20", "x100", "x1000",
        ];
        let mut keys = sorted;
        keys.reverse();
        keys.sort_by(|a, b| compare(a, b));
        assert_eq!(keys, sorted);
    }
}
