//! The value of `Mcp-Name`.

use proptest::prelude::*;
use similar_asserts::assert_eq;
use skep_mcp::header::{decoded_name, encoded_name};

#[test]
fn names_are_encoded_as_the_specification_shows() {
    for (name, value) in [
        ("us-west1", "us-west1"),
        ("a b", "a b"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(encoded_name(name), value);
    }
}

#[test]
fn values_with_bytes_that_no_header_may_have_are_malformed() {
    for value in [&b"a\x00"[..], b"a\r\nb: c", b"\x7f", b"caf\xc3\xa9", b"\xff"] {
        assert_eq!(decoded_name(value), None);
    }
}

proptest! {
    #[test]
    fn a_name_is_what_was_encoded(name in "\\PC{0,20}|[ -~\t\n]{0,20}|(=\\?base64\\?)?[a-z]{0,5}(\\?=)?") {
        let value = encoded_name(&name);
        prop_assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        prop_assert_eq!(value.trim_ascii(), value.as_ref());
        prop_assert_eq!(decoded_name(value.as_bytes()).unwrap(), name.as_str());
    }
}
