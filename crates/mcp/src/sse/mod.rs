//! Server-sent events, as the HTML standard defines them, with the bytes they were sent in.

mod decoder;
mod encode;
mod event;

pub use decoder::{Decoder, Frame, TooLong};
pub use encode::encoded;
pub use event::Event;

/// Whether a client could end a line within these bytes where the standard does not, as many a `splitlines` does: at a vertical
/// tab, a form feed, a separator of information, or a line end of Unicode.
pub fn has_other_line_ends(bytes: &[u8]) -> bool {
    bytes.iter().any(is_other_line_end)
        || OF_UNICODE.iter().any(|(end, _)| memchr::memmem::find(bytes, end).is_some())
}

/// Whether this is one of them that is a control character.
fn is_other_line_end(byte: &u8) -> bool {
    matches!(byte, 0x0b | 0x0c | 0x1c..=0x1e)
}

/// The line ends of Unicode, as JSON can also write them.
const OF_UNICODE: [(&[u8], &[u8]); 3] = [
    ("\u{85}".as_bytes(), b"\\u0085"),
    ("\u{2028}".as_bytes(), b"\\u2028"),
    ("\u{2029}".as_bytes(), b"\\u2029"),
];

/// The line that these bytes start with, without its end, and what follows. The end is LF, CRLF or CR, or missing.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else { return (bytes, &[]) };
    let width = if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
    (&bytes[..end], &bytes[end + width..])
}
