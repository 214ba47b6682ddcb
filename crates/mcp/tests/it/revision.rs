//! The revisions of requests.

use serde_json::{Value, json};
use similar_asserts::assert_eq;
use skep_mcp::{Envelope, Era, Header, Headers, Rejection, Revision, RevisionFault, check_mirrors, era};

const MODERN: &str = "2026-07-28";

/// `_meta` with what is given of the three keys of 2026-07-28.
fn meta(version: Option<&str>, info: Option<&str>, capabilities: Option<&str>) -> String {
    let members: Vec<_> =
        [("protocolVersion", version), ("clientInfo", info), ("clientCapabilities", capabilities)]
            .into_iter()
            .filter_map(|(key, value)| Some(format!(r#""io.modelcontextprotocol/{key}":{}"#, value?)))
            .collect();
    format!(r#"{{"_meta":{{{}}}}}"#, members.join(","))
}

fn outcome(header: Header<'_>, message: &str) -> Result<Era, i32> {
    let envelope = Envelope::parse(message.as_bytes()).unwrap();
    let headers = Headers { protocol_version: header, ..Headers::default() };
    era(&headers, &envelope).map_err(|fault| {
        let rejection = Rejection::from(fault);
        assert_eq!(rejection.status(), 400);
        rejection.code()
    })
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

#[test]
fn a_request_is_classified_by_its_header_and_its_meta() {
    let modern = Some(r#""2026-07-28""#);
    let older = Some(r#""2025-11-25""#);
    let object = Some("{}");
    for (row, header, params, expected) in [
        ("no signal", None, "{}".to_owned(), Ok(Era::Legacy)),
        ("no signal, older header", Some("2025-06-18"), "{}".to_owned(), Ok(Era::Legacy)),
        ("no signal, unknown header", Some("1999-01-01"), "{}".to_owned(), Ok(Era::Legacy)),
        ("no signal, empty header", Some(""), "{}".to_owned(), Ok(Era::Legacy)),
        ("all there", Some(MODERN), meta(modern, object, object), Ok(Era::Modern)),
        ("no clientInfo, which is optional", Some(MODERN), meta(modern, None, object), Ok(Era::Modern)),
        ("escaped version", Some(MODERN), meta(Some(r#""2026\u002d07-28""#), None, object), Ok(Era::Modern)),
        // Without a version in the body.
        ("other header, clientInfo", Some("2025-11-25"), meta(None, object, None), Ok(Era::Legacy)),
        ("other header, capabilities", Some("2025-11-25"), meta(None, None, object), Ok(Era::Legacy)),
        ("modern header, no _meta", Some(MODERN), "{}".to_owned(), Err(-32602)),
        ("modern header, no version", Some(MODERN), meta(None, object, object), Err(-32602)),
        ("no header, clientInfo", None, meta(None, object, None), Err(-32602)),
        ("no header, capabilities", None, meta(None, None, object), Err(-32602)),
        ("empty header, clientInfo", Some(""), meta(None, object, None), Err(-32602)),
        ("version is no string", Some(MODERN), meta(Some("2026"), object, object), Err(-32602)),
        ("version is null", Some(MODERN), meta(Some("null"), object, object), Err(-32602)),
        ("version is half a surrogate", Some(MODERN), meta(Some(r#""\ud800""#), object, object), Err(-32602)),
        // With a version in the body that is not served.
        ("older version, same header", Some("2025-11-25"), meta(older, object, object), Err(-32022)),
        ("older version, no header", None, meta(older, object, object), Err(-32022)),
        ("unknown version, same header", Some("v9"), meta(Some(r#""v9""#), object, object), Err(-32022)),
        // With a header that does not match.
        ("header is missing", None, meta(modern, object, object), Err(-32020)),
        ("older header", Some("2025-11-25"), meta(modern, object, object), Err(-32020)),
        ("modern header, older version", Some(MODERN), meta(older, object, object), Err(-32020)),
        ("modern header, unknown version", Some(MODERN), meta(Some(r#""v9""#), object, object), Err(-32020)),
        // Without capabilities.
        ("no capabilities", Some(MODERN), meta(modern, object, None), Err(-32602)),
        ("capabilities are no object", Some(MODERN), meta(modern, object, Some("[]")), Err(-32602)),
        ("capabilities are null", Some(MODERN), meta(modern, object, Some("null")), Err(-32602)),
    ] {
        let header = Header::of(header.map(str::as_bytes));
        assert_eq!(outcome(header, &request("tools/list", &params)), expected, "{row}");
        assert_eq!(outcome(header, &request("initialize", &params)), Ok(Era::Legacy), "initialize: {row}");
    }
}

#[test]
fn the_header_determines_the_era_of_notifications_and_responses() {
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for message in [notification, response] {
        assert_eq!(outcome(Header::Once(MODERN.as_bytes()), message), Ok(Era::Modern));
        assert_eq!(outcome(Header::Once(b"2025-11-25"), message), Ok(Era::Legacy));
        assert_eq!(outcome(Header::Absent, message), Ok(Era::Legacy));
    }
}

#[test]
fn a_duplicate_version_header_is_rejected() {
    let header = Header::of([MODERN.as_bytes(), MODERN.as_bytes()]);
    for message in [request("ping", "{}"), request("initialize", "{}")] {
        assert_eq!(outcome(header, &message), Err(-32020));
    }
}

#[test]
fn the_error_for_an_unsupported_version_lists_the_supported_ones() {
    let message = request("ping", &meta(Some(r#""v9""#), None, None));
    let envelope = Envelope::parse(message.as_bytes()).unwrap();
    let fault = era(&Headers::default(), &envelope).unwrap_err();
    let answer: Value = serde_json::from_slice(&Rejection::from(fault).body(envelope.id())).unwrap();
    let data = json!({"requested": "v9", "supported": ["2026-07-28"]});
    let error = json!({"code": -32022, "data": data, "message": "unsupported protocol version"});
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "error": error}));
}

#[test]
fn revisions_have_names_and_eras() {
    for revision in Revision::ALL {
        assert_eq!(Revision::named(revision.to_string().as_bytes()), Some(revision));
        assert_eq!(revision.era() == Era::Modern, revision.name() == MODERN);
    }
    assert!(Revision::ALL.is_sorted());
    assert_eq!(Revision::named(b"2026-07-29"), None);
}

fn mirror(method: &[&str], name: &[&str], message: &str) -> Result<(), String> {
    let bytes =
        |values: &[&str]| values.iter().map(|value| value.to_string().into_bytes()).collect::<Vec<_>>();
    let (method, name) = (bytes(method), bytes(name));
    let headers = Headers {
        method: Header::of(method.iter().map(Vec::as_slice)),
        name: Header::of(name.iter().map(Vec::as_slice)),
        ..Headers::default()
    };
    check_mirrors(&headers, &Envelope::parse(message.as_bytes()).unwrap(), Era::Modern).map_err(|fault| {
        assert_eq!(Rejection::from(fault.clone()).code(), -32020);
        match fault {
            RevisionFault::Mismatch { header, value, body } => format!("{header}: {value:?} is not {body:?}"),
            other => other.to_string(),
        }
    })
}

#[test]
fn headers_must_match_the_body() {
    let call = request("tools/call", r#"{"name":"echo"}"#);
    let wide = request("tools/call", r#"{"name":"Hello, \u4e16界"}"#);
    let padded = request("prompts/get", r#"{"name":" padded "}"#);
    let sentinel = request("prompts/get", r#"{"name":"=?base64?literal?="}"#);
    let read = request("resources/read", r#"{"uri":"file:///a","name":"n"}"#);
    let subscribe = request("resources/subscribe", r#"{"uri":"file:///a"}"#);
    let task = request("tasks/get", r#"{"taskId":"t"}"#);
    let listed = request("tools/list", r#"{"cursor":"c"}"#);
    let nameless = request("tools/call", "{}");
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for (method, name, message) in [
        (&["tools/call"][..], &["echo"][..], call.as_str()),
        (&[" tools/call\t"], &["  echo  "], &call),
        (&["tools/call"], &["=?base64?ZWNobw==?="], &call),
        (&["tools/call"], &["=?base64?SGVsbG8sIOS4lueVjA==?="], &wide),
        (&["prompts/get"], &["=?base64?IHBhZGRlZCA=?="], &padded),
        (&["prompts/get"], &["=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="], &sentinel),
        (&["resources/read"], &["file:///a"], &read),
        (&["resources/subscribe"], &[], &subscribe),
        (&["resources/subscribe"], &["file:///a"], &subscribe),
        (&["tasks/get"], &[], &task),
        (&["tasks/get"], &["t"], &task),
        (&["tools/list"], &[], &listed),
        (&["tools/call"], &[], &nameless),
        (&[], &[], notification),
        (&["notifications/cancelled"], &[], notification),
        (&[], &[], response),
    ] {
        assert_eq!(mirror(method, name, message), Ok(()), "{method:?} {name:?} {message}");
    }
    for (method, name, message, expected) in [
        (&[][..], &["echo"][..], call.as_str(), "header mismatch: Mcp-Method is missing"),
        (&[], &[], &listed, "header mismatch: Mcp-Method is missing"),
        (&["tools/call", "tools/call"], &["echo"], &call, "header mismatch: Mcp-Method is duplicated"),
        (&["tools/list"], &["echo"], &call, r#"Mcp-Method: "tools/list" is not "tools/call""#),
        (&["TOOLS/CALL"], &["echo"], &call, r#"Mcp-Method: "TOOLS/CALL" is not "tools/call""#),
        (&["tools/list"], &[], notification, r#"Mcp-Method: "tools/list" is not "notifications/cancelled""#),
        (&["tools/call"], &[], &call, "header mismatch: Mcp-Name is missing"),
        (&["tools/call"], &["echo", "rm"], &call, "header mismatch: Mcp-Name is duplicated"),
        (&["tools/call"], &["rm"], &call, r#"Mcp-Name: "rm" is not "echo""#),
        (&["tools/call"], &["Echo"], &call, r#"Mcp-Name: "Echo" is not "echo""#),
        (&["tools/call"], &[""], &call, r#"Mcp-Name: "" is not "echo""#),
        (&["tools/call"], &["=?base64?cm0=?="], &call, r#"Mcp-Name: "rm" is not "echo""#),
        (&["tools/call"], &["=?base64?ZWNobw?="], &call, "header mismatch: Mcp-Name is malformed"),
        (&["tools/call"], &["=?base64?!?="], &call, "header mismatch: Mcp-Name is malformed"),
        (&["tools/call"], &["=?base64?/w==?="], &call, "header mismatch: Mcp-Name is malformed"),
        (
            &["tools/call"],
            &["=?BASE64?ZWNobw==?="],
            &call,
            r#"Mcp-Name: "=?BASE64?ZWNobw==?=" is not "echo""#,
        ),
        (&["tools/call"], &["Hello, 世界"], &wide, "header mismatch: Mcp-Name is malformed"),
        (&["prompts/get"], &["=?base64?literal?="], &sentinel, "header mismatch: Mcp-Name is malformed"),
        (&["resources/read"], &["n"], &read, r#"Mcp-Name: "n" is not "file:///a""#),
        (&["resources/subscribe"], &["b"], &subscribe, r#"Mcp-Name: "b" is not "file:///a""#),
        (&["tasks/get"], &["u"], &task, r#"Mcp-Name: "u" is not "t""#),
        (
            &["tools/call"],
            &["rm"],
            &nameless,
            "header mismatch: Mcp-Name is set for a message without a target",
        ),
        (&["tools/call"], &[], response, "header mismatch: Mcp-Method is set for a message without a method"),
    ] {
        assert_eq!(mirror(method, name, message), Err(expected.to_owned()), "{method:?} {name:?} {message}");
    }
}
