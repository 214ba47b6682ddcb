//! Strings, decoded only when they are escaped.

use std::borrow::Cow;

use super::{Kind, Raw};
use crate::Fault;

/// A JSON string as it was received. It has no lone surrogates, so that every reader decodes it alike.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    raw: Raw<'a>,
    escaped: bool,
}

/// How a key compares with one that we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    Exact,
    /// The same for a server that ignores case.
    Lookalike,
    Different,
}

impl<'a> Text<'a> {
    pub(crate) fn new(raw: Raw<'a>) -> Result<Self, Fault> {
        if raw.kind() != Kind::Text {
            return Err(Fault::NotJson { at: raw.range().start, expected: "a string" });
        }
        Self::scanned(raw, memchr::memchr(b'\\', raw.as_str().as_bytes()).is_some())
    }

    /// A string of which it is known already whether it has escapes.
    pub(crate) fn scanned(raw: Raw<'a>, escaped: bool) -> Result<Self, Fault> {
        let text = Self { raw, escaped };
        if escaped && char::decode_utf16(text.units()).any(|unit| unit.is_err()) {
            return Err(Fault::LoneSurrogate { at: raw.range().start });
        }
        Ok(text)
    }

    /// The string as it was spelled, with its quotes.
    pub fn raw(&self) -> Raw<'a> {
        self.raw
    }

    /// The decoded string.
    pub fn decoded(&self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(self.chars().collect()) } else { Cow::Borrowed(self.inside()) }
    }

    fn inside(&self) -> &'a str {
        let text = self.raw.as_str();
        &text[1..text.len() - 1]
    }

    fn chars(&self) -> impl Iterator<Item = char> {
        char::decode_utf16(self.units()).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// The string in UTF-16, which is what the escapes of JSON are.
    fn units(&self) -> impl Iterator<Item = u16> {
        let mut rest = self.inside().chars();
        let mut second = None;
        std::iter::from_fn(move || {
            if let Some(unit) = second.take() {
                return Some(unit);
            }
            let character = match rest.next()? {
                '\\' => match rest.next()? {
                    'u' => {
                        let digits = rest.as_str().get(..4)?;
                        rest = rest.as_str()[4..].chars();
                        return u16::from_str_radix(digits, 16).ok();
                    }
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    same => same,
                },
                plain => plain,
            };
            let mut units = [0; 2];
            if let [_, low] = character.encode_utf16(&mut units) {
                second = Some(*low);
            }
            Some(units[0])
        })
    }

    /// This as a key.
    pub(crate) fn key(self) -> Key<'a> {
        let inside = self.inside();
        if !self.escaped && inside.is_ascii() { Key::Plain(inside) } else { Key::Odd(self) }
    }
}

/// A key, to be compared with those that we know, which are ASCII.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    /// ASCII without escapes, as nearly all are.
    Plain(&'a str),
    Odd(Text<'a>),
}

impl Key<'_> {
    /// How this compares with a key that we know.
    ///
    /// Go's encoding/json takes `"Name"` for `name`, and `"tas\u017fId"` for `taskId`, because it folds the long s
    /// and the Kelvin sign too. Java folds the dotless i.
    #[inline]
    pub(crate) fn spelling(&self, known: &str) -> Spelling {
        let same = match self {
            Self::Plain(key) if key.len() != known.len() => false,
            Self::Plain(key) if *key == known => return Spelling::Exact,
            Self::Plain(key) => key.eq_ignore_ascii_case(known),
            Self::Odd(key) if key.chars().eq(known.chars()) => return Spelling::Exact,
            Self::Odd(key) => key.chars().map(folded).eq(known.chars().map(folded)),
        };
        if same { Spelling::Lookalike } else { Spelling::Different }
    }
}

fn folded(character: char) -> char {
    match character {
        'ſ' => 's',
        '\u{212A}' => 'k',
        'ı' | 'İ' => 'i',
        other => other.to_ascii_lowercase(),
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.chars().eq(other.chars())
    }
}

impl Eq for Text<'_> {}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        if self.escaped { self.chars().eq(other.chars()) } else { self.inside() == other }
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}
