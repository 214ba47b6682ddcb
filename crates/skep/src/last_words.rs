//! Why a process of a pod ended, for the kubelet: it reports the text in the status of the pod, and the operator in that of the object.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
};

/// The file that the kubelet reads, unless the pod names another one.
const FILE: &str = "/dev/termination-log";
/// The kubelet reads no more than twice as much.
const LONGEST: usize = 2 << 10;

/// Leaves the last error of this process for the kubelet, where there is one. It is what the process prints, which has no secrets.
pub(crate) fn leave(error: &anyhow::Error) {
    // Without the file, this is no container of a pod; then there is no reader either.
    write(Path::new(FILE), &format!("{error:#}")).ok();
}

/// Writes the end of the text, of which the last line is shown first. The file is not created: elsewhere it would be in the way.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let start = text.ceil_char_boundary(text.len().saturating_sub(LONGEST));
    let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
    file.write_all(&text.as_bytes()[start..])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_end_of_an_error_is_left_where_the_kubelet_reads_it_and_nowhere_else() {
        let folder = std::env::temp_dir().join(format!("skep-last-words-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("termination-log");
        assert!(write(&file, "no such file").is_err() && !file.exists());
        fs::write(&file, "an older and longer message").unwrap();
        write(&file, "port: is taken").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "port: is taken");
        // Cut between letters of several bytes.
        write(&file, &format!("{}\nthe last line", "ä".repeat(LONGEST))).unwrap();
        let left = fs::read_to_string(&file).unwrap();
        assert!(left.len() <= LONGEST && left.ends_with("ä\nthe last line"), "{left}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
