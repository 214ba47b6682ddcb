//! Lists, filtered for a caller.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::Value;
use similar_asserts::assert_eq;
use skep_mcp::{Envelope, List, Verdict, filtered};

use crate::arbitrary;

const TOOLS: &str = r#"{ "id" : 1,"x":1.0,"result":{"ttlMs":1e3,"tools":[ {"name":"a","x":1.00} , {"description":"B","name":"b"},
  {"name":"\u0063"}	],"nextCursor":"n","_meta":{"k":[ ]}},"jsonrpc":"2.0"}"#;

fn kept(names: &[&str]) -> String {
    let verdict = |item: &skep_mcp::Item<'_>| {
        if names.contains(&item.name().as_ref()) { Verdict::Keep } else { Verdict::Drop }
    };
    String::from_utf8(filtered(TOOLS.as_bytes(), List::Tools, verdict).unwrap().into_owned()).unwrap()
}

fn with_items(items: &str) -> String {
    let start = TOOLS.find("[ {").unwrap() + 1;
    let end = TOOLS.find("],\"nextCursor").unwrap();
    format!("{}{items}{}", &TOOLS[..start], &TOOLS[end..])
}

#[test]
fn an_item_is_dropped_with_one_comma_and_the_rest_stays_byte_for_byte() {
    assert_eq!(kept(&["a", "b", "c"]), TOOLS);
    assert_eq!(
        kept(&["a", "b"]),
        with_items(" {\"name\":\"a\",\"x\":1.00} , {\"description\":\"B\",\"name\":\"b\"}\t")
    );
    assert_eq!(kept(&["a", "c"]), with_items(" {\"name\":\"a\",\"x\":1.00},\n  {\"name\":\"\\u0063\"}\t"));
    assert_eq!(
        kept(&["b", "c"]),
        with_items(" {\"description\":\"B\",\"name\":\"b\"},\n  {\"name\":\"\\u0063\"}\t")
    );
    assert_eq!(kept(&["a"]), with_items(" {\"name\":\"a\",\"x\":1.00}\t"));
    assert_eq!(kept(&["b"]), with_items(" {\"description\":\"B\",\"name\":\"b\"}\t"));
    assert_eq!(kept(&["c"]), with_items(" {\"name\":\"\\u0063\"}\t"));
    assert_eq!(kept(&[]), with_items(" \t"));
}

#[test]
fn names_and_descriptions_are_replaced_in_place() {
    let changed = filtered(TOOLS.as_bytes(), List::Tools, |item| match item.name().as_ref() {
        "a" => Verdict::Replace { name: Some("\"A\"".to_owned()), description: Some("new".to_owned()) },
        "b" => Verdict::Replace { name: None, description: Some("other".to_owned()) },
        _ => Verdict::Replace { name: Some("C".to_owned()), description: None },
    });
    assert_eq!(
        String::from_utf8(changed.unwrap().into_owned()).unwrap(),
        with_items(
            r#" {"name":"\"A\"","description":"new","x":1.00} , {"description":"other","name":"b"},
  {"name":"C"}	"#
        )
    );
}

#[test]
fn an_item_can_be_dropped_before_one_that_is_replaced() {
    let changed = filtered(TOOLS.as_bytes(), List::Tools, |item| match item.name().as_ref() {
        "b" => Verdict::Replace { name: Some("B".to_owned()), description: None },
        _ => Verdict::Drop,
    });
    assert_eq!(
        String::from_utf8(changed.unwrap().into_owned()).unwrap(),
        with_items(" {\"description\":\"B\",\"name\":\"B\"}\t")
    );
}

#[test]
fn each_list_has_its_own_key_and_its_own_names() {
    for (list, result, expected) in [
        (List::Tools, r#"{"tools":[{"name":"n"}]}"#, "n"),
        (List::Prompts, r#"{"prompts":[{"name":"n"}]}"#, "n"),
        (List::Resources, r#"{"resources":[{"name":"n","uri":"u"}]}"#, "u"),
        (List::ResourceTemplates, r#"{"resourceTemplates":[{"name":"n","uriTemplate":"t"}]}"#, "t"),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let mut names = Vec::new();
        filtered(message.as_bytes(), list, |item| {
            names.push(item.name().into_owned());
            Verdict::Keep
        })
        .unwrap();
        assert_eq!(names, [expected]);
        assert_eq!(List::lists_in(&Envelope::parse(message.as_bytes()).unwrap()), Ok(vec![list]));
    }
}

#[test]
fn annotations_are_shown() {
    let message =
        br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"n","annotations":{"readOnlyHint":true}}]}}"#;
    filtered(message, List::Tools, |item| {
        assert_eq!(item.annotations().unwrap().as_str(), r#"{"readOnlyHint":true}"#);
        assert!(item.raw().as_str().starts_with(r#"{"name":"n","#));
        Verdict::Keep
    })
    .unwrap();
}

#[test]
fn a_malformed_list_is_an_error() {
    for (result, expected) in [
        ("{}", "result.tools is missing"),
        ("[]", "result must be an object"),
        ("null", "result must be an object"),
        (r#"{"tools":{}}"#, "result.tools must be an array"),
        (r#"{"tools":null}"#, "result.tools must be an array"),
        (r#"{"tools":[],"tools":[{"name":"b"}]}"#, "result.tools is duplicated (case is ignored)"),
        (r#"{"tools":[],"Tools":[{"name":"b"}]}"#, "result.tools is duplicated (case is ignored)"),
        (r#"{"Tools":[{"name":"b"}]}"#, "result.tools has the wrong case"),
        (r#"{"tools":["b"]}"#, "a list item must be an object"),
        (r#"{"tools":[{}]}"#, "name of a list item is missing"),
        (r#"{"tools":[{"name":7}]}"#, "name of a list item must be a string"),
        (r#"{"tools":[{"name":"a","name":"b"}]}"#, "name of a list item is duplicated (case is ignored)"),
        (r#"{"tools":[{"name":"a","Name":"b"}]}"#, "name of a list item is duplicated (case is ignored)"),
        (r#"{"tools":[{"name":"\ud800"}]}"#, "a string has half of a surrogate pair (byte 51)"),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let error = filtered(message.as_bytes(), List::Tools, |_| Verdict::Keep).unwrap_err();
        assert_eq!(error.to_string(), expected, "{result}");
    }
}

#[test]
fn a_message_without_a_list_is_unchanged() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"tools":[{"name":"a"}]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    ] {
        let sent = filtered(message.as_bytes(), List::Tools, |_| Verdict::Drop).unwrap();
        assert!(matches!(sent, Cow::Borrowed(sent) if sent == message.as_bytes()));
        assert_eq!(List::lists_in(&Envelope::parse(message.as_bytes()).unwrap()), Ok(vec![]));
    }
}

/// A response whose tools are `0`, `1`, … each with an unknown value.
fn response() -> impl Strategy<Value = (String, usize)> {
    (prop::collection::vec(arbitrary::value(), 0..6), "[ \n]{0,2}", arbitrary::value()).prop_map(
        |(unknown, space, other)| {
            let items: Vec<_> = unknown
                .iter()
                .enumerate()
                .map(|(index, value)| format!("{{\"x\":{value},{space}\"name\":\"{index}\"}}"))
                .collect();
            let count = items.len();
            let items = items.join(&format!("{space},{space}"));
            let result = format!("{{\"y\":{other},\"tools\":{space}[{space}{items}{space}],\"z\":{other}}}");
            (format!("{{\"jsonrpc\":\"2.0\",\"result\":{result},\"id\":1,\"w\":{other}}}"), count)
        },
    )
}

proptest! {
    #[test]
    fn keeping_all_items_changes_no_byte((message, count) in response()) {
        let mut seen = 0;
        let sent = filtered(message.as_bytes(), List::Tools, |_| { seen += 1; Verdict::Keep }).unwrap();
        prop_assert!(matches!(sent, Cow::Borrowed(_)));
        prop_assert_eq!(sent, message.as_bytes());
        prop_assert_eq!(seen, count);
    }

    #[test]
    fn only_dropped_items_are_removed((message, _) in response(), dropped: u8) {
        let is_dropped = |name: &str| dropped & (1 << name.parse::<u8>().unwrap()) != 0;
        let sent = filtered(message.as_bytes(), List::Tools, |item| {
            if is_dropped(&item.name()) { Verdict::Drop } else { Verdict::Keep }
        });
        let mut expected: Value = serde_json::from_str(&message).unwrap();
        let items = expected["result"]["tools"].as_array_mut().unwrap();
        items.retain(|item| !is_dropped(item["name"].as_str().unwrap()));
        let sent: Value = serde_json::from_slice(&sent.unwrap()).unwrap();
        prop_assert_eq!(sent, expected);
    }
}
