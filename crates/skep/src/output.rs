//! Printing to terminals and pipes.

use std::io::{self, Write};

/// Prints the text. A closed pipe, as in `skep crds | head`, is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
