//! Replacing values changes them, and nothing else.

use proptest::prelude::*;
use similar_asserts::assert_eq;
use skep_mcp::{Edits, Envelope, Json, SpliceError};

use crate::arbitrary;

const CALL: &[u8] = br#"{"params":{ "_meta":{"progressToken":1e0},"name" : "a\/b", "x":1.0 },"id":12,"method":"tools/call","jsonrpc":"2.0"}"#;

#[test]
fn values_are_replaced_in_place() {
    let envelope = Envelope::parse(CALL).unwrap();
    let changed = Edits::of(CALL)
        .replace(envelope.id().unwrap().raw(), Json::Text("s|\"12\""))
        .replace(envelope.target().unwrap().raw, Json::Text("c\u{1f41d}\n"))
        .replace(envelope.meta().progress_token().unwrap(), Json::Number(7))
        .bytes()
        .unwrap();
    assert_eq!(
        String::from_utf8(changed).unwrap(),
        r#"{"params":{ "_meta":{"progressToken":7},"name" : "c🐝\n", "x":1.0 },"id":"s|\"12\"","method":"tools/call","jsonrpc":"2.0"}"#
    );
}

#[test]
fn an_id_can_be_put_back_as_it_was_spelled() {
    let request = Envelope::parse(br#"{"jsonrpc":"2.0","id":"\u0041","method":"ping"}"#).unwrap();
    let response = br#"{"jsonrpc":"2.0","result":{},"id":"s|1"}"#;
    let answered = Envelope::parse(response).unwrap().id().unwrap();
    let sent = Edits::of(response).replace(answered.raw(), Json::Raw(request.id().unwrap().raw())).bytes();
    assert_eq!(sent.unwrap(), br#"{"jsonrpc":"2.0","result":{},"id":"\u0041"}"#);
}

#[test]
fn a_value_of_another_message_cannot_be_replaced() {
    let other = br#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#;
    let id = Envelope::parse(other).unwrap().id().unwrap().raw();
    assert_eq!(Edits::of(CALL).replace(id, Json::Number(1)).bytes(), Err(SpliceError::Foreign));
    assert_eq!(Edits::of(b"{}").replace(id, Json::Number(1)).bytes(), Err(SpliceError::Foreign));
}

#[test]
fn overlapping_values_cannot_be_replaced() {
    let envelope = Envelope::parse(CALL).unwrap();
    let (params, name) = (envelope.params().unwrap(), envelope.target().unwrap().raw);
    for (one, other) in [(params, name), (name, params), (name, name)] {
        let edits = Edits::of(CALL).replace(one, Json::Number(1)).replace(other, Json::Number(2));
        assert_eq!(edits.bytes(), Err(SpliceError::Overlap));
    }
}

proptest! {
    #[test]
    fn replacing_values_by_themselves_changes_no_byte(message in arbitrary::call()) {
        let message = message.as_bytes();
        let envelope = Envelope::parse(message).unwrap();
        let mut edits = Edits::of(message);
        for raw in [
            envelope.id().unwrap().raw(),
            envelope.target().unwrap().raw,
            envelope.meta().progress_token().unwrap(),
            envelope.arguments().unwrap(),
        ] {
            edits = edits.replace(raw, Json::Raw(raw));
        }
        prop_assert_eq!(edits.bytes().unwrap(), message);
    }

    #[test]
    fn replacing_a_name_changes_only_that_name(message in arbitrary::call(), name in ".{0,12}") {
        let message = message.as_bytes();
        let raw = Envelope::parse(message).unwrap().target().unwrap().raw;
        let changed = Edits::of(message).replace(raw, Json::Text(&name)).bytes().unwrap();
        let envelope = Envelope::parse(&changed).unwrap();
        prop_assert_eq!(envelope.target().unwrap().name(), name);
        let range = envelope.target().unwrap().raw.range();
        prop_assert_eq!(&changed[..range.start], &message[..raw.range().start]);
        prop_assert_eq!(&changed[range.end..], &message[raw.range().end..]);
    }
}
