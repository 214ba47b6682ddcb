//! Output: the table to standard output, the log to standard error, and on a terminal a last line that shows what is waited for.

use std::{
    io::{self, IsTerminal, Write, stderr, stdout},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::termios::tcgetwinsize;

use super::args::Output;

/// Moves the cursor to the start of its line, and clears the line.
const CLEAR: &str = "\r\x1b[K";

#[derive(Clone)]
pub(super) struct Screen {
    /// The current last line.
    waiting: Arc<Mutex<String>>,
    is_terminal: bool,
    output: Output,
}

impl Screen {
    pub(super) fn new(output: Output) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let is_terminal = stdout().is_terminal() && stderr().is_terminal() && !dumb;
        Self { waiting: Arc::default(), is_terminal, output }
    }

    /// The width of the terminal, if it is one.
    pub(super) fn width(&self) -> Option<usize> {
        let size = self.is_terminal.then(|| tcgetwinsize(stdout()).ok()).flatten();
        size.map(|size| size.ws_col.into()).filter(|width| *width > 0)
    }

    pub(super) fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Prints a text for people.
    pub(super) fn print(&self, text: &str) -> io::Result<()> {
        if self.is_json() {
            return self.above_the_line(|| stderr().write_all(text.as_bytes()));
        }
        self.print_result(text)
    }

    /// Prints a state. A closed pipe, as in `skep run | head`, is no error.
    pub(super) fn print_result(&self, text: &str) -> io::Result<()> {
        match self.above_the_line(|| stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush())) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            printed => printed,
        }
    }

    /// Shows what is waited for, on a terminal only.
    pub(super) fn wait_for(&self, text: &str) {
        let width = self.width().unwrap_or(0);
        if width == 0 {
            return;
        }
        let mut waiting = self.waiting();
        let line: String = text.chars().take(width - 1).collect();
        if *waiting != line {
            write!(stderr(), "{CLEAR}{line}").ok();
            *waiting = line;
        }
    }

    fn above_the_line<T>(&self, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return write();
        }
        write!(stderr(), "{CLEAR}").ok();
        let written = write();
        write!(stderr(), "{waiting}").ok();
        written
    }

    fn waiting(&self) -> MutexGuard<'_, String> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Log lines are printed above the last line.
impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.above_the_line(|| stderr().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
    }
}
