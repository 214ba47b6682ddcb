//! What is read of a message.

use proptest::prelude::*;
use serde_json::json;
use similar_asserts::assert_eq;
use skep_mcp::{Envelope, Fault, Id, Message, Method, Outcome, TargetKind};

use crate::arbitrary;

fn parsed(message: &str) -> Envelope<'_> {
    Envelope::parse(message.as_bytes()).unwrap_or_else(|fault| panic!("{message}: {fault}"))
}

#[test]
fn a_message_is_a_request_a_notification_or_a_response() {
    let kind = |message| match parsed(message).message() {
        Message::Request { id, .. } => format!("request {}", id.raw().as_str()),
        Message::Notification { .. } => "notification".to_owned(),
        Message::Response { id, outcome: Outcome::Result(raw) } => {
            format!("result {} of {}", raw.as_str(), id.unwrap().raw().as_str())
        }
        Message::Response { id, outcome: Outcome::Error(raw) } => {
            format!("error {} of {:?}", raw.as_str(), id.map(|id| id.key()))
        }
    };
    for (message, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1"),
        (r#" {"method":"ping","id":"\u0041","jsonrpc":"2\u002e0"} "#, r#"request "\u0041""#),
        (r#"{"jsonrpc":"2.0","method":"ping"}"#, "notification"),
        (r#"{"jsonrpc":"2.0","id":"a","result":{}}"#, r#"result {} of "a""#),
        (r#"{"jsonrpc":"2.0","id":"a","result":null}"#, r#"result null of "a""#),
        (r#"{"jsonrpc":"2.0","id":2,"error":{"code":1}}"#, r#"error {"code":1} of Some("2")"#),
        (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "error {} of None"),
        (r#"{"jsonrpc":"2.0","error":{}}"#, "error {} of None"),
        (r#"{"jsonrpc":"2.0","id":3,"result":{"a":1},"error":null}"#, r#"result {"a":1} of 3"#),
        (r#"{"jsonrpc":"2.0","id":3,"result":null,"error":{}}"#, r#"error {} of Some("3")"#),
    ] {
        assert_eq!(kind(message), expected, "{message}");
    }
}

#[test]
fn a_message_of_a_subscription_has_its_id() {
    let id = |message: &str| parsed(message).subscription_id().map(|id| id.as_str().to_owned());
    const KEY: &str = "io.modelcontextprotocol/subscriptionId";
    let notification = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a","_meta":{meta}}}}}"#
        )
    };
    assert_eq!(id(&notification(&format!(r#"{{"{KEY}":7}}"#))), Some("7".into()));
    assert_eq!(id(&notification(&format!(r#"{{"{KEY}":"7"}}"#))), Some(r#""7""#.into()));
    assert_eq!(id(&notification(&format!(r#"{{"{KEY}":[7]}}"#))), None);
    assert_eq!(id(&notification("{}")), None);
    let end = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"_meta":{{"{KEY}":7}}}}}}"#);
    assert_eq!(id(&end), Some("7".into()));
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":[]}"#), None);
}

#[test]
fn the_target_of_a_message_depends_on_its_method() {
    for (method, params, kind, name) in [
        ("tools/call", r#"{"uri":"u","name":"echo"}"#, TargetKind::Tool, "echo"),
        ("tools/call", r#"{"n\u0061me":"\u0065cho"}"#, TargetKind::Tool, "echo"),
        ("prompts/get", r#"{"name":"review"}"#, TargetKind::Prompt, "review"),
        ("resources/read", r#"{"name":"n","uri":"file:///a"}"#, TargetKind::Resource, "file:///a"),
        ("resources/subscribe", r#"{"uri":"file:///a"}"#, TargetKind::Resource, "file:///a"),
        ("resources/unsubscribe", r#"{"uri":"file:///a"}"#, TargetKind::Resource, "file:///a"),
        ("tasks/get", r#"{"taskId":"t"}"#, TargetKind::Task, "t"),
        ("tasks/result", r#"{"taskId":"t"}"#, TargetKind::Task, "t"),
        ("tasks/update", r#"{"taskId":"t"}"#, TargetKind::Task, "t"),
        ("tasks/cancel", r#"{"taskId":"t"}"#, TargetKind::Task, "t"),
        ("initialize", r#"{"clientInfo":{"version":"1","name":"c"}}"#, TargetKind::Client, "c"),
        ("tools/list", r#"{"cursor":"p2"}"#, TargetKind::Cursor, "p2"),
        ("logging/setLevel", r#"{"level":"debug"}"#, TargetKind::Level, "debug"),
        ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"p"}}"#, TargetKind::Reference, "p"),
        ("completion/complete", r#"{"ref":{"type":"ref/resource","uri":"u"}}"#, TargetKind::Reference, "u"),
        ("notifications/progress", r#"{"progressToken":12}"#, TargetKind::ProgressToken, "12"),
        ("notifications/cancelled", r#"{"requestId":"r"}"#, TargetKind::Request, "r"),
    ] {
        for id in ["", r#""id":1,"#] {
            let message = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#);
            let target = parsed(&message).target().unwrap();
            assert_eq!((target.kind, target.name().as_ref()), (kind, name), "{message}");
        }
    }
}

#[test]
fn a_message_without_a_name_has_no_target() {
    for (method, params) in [
        ("tools/call", "{}"),
        ("tools/call", "null"),
        ("resources/read", r#"{"name":"n"}"#),
        ("ping", r#"{"name":"n"}"#),
        ("acme/custom", r#"{"name":"n","uri":"u"}"#),
        ("initialize", r#"{"clientInfo":"c"}"#),
        ("initialize", r#"{"clientInfo":{"name":"c","name":"d"}}"#),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        assert_eq!(parsed(&message).target(), None, "{message}");
    }
}

#[test]
fn a_key_in_the_wrong_case_is_accepted_where_no_policy_reads_it() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"acme/custom","params":{"Name":"n","URI":"u","TaskID":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"TraceParent":"00-0"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"n","arguments":{"Name":1,"name":2}}}"#,
    ] {
        assert_eq!(parsed(message).bytes(), message.as_bytes());
    }
}

#[test]
fn meta_is_read_and_its_values_are_as_they_were_spelled() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{
        "progressToken": 1.50, "traceparent":"00-ab", "tracestate":7,
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientInfo":{"name" : "c"},
        "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let envelope = parsed(message);
    let meta = envelope.meta();
    let raw =
        [meta.progress_token(), meta.protocol_version(), meta.client_info(), meta.client_capabilities()];
    assert_eq!(raw.map(|raw| raw.unwrap().as_str()), ["1.50", r#""2026-07-28""#, r#"{"name" : "c"}"#, "{}"]);
    assert_eq!(meta.trace_parent().unwrap().decoded(), "00-ab");
    assert_eq!(meta.trace_state(), None);
}

#[test]
fn ids_are_the_same_whatever_their_escapes_and_differ_by_type() {
    let key = |id: &str| {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        parsed(&message).id().unwrap().key()
    };
    assert_eq!(key(r#""\u0041/\/""#), key(r#""A//""#));
    assert_ne!(key("1"), key(r#""1""#));
    assert_eq!(key("123456789012345678901234567890"), "123456789012345678901234567890");
}

#[test]
fn the_id_of_a_rejected_message_is_returned_if_there_is_one() {
    let id = |message: &'static str| Id::of_rejected(message.as_bytes()).map(|id| id.raw().as_str());
    assert_eq!(id(r#"{"id":7,"jsonrpc":"1.0","method":"ping"}"#), Some("7"));
    assert_eq!(id(r#"{"id":7,"method":"a","Method":"b"}"#), Some("7"));
    assert_eq!(id(r#"{"id":7,"id":8}"#), None);
    assert_eq!(id(r#"{"id":null}"#), None);
    assert_eq!(id(r#"{"id":7"#), None);
    assert_eq!(id(r#"[{"id":7}]"#), None);
}

#[test]
fn every_method_has_one_name() {
    for method in Method::KNOWN {
        assert_eq!(Method::named(method.name().unwrap()), *method);
    }
    assert_eq!(Method::named("Tools/Call"), Method::Other);
}

#[test]
fn debug_output_contains_nothing_of_a_message() {
    let message = r#"{"jsonrpc":"2.0","id":"secret","method":"tools/call","params":{"name":"secret"}}"#;
    let envelope = parsed(message);
    let shown = format!("{envelope:?} {:?} {:?}", envelope.target(), envelope.params());
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn arguments_are_returned_only_if_every_parser_reads_the_same_in_them() {
    let read = |arguments: &str| {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"n","arguments":{arguments}}}}}"#
        );
        parsed(&message).unambiguous_arguments()
    };
    let value = json!({"a": [1, -2, 0.5, "é", null, true, {"A": {}}], "A": 1});
    assert_eq!(read(&value.to_string()), Ok(Some(value)));
    for arguments in [
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"[{"b":{"a":1,"c":{},"a":2}}]"#,
        r#"{"a":"\ud800"}"#,
        r#"{"\udc00":1}"#,
        r#"{"a":1e999}"#,
    ] {
        assert_eq!(read(arguments), Err(Fault::Ambiguous("params.arguments")), "{arguments}");
    }
    assert_eq!(parsed(r#"{"jsonrpc":"2.0","method":"ping"}"#).unambiguous_arguments(), Ok(None));
}

#[test]
fn of_many_arguments_only_those_that_are_read_are_kept() {
    let read = |arguments: &str, names: &[&str]| {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"n","arguments":{arguments}}}}}"#
        );
        parsed(&message).scalar_arguments(|name| names.contains(&name))
    };
    let many = |count: usize, first: &str| {
        let more: String =
            (1..count).map(|number| format!(r#","x{number}":"{}""#, "y".repeat(100))).collect();
        format!(r#"{{"{first}":[{{"a":1,"a":1}}]{more}}}"#)
    };
    let kept = |arguments: &str, names: &[&str]| json!(read(arguments, names).unwrap());
    assert_eq!(kept(&many(1_000, "a"), &["a", "x9"]), json!({"a": null, "x9": "y".repeat(100)}));
    assert_eq!(
        kept(&many(1_000, "\\u0061"), &["a"]),
        json!({"a": null}),
        "by its name, however it is spelled"
    );
    assert_eq!(
        kept(r#"{"a":1,"b":"\ud800","c":1e999}"#, &["a"]),
        json!({"a": 1}),
        "others are not looked at"
    );
    for arguments in [
        many(1_001, "a"),
        many(2, "x1"),
        many(2, "\\u0078\\u0031"),
        r#"{"a":1e999}"#.into(),
        r#"{"\ud800":1}"#.into(),
    ] {
        let names = ["a"];
        assert_eq!(read(&arguments, &names), Err(Fault::Ambiguous("params.arguments")), "{arguments}");
    }
}

proptest! {
    #[test]
    fn a_call_is_read_in_any_spelling(message in arbitrary::call()) {
        let envelope = parsed(&message);
        let value: serde_json::Value = serde_json::from_str(&message).unwrap();
        let value_of = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        prop_assert_eq!(envelope.bytes(), message.as_bytes());
        prop_assert_eq!(value_of(envelope.id().unwrap().raw().as_str()), value["id"].clone());
        prop_assert_eq!(envelope.target().unwrap().name(), value["params"]["name"].as_str().unwrap());
        prop_assert_eq!(value_of(envelope.arguments().unwrap().as_str()), value["params"]["arguments"].clone());
        if let Ok(arguments) = envelope.unambiguous_arguments() {
            prop_assert_eq!(arguments.unwrap(), value["params"]["arguments"].clone());
        }
        prop_assert_eq!(value_of(envelope.params().unwrap().as_str()), value["params"].clone());
        prop_assert_eq!(envelope.meta().progress_token().unwrap().as_str(), "7");
    }
}
