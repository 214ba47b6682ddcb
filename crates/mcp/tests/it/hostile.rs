//! Messages that are rejected.

use similar_asserts::assert_eq;
use skep_mcp::{DEPTH, Envelope, Fault};

fn fault(message: impl AsRef<[u8]>) -> String {
    let message = message.as_ref();
    match Envelope::parse(message) {
        Ok(_) => panic!("{} is taken", String::from_utf8_lossy(message)),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn invalid_json_is_rejected_with_the_position() {
    for (message, expected) in [
        ("", "expected an object (byte 0)"),
        (" ", "expected an object (byte 1)"),
        ("1", "expected an object (byte 0)"),
        ("null", "expected an object (byte 0)"),
        ("{", "expected a key (byte 1)"),
        ("{,}", "expected a key (byte 1)"),
        ("{1:2}", "expected a key (byte 1)"),
        (r#"{"a"}"#, "expected a colon (byte 4)"),
        (r#"{"a":}"#, "expected a value (byte 5)"),
        (r#"{"a":1,}"#, "expected a key (byte 7)"),
        (r#"{"a":1 2}"#, "expected a comma or the end of what was opened (byte 7)"),
        (r#"{"a":[1}"#, "expected a comma or the end of what was opened (byte 7)"),
        (r#"{"a":[1,]}"#, "expected a value (byte 8)"),
        (r#"{"a":[,1]}"#, "expected a value (byte 6)"),
        (r#"{"a":{"b":1]}"#, "expected a comma or the end of what was opened (byte 11)"),
        (r#"{"a":{"b":1,}}"#, "expected a key (byte 12)"),
        (r#"{"a":01}"#, "expected a comma or the end of what was opened (byte 6)"),
        (r#"{"a":1.}"#, "expected a digit (byte 7)"),
        (r#"{"a":.5}"#, "expected a value (byte 5)"),
        (r#"{"a":1e}"#, "expected a digit (byte 7)"),
        (r#"{"a":-}"#, "expected a digit (byte 6)"),
        (r#"{"a":+1}"#, "expected a value (byte 5)"),
        (r#"{"a":NaN}"#, "expected a value (byte 5)"),
        (r#"{"a":nul}"#, "expected a value (byte 5)"),
        (r#"{"a":truely}"#, "expected a comma or the end of what was opened (byte 9)"),
        (r#"{"a":'b'}"#, "expected a value (byte 5)"),
        (r#"{"a":"b}"#, "expected the end of a string (byte 8)"),
        (r#"{"a":"\x"}"#, "expected an escape of JSON (byte 6)"),
        (r#"{"a":"\u12g4"}"#, "expected an escape of JSON (byte 6)"),
        (r#"{"a":"\u12"#, "expected an escape of JSON (byte 6)"),
        ("{\"a\":\"\n\"}", "expected no control character in a string (byte 6)"),
        ("{\"a\":\"01234567890123456789\0\"}", "expected no control character in a string (byte 26)"),
        ("{\"a\":1}\0", "expected the end of the message (byte 7)"),
        ("{} {}", "expected the end of the message (byte 3)"),
        ("{}/**/", "expected the end of the message (byte 2)"),
    ] {
        assert_eq!(fault(message), format!("the message is not JSON: {expected}"), "{message}");
    }
}

#[test]
fn invalid_utf8_and_a_byte_order_mark_are_rejected() {
    assert_eq!(fault(b"{\"a\":\"\xff\"}"), "the message is not UTF-8 (byte 6)");
    assert_eq!(fault(b"{\"a\":\"\xed\xa0\x80\"}"), "the message is not UTF-8 (byte 6)");
    for message in [&b"\xEF\xBB\xBF"[..], b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}"] {
        assert_eq!(fault(message), "the message begins with a byte order mark");
    }
}

#[test]
fn a_batch_is_rejected() {
    for message in ["[]", " \n[", r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#] {
        assert_eq!(Envelope::parse(message.as_bytes()).err(), Some(Fault::Batch), "{message}");
    }
}

#[test]
fn what_is_not_a_json_rpc_message_is_rejected() {
    let id = "id must be a string or an integer";
    let unclear = "the message must have a method, or a result, or an error, and only one of them";
    for (members, expected) in [
        (r#""id":1,"method":"ping""#, "jsonrpc must be \"2.0\""),
        (r#""jsonrpc":"1.0","method":"ping""#, "jsonrpc must be \"2.0\""),
        (r#""jsonrpc":2.0,"method":"ping""#, "jsonrpc must be \"2.0\""),
        (r#""jsonrpc":"2.0""#, unclear),
        (r#""jsonrpc":"2.0","id":1"#, unclear),
        (r#""jsonrpc":"2.0","id":1,"result":{},"error":{}"#, unclear),
        (r#""jsonrpc":"2.0","id":1,"method":"ping","result":null,"error":null"#, unclear),
        (r#""jsonrpc":"2.0","id":1,"method":"ping","result":{}"#, unclear),
        (r#""jsonrpc":"2.0","id":1,"method":"ping","error":{}"#, unclear),
        (r#""jsonrpc":"2.0","id":null,"method":"ping""#, id),
        (r#""jsonrpc":"2.0","id":{},"method":"ping""#, id),
        (r#""jsonrpc":"2.0","id":[1],"method":"ping""#, id),
        (r#""jsonrpc":"2.0","id":true,"method":"ping""#, id),
        (r#""jsonrpc":"2.0","id":1.5,"method":"ping""#, id),
        (r#""jsonrpc":"2.0","id":1.0,"method":"ping""#, id),
        (r#""jsonrpc":"2.0","id":1e3,"method":"ping""#, id),
        (r#""jsonrpc":"2.0","id":null,"result":{}"#, id),
        (r#""jsonrpc":"2.0","result":{}"#, "id is missing"),
        (r#""jsonrpc":"2.0","id":1.5,"error":{}"#, id),
        (r#""jsonrpc":"2.0","id":1,"error":"no""#, "error must be an object"),
        (r#""jsonrpc":"2.0","id":1,"method":7"#, "method must be a string"),
        (r#""jsonrpc":"2.0","id":1,"method":null"#, "method must be a string"),
        (r#""jsonrpc":"2.0","id":1,"method":"ping","params":[]"#, "params must be an object"),
        (r#""jsonrpc":"2.0","id":1,"method":"ping","params":"p""#, "params must be an object"),
        (r#""jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":[]}"#, "params._meta must be an object"),
    ] {
        assert_eq!(fault(format!("{{{members}}}")), expected, "{members}");
    }
}

#[test]
fn a_policy_never_sees_another_value_than_the_server() {
    for (members, expected) in [
        // Twice.
        (r#""jsonrpc":"2.0","jsonrpc":"2.0","method":"ping""#, "jsonrpc is duplicated"),
        (r#""jsonrpc":"2.0","id":1,"id":1,"method":"ping""#, "id is duplicated"),
        (r#""jsonrpc":"2.0","method":"ping","method":"tools/call""#, "method is duplicated"),
        (r#""jsonrpc":"2.0","method":"ping","meth\u006fd":"tools/call""#, "method is duplicated"),
        (r#""jsonrpc":"2.0","method":"ping","params":{},"params":{}"#, "params is duplicated"),
        (r#""jsonrpc":"2.0","id":1,"result":{},"result":{}"#, "result is duplicated"),
        (
            r#""jsonrpc":"2.0","method":"tools/call","params":{"name":"a","name":"b"}"#,
            "params.name is duplicated",
        ),
        (
            r#""jsonrpc":"2.0","method":"tools/call","params":{"name":"a","\u006eame":"b"}"#,
            "params.name is duplicated",
        ),
        (
            r#""jsonrpc":"2.0","method":"tools/call","params":{"arguments":{},"arguments":{}}"#,
            "params.arguments is duplicated",
        ),
        (r#""jsonrpc":"2.0","method":"ping","params":{"_meta":{},"_meta":{}}"#, "params._meta is duplicated"),
        (
            r#""jsonrpc":"2.0","method":"ping","params":{"_meta":{"progressToken":1,"progressToken":2}}"#,
            "params._meta.progressToken is duplicated",
        ),
        // Twice for a server that ignores case, as Go's encoding/json does: it folds ſ to s and the Kelvin sign to k.
        (r#""jsonrpc":"2.0","method":"ping","Method":"tools/call""#, "method is duplicated"),
        (
            r#""jsonrpc":"2.0","method":"tools/call","params":{"Name":"b","name":"a"}"#,
            "params.name is duplicated",
        ),
        (r#""jsonrpc":"2.0","method":"ping","params":{},"PARAMS":{}"#, "params is duplicated"),
        (r#""jsonrpc":"2.0","method":"ping","params":{},"paramſ":{}"#, "params is duplicated"),
        (r#""jsonrpc":"2.0","method":"ping","params":{},"param\u017f":{}"#, "params is duplicated"),
        (
            r#""jsonrpc":"2.0","method":"tasks/get","params":{"taskId":"a","tas\u212aId":"b"}"#,
            "params.taskId is duplicated",
        ),
    ] {
        assert_eq!(fault(format!("{{{members}}}")), format!("{expected} (case is ignored)"), "{members}");
    }
    for (members, expected) in [
        (r#""jsonrpc":"2.0","Method":"tools/call""#, "method"),
        (r#""jsonrpc":"2.0","method":"tools/call","Params":{"name":"b"}"#, "params"),
        (r#""jsonrpc":"2.0","ID":1,"method":"tools/call""#, "id"),
        (r#""jsonrpc":"2.0","method":"tools/call","params":{"NAME":"b"}"#, "params.name"),
        (r#""jsonrpc":"2.0","method":"resources/read","params":{"Uri":"b"}"#, "params.uri"),
        (r#""jsonrpc":"2.0","method":"tasks/get","params":{"taſkId":"b"}"#, "params.taskId"),
        (r#""jsonrpc":"2.0","method":"ping","params":{"Arguments":{}}"#, "params.arguments"),
        (r#""jsonrpc":"2.0","method":"ping","params":{"_Meta":{}}"#, "params._meta"),
        (
            r#""jsonrpc":"2.0","method":"ping","params":{"_meta":{"io.ModelContextProtocol/clientInfo":{}}}"#,
            r#"params._meta["io.modelcontextprotocol/clientInfo"]"#,
        ),
    ] {
        assert_eq!(fault(format!("{{{members}}}")), format!("{expected} has the wrong case"), "{members}");
    }
}

#[test]
fn a_name_that_policies_decide_on_must_be_a_valid_string() {
    for (members, expected) in [
        (r#""method":"tools/call","params":{"name":7}"#, "params.name must be a string"),
        (r#""method":"tools/call","params":{"name":null}"#, "params.name must be a string"),
        (r#""method":"prompts/get","params":{"name":["a"]}"#, "params.name must be a string"),
        (r#""method":"resources/read","params":{"uri":{}}"#, "params.uri must be a string"),
        (r#""method":"tasks/cancel","params":{"taskId":1}"#, "params.taskId must be a string"),
        (
            r#""method":"tools/call","params":{"name":"a\ud800"}"#,
            "a string has half of a surrogate pair (byte 56)",
        ),
        (r#""method":"tools\udc00""#, "a string has half of a surrogate pair (byte 26)"),
        (r#""method":"ping","\ud800\u0041":1"#, "a string has half of a surrogate pair (byte 33)"),
    ] {
        assert_eq!(fault(format!(r#"{{"jsonrpc":"2.0",{members}}}"#)), expected, "{members}");
    }
    let payload =
        br#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a","arguments":{"\ud800":"\udc00"}}}"#;
    assert!(Envelope::parse(payload).is_ok(), "a payload is not validated");
}

#[test]
fn nesting_is_bound_and_takes_no_stack() {
    let nested = |levels: usize, open: &str, close: &str| {
        let (open, close) = (open.repeat(levels), close.repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{open}0{close}}}}}"#)
    };
    // Two are around the payload.
    let allowed = DEPTH as usize - 2;
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        assert!(Envelope::parse(nested(allowed, open, close).as_bytes()).is_ok());
        let message = nested(allowed + 1, open, close);
        assert_eq!(fault(&message), "the message has more than 64 nested objects and arrays");
        assert!(Envelope::parse_within(message.as_bytes(), DEPTH + 1).is_ok());
        assert_eq!(
            fault(nested(1_000_000, open, close)),
            "the message has more than 64 nested objects and arrays"
        );
        let message = nested(126, open, close);
        let deepest = Envelope::parse_within(message.as_bytes(), u32::MAX).err();
        assert_eq!(deepest, Some(Fault::TooDeep { depth: 127 }), "never deeper than serde_json reads");
    }
}
