//! Responses of the proxy itself.

use serde_json::{Value, json};
use similar_asserts::assert_eq;
use skep_mcp::{Envelope, Fault, Id, Rejection, RevisionFault, empty_result};

#[test]
fn each_rejection_has_a_status_a_code_and_a_message() {
    let message = |fault| Rejection::from(fault);
    for (rejection, status, code, text) in [
        (message(Fault::Batch), 400, -32600, "batches are not supported: send one message at a time"),
        (message(Fault::ByteOrderMark), 400, -32700, "the message begins with a byte order mark"),
        (message(Fault::NotUtf8 { at: 3 }), 400, -32700, "the message is not UTF-8 (byte 3)"),
        (message(Fault::NotJsonRpc), 400, -32600, "jsonrpc must be \"2.0\""),
        (message(Fault::Duplicate("id")), 400, -32600, "id is duplicated (case is ignored)"),
        (
            message(Fault::Duplicate("params.name")),
            400,
            -32602,
            "params.name is duplicated (case is ignored)",
        ),
        (message(Fault::Lookalike("params.name")), 400, -32602, "params.name has the wrong case"),
        (Rejection::Capability { required: json!({}) }, 400, -32021, "missing required client capability"),
        (Rejection::Origin, 403, -32600, "Origin not allowed"),
        (Rejection::Denied, 403, 403, "Unauthorized"),
        (Rejection::WebhookDenied { status: 422, message: "no".to_owned() }, 422, 403, "no"),
        (Rejection::Session, 404, -32001, "Session not found"),
        (Rejection::Method, 404, -32601, "Method not found"),
        (Rejection::TooLarge, 413, -32600, "the request body is too large"),
        (Rejection::RateLimited { retry_after_seconds: 3 }, 429, 429, "Rate limit exceeded"),
        (Rejection::HiddenTool, 200, -32602, "tool not found"),
        (Rejection::Internal, 500, -32603, "internal error"),
        (Rejection::Unreachable, 502, -32603, "the MCP server cannot be reached"),
        (Rejection::Unavailable("session store"), 503, -32603, "session store unavailable"),
        (Rejection::Timeout, 504, -32000, "Timeout"),
        (Rejection::SlowReader, 503, -32000, "the client reads too slowly, and has lost messages"),
    ] {
        let actual = (rejection.status(), rejection.code(), rejection.message());
        assert_eq!(actual, (status, code, text.to_owned()));
        let body = rejection.body(None);
        let parsed: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(parsed["error"]["code"], json!(code));
        assert_eq!(parsed.get("id"), None, "MCP has no null ids");
        assert!(Envelope::parse(&body).is_ok(), "the body is a valid message");
    }
}

#[test]
fn some_rejections_have_data_for_programs() {
    for (rejection, data) in [
        (Rejection::RateLimited { retry_after_seconds: 3 }, json!({"retryAfterSeconds": 3})),
        (
            Rejection::Capability { required: json!({"sampling": {}}) },
            json!({"requiredCapabilities": {"sampling": {}}}),
        ),
        (
            Rejection::Revision(RevisionFault::Mismatch {
                header: "Mcp-Name",
                value: "a".to_owned(),
                body: "b".to_owned(),
            }),
            json!({"header": "a", "body": "b"}),
        ),
    ] {
        let body: Value = serde_json::from_slice(&rejection.body(None)).unwrap();
        assert_eq!(body["error"]["data"], data);
    }
}

#[test]
fn the_id_of_the_response_is_spelled_as_in_the_request() {
    for id in ["7", "-0", "123456789012345678901234567890", r#""\u0041\/""#] {
        let request = format!(r#"{{"id":{id}}}"#);
        let id_read = Id::of_rejected(request.as_bytes()).unwrap();
        let error =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"internal error"}}}}"#);
        assert_eq!(Rejection::Internal.body(Some(id_read)), error.into_bytes());
        let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(empty_result(id_read), result.into_bytes());
    }
}
