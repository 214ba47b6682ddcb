//! Messages on standard input and output: one a line.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use crate::Envelope;

/// Splits the output of a server, which arrives in chunks of any size, into lines.
///
/// The content of a line is not changed. A line that is too long is reported once and skipped, so that one bad message does
/// not end the server: it never holds more than one line of the allowed size and what was fed last.
pub struct Lines {
    buffer: BytesMut,
    limit: usize,
    searched: usize,
    skipping: bool,
}

/// A line of a server's output that is not blank.
#[derive(Clone, PartialEq, Eq)]
pub enum Line {
    /// It starts as an object does, and is a message if it can be parsed as one.
    Message(Bytes),
    /// It is not a message, but for example a log line that belongs on standard error. It is to be logged and skipped.
    Noise(Bytes),
    /// It is longer than the limit.
    TooLong,
}

impl Lines {
    /// Lines of up to this many bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), limit, searched: 0, skipping: false }
    }

    /// Takes the next chunk. All lines are to be taken before the next one.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next line, if one is complete.
    pub fn line(&mut self) -> Option<Line> {
        loop {
            let Some(length) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return self.incomplete();
            };
            let text = self.buffer.split_to(self.searched + length).freeze();
            self.buffer.advance(1);
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if text.len() > self.limit {
                return Some(Line::TooLong);
            }
            if let Some(line) = line(text) {
                return Some(line);
            }
        }
    }

    /// What is left when the output ends: a last line that has no end.
    pub fn rest(self) -> Option<Line> {
        if self.skipping { None } else { line(self.buffer.freeze()) }
    }

    fn incomplete(&mut self) -> Option<Line> {
        if self.skipping || self.buffer.len() > self.limit {
            self.buffer = BytesMut::new();
            self.searched = 0;
            return (!std::mem::replace(&mut self.skipping, true)).then_some(Line::TooLong);
        }
        None
    }
}

/// The line with this text; CR before LF is part of the line's end.
fn line(mut text: Bytes) -> Option<Line> {
    if text.ends_with(b"\r") {
        text.truncate(text.len() - 1);
    }
    match text.trim_ascii_start().first() {
        None => None,
        Some(b'{') => Some(Line::Message(text)),
        Some(_) => Some(Line::Noise(text)),
    }
}

/// Without its content, which must not be logged.
impl fmt::Debug for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(text) => write!(formatter, "Message({} bytes)", text.len()),
            Self::Noise(text) => write!(formatter, "Noise({} bytes)", text.len()),
            Self::TooLong => formatter.write_str("TooLong"),
        }
    }
}

/// The message as one line, for the input of a server.
pub fn framed(message: &Envelope<'_>) -> Vec<u8> {
    line_of(message.bytes().to_vec())
}

/// A message as one line that was parsed, and of which single values were replaced since.
///
/// In JSON, line ends are only between values, where a space is equivalent: in strings they are escaped.
pub fn line_of(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message.push(b'\n');
    message
}
