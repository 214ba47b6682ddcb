//! Server-sent events, as the HTML standard defines them, with the bytes they were sent in.

mod decoder;
mod encode;
mod event;

pub use decoder::{Decoder, Frame, TooLong};
pub use encode::encoded;
pub use event::Event;

/// The line that these bytes start with, without its end, and what follows. The end is LF, CRLF or CR, or missing.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else { return (bytes, &[]) };
    let width = if bytes[end..].starts_with(b"\r\n") { 2 } else { 1 };
    (&bytes[..end], &bytes[end + width..])
}
