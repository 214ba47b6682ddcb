//! One event.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::{OF_UNICODE, encode, has_other_line_ends, is_other_line_end, line};

/// An event, and the bytes it was sent in.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    raw: Bytes,
    /// Where its lines start.
    first: usize,
    kind: Option<Bytes>,
    data: Option<Bytes>,
    id: Option<Bytes>,
    retry: Option<u64>,
}

impl Event {
    /// The event of these bytes, the lines of which start at this place: a byte order mark may be before them, or the LF
    /// of a CRLF.
    pub(super) fn parse(raw: Bytes, first: usize) -> Self {
        let mut event = Self { raw: raw.clone(), first, kind: None, data: None, id: None, retry: None };
        let mut joined = BytesMut::new();
        for (name, value) in lines(&raw[first..]).filter_map(field) {
            match name {
                b"data" => {
                    // One line of data is the rule, and needs no copy.
                    event.data = Some(match event.data.take() {
                        None => raw.slice_ref(value),
                        Some(first) => {
                            if joined.is_empty() {
                                joined.extend_from_slice(&first);
                            }
                            joined.extend_from_slice(b"\n");
                            joined.extend_from_slice(value);
                            Bytes::new()
                        }
                    });
                }
                b"event" => event.kind = Some(raw.slice_ref(value)),
                b"id" if !value.contains(&0) => event.id = Some(raw.slice_ref(value)),
                b"retry" => event.retry = milliseconds(value).or(event.retry),
                _ => {}
            }
        }
        if !joined.is_empty() {
            event.data = Some(joined.freeze());
        }
        event
    }

    /// The bytes it was sent in, with the line ends and comments it had.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The type, if it has one. Without, it is `message`.
    pub fn kind(&self) -> Option<&[u8]> {
        self.kind.as_deref()
    }

    /// The data, its lines joined by LF. A browser ignores an event without data, except for its id; servers of
    /// 2025-11-25 send an id in advance by one with empty data.
    pub fn data(&self) -> Option<&Bytes> {
        self.data.as_ref()
    }

    /// The id that a client would resume from.
    pub fn id(&self) -> Option<&[u8]> {
        self.id.as_deref()
    }

    /// How long to wait before resuming, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// The same event without anything that a client could take for another line end: such comments and fields are left out, and in
    /// data, which is JSON, such characters are escaped.
    pub fn plain(&self) -> Self {
        let mut sent = BytesMut::with_capacity(self.raw.len());
        for (name, value) in [("event", self.kind()), ("id", self.id())] {
            if let Some(value) = value.filter(|value| !has_other_line_ends(value)) {
                sent.extend_from_slice(format!("{name}: ").as_bytes());
                sent.extend_from_slice(value);
                sent.extend_from_slice(b"\n");
            }
        }
        if let Some(retry) = self.retry {
            sent.extend_from_slice(format!("retry: {retry}\n").as_bytes());
        }
        if let Some(data) = &self.data {
            encode::data(&mut sent, &escaped(data));
        }
        sent.extend_from_slice(b"\n");
        Self::parse(sent.freeze(), 0)
    }

    /// The same event with other data. All other lines stay what they are; their ends become LF, because a CR that loses
    /// the line after it might get an LF as neighbour, and end one line instead of two.
    pub fn with_data(&self, data: &[u8]) -> Bytes {
        let mut sent = BytesMut::with_capacity(self.raw.len() + data.len() + 16);
        let (mut before, mut after) = (BytesMut::new(), BytesMut::new());
        let mut place = &mut before;
        for line in lines(&self.raw[self.first..]).filter(|line| !line.is_empty()) {
            if field(line).is_some_and(|(name, _)| name == b"data") {
                place = &mut after;
                continue;
            }
            place.extend_from_slice(line);
            place.extend_from_slice(b"\n");
        }
        sent.extend_from_slice(&self.raw[..self.first]);
        sent.extend_from_slice(&before);
        encode::data(&mut sent, data);
        sent.extend_from_slice(&after);
        sent.extend_from_slice(b"\n");
        sent.freeze()
    }
}

/// Without its content, which must not be logged.
impl fmt::Debug for Event {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Event({} bytes)", self.raw.len())
    }
}

fn escaped(data: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some(byte) = rest.first() {
        if let Some((end, written)) = OF_UNICODE.iter().find(|(end, _)| rest.starts_with(end)) {
            escaped.extend_from_slice(written);
            rest = &rest[end.len()..];
            continue;
        }
        // JSON cannot have the others as they are.
        escaped.push(if is_other_line_end(byte) { b' ' } else { *byte });
        rest = &rest[1..];
    }
    escaped
}

fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        (!text.is_empty()).then(|| {
            let (first, rest) = line(text);
            text = rest;
            first
        })
    })
}

/// The name and value of a line, unless it is empty or a comment. One space after the colon is no part of the value.
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = match memchr::memchr(b':', line) {
        Some(0) => return None,
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None => (line, &line[line.len()..]),
    };
    (!line.is_empty()).then(|| (name, value.strip_prefix(b" ").unwrap_or(value)))
}

fn milliseconds(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}
