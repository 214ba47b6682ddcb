//! From messages to events.

use bytes::{BufMut, Bytes, BytesMut};

use super::line;

/// An event of this type: `message` for messages, `endpoint` for the first event of HTTP+SSE.
pub fn encoded(kind: &'static str, payload: &[u8]) -> Bytes {
    let mut sent = BytesMut::with_capacity(kind.len() + payload.len() + 32);
    sent.put_slice(b"event: ");
    sent.put_slice(kind.as_bytes());
    sent.put_slice(b"\n");
    data(&mut sent, payload);
    sent.put_slice(b"\n");
    sent.freeze()
}

/// Lines of data. A message may have line ends between its values, and each needs its own line.
pub(super) fn data(sent: &mut BytesMut, payload: &[u8]) {
    let mut rest = payload;
    loop {
        let (first, after) = line(rest);
        sent.put_slice(b"data: ");
        sent.put_slice(first);
        sent.put_slice(b"\n");
        if first.len() == rest.len() {
            return;
        }
        rest = after;
    }
}
