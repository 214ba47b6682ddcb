//! The scanner: one pass over the bytes, no recursion into what was received, no allocation.

use super::{Raw, Text};
use crate::Fault;

/// More than this is never allowed, whatever bound is given: it is as deep as serde_json reads, so that a reader that takes a
/// value from here can read it.
const DEEPEST: u32 = 127;

pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Where the text starts in the message.
    base: usize,
    /// How many objects and arrays are open around this place.
    level: u32,
    depth: u32,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8], depth: u32) -> Result<Self, Fault> {
        if bytes.starts_with(b"\xEF\xBB\xBF") {
            return Err(Fault::ByteOrderMark);
        }
        let text = std::str::from_utf8(bytes).map_err(|error| Fault::NotUtf8 { at: error.valid_up_to() })?;
        Ok(Self { text, at: 0, base: 0, level: 0, depth: depth.min(DEEPEST) })
    }

    /// Scans a value that was scanned before.
    pub(crate) fn within(raw: Raw<'a>) -> Self {
        Self { text: raw.as_str(), at: 0, base: raw.range().start, level: 0, depth: DEEPEST }
    }

    /// The next byte that is not white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Walks an object. The closure is called with the scanner in front of each value, which it must take.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Result<(), Fault>,
    ) -> Result<Raw<'a>, Fault> {
        self.walk(b'{', "an object", b'}', |scanner| {
            if scanner.peek() != Some(b'"') {
                return Err(scanner.fault("a key"));
            }
            let start = scanner.at;
            let escaped = scanner.string()?;
            let key = Text::scanned(scanner.since(start), escaped)?;
            scanner.colon()?;
            member(scanner, key)
        })
    }

    /// Walks an array. The closure is called with the scanner in front of each item, which it must take.
    pub(crate) fn array(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<Raw<'a>, Fault> {
        self.walk(b'[', "an array", b']', item)
    }

    fn walk(
        &mut self,
        open: u8,
        what: &'static str,
        close: u8,
        mut element: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<Raw<'a>, Fault> {
        if self.peek() != Some(open) {
            return Err(self.fault(what));
        }
        let start = self.at;
        self.open(0)?;
        self.level += 1;
        if self.peek() != Some(close) {
            loop {
                element(self)?;
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(byte) if byte == close => break,
                    _ => return Err(self.fault("a comma or the end of what was opened")),
                }
            }
        }
        self.at += 1;
        self.level -= 1;
        Ok(self.since(start))
    }

    /// Takes one value of any kind, checking that it is JSON.
    ///
    /// What is open is kept as one bit each, so that no input can make the stack grow.
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, Fault> {
        const OBJECT: u128 = 1;
        let mut open: u128 = 0;
        let mut nesting = 0;
        self.peek();
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{') => {
                    self.open(nesting)?;
                    nesting += 1;
                    open = open << 1 | OBJECT;
                    if self.peek() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.open(nesting)?;
                    nesting += 1;
                    open <<= 1;
                    if self.peek() != Some(b']') {
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return Err(self.fault("a value")),
            }
            loop {
                if nesting == 0 {
                    return Ok(self.since(start));
                }
                let in_object = open & OBJECT == OBJECT;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if in_object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(b'}') if in_object => {}
                    Some(b']') if !in_object => {}
                    _ => return Err(self.fault("a comma or the end of what was opened")),
                }
                self.at += 1;
                nesting -= 1;
                open >>= 1;
            }
        }
    }

    /// Nothing but white space may follow.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("the end of the message")),
        }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn since(&self, start: usize) -> Raw<'a> {
        Raw::new(&self.text[start..self.at], self.base + start)
    }

    fn fault(&self, expected: &'static str) -> Fault {
        Fault::NotJson { at: self.base + self.at, expected }
    }

    fn open(&mut self, nesting: u32) -> Result<(), Fault> {
        if self.level + nesting >= self.depth {
            return Err(Fault::TooDeep { depth: self.depth });
        }
        self.at += 1;
        Ok(())
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("a key"));
        }
        self.string()?;
        self.colon()
    }

    fn colon(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b':') {
            return Err(self.fault("a colon"));
        }
        self.at += 1;
        Ok(())
    }

    /// Takes a string, and returns whether it has escapes.
    fn string(&mut self) -> Result<bool, Fault> {
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at += plain(&self.text.as_bytes()[self.at..]);
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.escape()?;
                    escaped = true;
                }
                Some(_) => return Err(self.fault("no control character in a string")),
                None => return Err(self.fault("the end of a string")),
            }
        }
        self.at += 1;
        Ok(escaped)
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let bytes = &self.text.as_bytes()[self.at..];
        self.at += match bytes.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') if bytes.get(2..6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) => 6,
            _ => return Err(self.fault("an escape of JSON")),
        };
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let bytes = &self.text.as_bytes()[self.at..];
        match bytes.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => Err(self.fault("a digit")),
            count => {
                self.at += count;
                Ok(())
            }
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), Fault> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.fault("a value"));
        }
        self.at += word.len();
        Ok(())
    }
}

/// How many bytes there are before a quote, a backslash or a control character.
///
/// Eight at a time: most of a large message is the inside of strings. A byte of the mask may be wrong only above one
/// that is right, because of the borrow, so the lowest is always right.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let special = below(word, 0x20) | quote | backslash;
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().position(special).unwrap_or(rest.len())
}
