//! Messages that were changed as values.

use proptest::prelude::*;
use serde_json::{Value, json};
use skep_mcp::{Envelope, Fault, rewritten};

use crate::arbitrary;

fn changed(message: &str, change: impl FnOnce(&mut Value)) -> String {
    let old = Envelope::parse(message.as_bytes()).unwrap().unambiguous_message().unwrap();
    let mut new = old.clone();
    change(&mut new);
    let sent = rewritten(message.as_bytes(), &old, &new).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), new);
    String::from_utf8(sent).unwrap()
}

const MESSAGE: &str = r#"{"id" : "\u0062", "method":"tools/call","jsonrpc":"2.0",
    "params":{"name":"\u0061","arguments":{"big":12345678901234567890123,"list":[1.50, {"x":1.0}],"old":1}}}"#;

#[test]
fn unchanged_values_stay_as_they_were_spelled() {
    let sent = changed(MESSAGE, |message| {
        let arguments = &mut message["params"]["arguments"];
        arguments["list"][1]["x"] = json!(2);
        arguments.as_object_mut().unwrap().remove("old");
        arguments["a\"b"] = json!({"new": true});
    });
    let expected = r#"{"id":"\u0062","method":"tools/call","jsonrpc":"2.0","params":{"name":"\u0061","arguments":{"big":12345678901234567890123,"list":[1.50,{"x":2}],"a\"b":{"new":true}}}}"#;
    assert_eq!(sent, expected);
}

#[test]
fn lists_grow_and_shrink_and_types_change() {
    for list in [json!([]), json!([1.5]), json!([1.5, {"x": 1.0}, "more", null]), json!("none"), json!({})] {
        changed(MESSAGE, |message| message["params"]["arguments"]["list"] = list);
    }
}

#[test]
fn an_ambiguous_message_is_a_fault() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":{"a":1,"a":2}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","other":1e999}"#,
    ] {
        let fault = Envelope::parse(message.as_bytes()).unwrap().unambiguous_message().unwrap_err();
        assert_eq!(fault, Fault::Ambiguous("the message"), "{message}");
    }
}

proptest! {
    #[test]
    fn only_what_is_changed_differs(message in arbitrary::call(), name in ".{0,12}") {
        let envelope = Envelope::parse(message.as_bytes()).unwrap();
        if let Ok(old) = envelope.unambiguous_message() {
            let same = rewritten(message.as_bytes(), &old, &old).unwrap();
            prop_assert_eq!(String::from_utf8(same).unwrap(), message.trim());
            let mut new = old.clone();
            new["params"]["name"] = json!(name);
            let sent = rewritten(message.as_bytes(), &old, &new).unwrap();
            let read = Envelope::parse(&sent).unwrap();
            prop_assert_eq!(read.target().unwrap().name(), name);
            prop_assert_eq!(read.arguments().unwrap().as_str(), envelope.arguments().unwrap().as_str());
            prop_assert_eq!(read.id().unwrap().raw().as_str(), envelope.id().unwrap().raw().as_str());
        }
    }
}
