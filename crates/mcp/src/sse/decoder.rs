//! From chunks to events.

use bytes::{Bytes, BytesMut};

use super::Event;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Splits a stream, which arrives in chunks of any size, into events. It never holds more than one event of the allowed
/// size and what was fed last.
///
/// The raw bytes of all frames, and then of [`rest`](Self::rest), are the bytes that were fed: none are lost, and none
/// are added.
pub struct Decoder {
    buffer: BytesMut,
    limit: usize,
    /// Where the first line of the frame starts.
    first: usize,
    /// Where the line starts that is not complete yet.
    line: usize,
    /// How far that line was searched for its end.
    searched: usize,
    /// Whether a CR ended the last line: an LF that follows belongs to it.
    after_cr: bool,
    /// Whether there was a line that is not yet part of a frame.
    within: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A byte order mark may come.
    Beginning,
    Running,
    /// An event was too long, and it is unknown where the next one starts.
    Failed,
}

/// What a stream consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Lines up to an empty one.
    Event(Event),
    /// A comment or an empty line between events. It comes at once, since comments keep connections alive.
    Comment(Bytes),
}

/// An event is larger than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than {limit} bytes")]
pub struct TooLong {
    /// The bound.
    pub limit: usize,
}

impl Frame {
    /// The bytes that it was sent in.
    pub fn raw(&self) -> &Bytes {
        match self {
            Self::Event(event) => event.raw(),
            Self::Comment(raw) => raw,
        }
    }
}

impl Decoder {
    /// A decoder of events of up to this many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            limit,
            first: 0,
            line: 0,
            searched: 0,
            after_cr: false,
            within: false,
            state: State::Beginning,
        }
    }

    /// Takes the next chunk. All frames are to be taken before the next one.
    pub fn feed(&mut self, chunk: &[u8]) {
        if self.state != State::Failed {
            self.buffer.extend_from_slice(chunk);
        }
    }

    /// How many bytes wait for the rest of their frame.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// The next frame, if one is complete.
    ///
    /// A frame that ends in CR is returned before it is known whether LF follows: to wait would delay the last event of a
    /// stream until it closes. That LF is then the first byte of the next frame.
    pub fn frame(&mut self) -> Result<Option<Frame>, TooLong> {
        if self.state == State::Failed || !self.has_started() {
            return self.incomplete();
        }
        loop {
            if self.after_cr {
                let Some(byte) = self.buffer.get(self.line) else { return self.incomplete() };
                self.after_cr = false;
                self.line += usize::from(*byte == b'\n');
                self.searched = self.line;
            }
            let Some(length) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return self.incomplete();
            };
            let start = self.line;
            let end = self.searched + length;
            self.after_cr = self.buffer[end] == b'\r';
            self.line = end + 1;
            if self.after_cr && self.buffer.get(self.line) == Some(&b'\n') {
                self.after_cr = false;
                self.line += 1;
            }
            self.searched = self.line;
            let empty = start == end;
            let between = !self.within && (empty || self.buffer[start] == b':');
            if !self.within {
                self.first = start;
                self.within = true;
            }
            if empty || between {
                let raw = self.split()?;
                return Ok(Some(if between {
                    Frame::Comment(raw)
                } else {
                    Frame::Event(Event::parse(raw, self.first))
                }));
            }
        }
    }

    /// What is left when the stream ends. It is no event: those end with an empty line.
    pub fn rest(self) -> Bytes {
        self.buffer.freeze()
    }

    /// Skips a byte order mark, and returns whether there is certainly none more to skip.
    fn has_started(&mut self) -> bool {
        if self.state == State::Running {
            return true;
        }
        if self.buffer.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.buffer) {
            return false;
        }
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.line = BYTE_ORDER_MARK.len();
            self.searched = self.line;
        }
        self.state = State::Running;
        true
    }

    fn incomplete(&mut self) -> Result<Option<Frame>, TooLong> {
        if self.state == State::Failed || self.buffer.len() > self.limit {
            return Err(self.too_long());
        }
        Ok(None)
    }

    fn split(&mut self) -> Result<Bytes, TooLong> {
        let raw = self.buffer.split_to(self.line).freeze();
        self.line = 0;
        self.searched = 0;
        self.within = false;
        if raw.len() > self.limit { Err(self.too_long()) } else { Ok(raw) }
    }

    fn too_long(&mut self) -> TooLong {
        self.state = State::Failed;
        self.buffer = BytesMut::new();
        TooLong { limit: self.limit }
    }
}
