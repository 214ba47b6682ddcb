//! Ids of sessions.

use similar_asserts::assert_eq;
use skep_mcp::{NotASessionId, SESSION_ID_BYTES, SessionId};

#[test]
fn an_id_is_visible_ascii_of_bounded_length() {
    let longest = "a".repeat(SESSION_ID_BYTES);
    for id in ["!", "~", "1f3a4b5c-6d7e-8f9a-0b1c-2d3e4f5a6b7c", "eyJhbGciOiJIUzI1NiJ9.e30.x_-", &longest] {
        assert_eq!(SessionId::parse(id.as_bytes()).unwrap().as_str(), id);
    }
    let too_long = "a".repeat(SESSION_ID_BYTES + 1);
    for id in [&b""[..], b" ", b"a b", b"a\t", b"a\x7f", b"a\r\n", b"\xc3\xa9", b"\xff", too_long.as_bytes()]
    {
        assert_eq!(SessionId::parse(id), Err(NotASessionId));
    }
}

/// It would become a part of a header.
#[test]
fn a_byte_that_is_not_visible_is_found_wherever_it_is() {
    for at in 0..SESSION_ID_BYTES {
        for byte in [b'\n', b' ', 0x7f, 0xc3] {
            let mut id = vec![b'a'; SESSION_ID_BYTES];
            id[at] = byte;
            assert_eq!(SessionId::parse(&id), Err(NotASessionId), "{byte:#x} at {at}");
        }
    }
}

#[test]
fn a_new_id_is_a_unique_uuid() {
    let (one, other) = (SessionId::random(), SessionId::random());
    assert_ne!(one, other);
    assert_eq!(SessionId::parse(one.as_str().as_bytes()), Ok(one.clone()));
    let lengths: Vec<_> = one.as_str().split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert_eq!(&one.as_str()[14..15], "4");
}

#[test]
fn debug_output_does_not_contain_the_whole_id() {
    let shown = |id: &str| format!("{:?}", SessionId::parse(id.as_bytes()).unwrap());
    assert_eq!(shown("1f3a4b5c-6d7e-8f9a-0b1c-2d3e4f5a6b7c"), "SessionId(1f3a4b5c…)");
    assert_eq!(shown("short"), "SessionId(…)");
}
