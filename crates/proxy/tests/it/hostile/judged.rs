//! Requests that a policy and the server could read differently.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Server, call, result},
    stdio::fake::Fake,
};

pub(super) fn policies(policies: &[&str]) -> Value {
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    json!([
        {"type": "auth", "parameters": {}},
        {"type": "authorization", "parameters": {"config_data": document}},
    ])
}

/// Only paths below `/data` may be read.
const PERMIT: &str = r#"permit(principal, action == Action::"call_tool", resource == Tool::"read")
    when { context has arg_path && context.arg_path like "/data/*" };"#;

#[tokio::test]
async fn ambiguous_arguments_are_rejected() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fake = Fake::echo();
    let stdio = fake
        .configured(json!({"middleware_configs": policies(&[PERMIT])}), std::time::Duration::from_secs(20));
    let others: String = (0..10_000).map(|number| format!(r#","{number}":1"#)).collect();
    let very_many = format!(r#"{{"name":"read","arguments":{{"path":"/data/a"{others}}}}}"#);
    let calls =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
    for fixture in [Fixture::new(&server, policies(&[PERMIT])).await, stdio.await] {
        for (what, params, expected) in [
            ("twice", r#"{"name":"read","arguments":{"path":"/data/a","path":"/etc/passwd"}}"#, 400),
            (
                "twice, in the other order",
                r#"{"name":"read","arguments":{"path":"/etc/passwd","path":"/data/a"}}"#,
                400,
            ),
            (
                "twice, escaped",
                r#"{"name":"read","arguments":{"path":"/data/a","p\u0061th":"/etc/passwd"}}"#,
                400,
            ),
            // No policy can read what is nested.
            ("twice, further in", r#"{"name":"read","arguments":{"path":"/data/a","o":{"b":1,"b":2}}}"#, 200),
            (
                "twice, in a list",
                r#"{"name":"read","arguments":{"path":"/data/a","o":[{"b":1,"b":2}]}}"#,
                200,
            ),
            (
                "arguments twice",
                r#"{"name":"read","arguments":{"path":"/data/a"},"arguments":{"path":"/etc"}}"#,
                400,
            ),
            ("very many", &very_many, 400),
            ("half a surrogate pair", r#"{"name":"read","arguments":{"path":"/data/\ud800"}}"#, 400),
            ("arguments that are a list", r#"{"name":"read","arguments":["/data/a"]}"#, 400),
            ("arguments as a text", r#"{"name":"read","arguments":"{\"path\":\"/data/a\"}"}"#, 400),
            ("a path that is not a string", r#"{"name":"read","arguments":{"path":["/data/a"]}}"#, 403),
            ("another tool", r#"{"name":"write","arguments":{"path":"/data/a"}}"#, 403),
            ("the tool in another case", r#"{"name":"Read","arguments":{"path":"/data/a"}}"#, 403),
            ("the tool with a space", r#"{"name":"read ","arguments":{"path":"/data/a"}}"#, 403),
            ("the tool with a NUL", r#"{"name":"read\u0000","arguments":{"path":"/data/a"}}"#, 403),
            ("no tool", r#"{"arguments":{"path":"/data/a"}}"#, 403),
        ] {
            let answer = fixture.post(&[], &calls(params)).await;
            assert_eq!(answer.status.as_u16(), expected, "{what}: {}", answer.json());
            assert_eq!(answer.json()["id"], 7, "{what}");
        }
        let good = calls(r#"{"name":"re\u0061d","arguments":{"p\u0061th":"/data/a"}}"#);
        assert_eq!(
            fixture.post(&[], &good).await.status,
            StatusCode::OK,
            "an escape does not change the name"
        );
    }
    assert_eq!((server.requests().len(), fake.received().len()), (3, 3));
}

#[tokio::test]
async fn a_call_is_authorized_whatever_its_method_path_and_headers_are() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, policies(&[PERMIT])).await;
    let denied = call("tools/call", json!({"name": "write", "arguments": {"path": "/data/a"}}));
    let json = ("content-type", "application/json");
    for (method, path, headers, expected) in [
        (Method::POST, "/mcp", vec![], 403),
        (Method::POST, "/any/where", vec![json], 403),
        (Method::POST, "/sse", vec![json], 403),
        (Method::POST, "/mcp", vec![("content-type", "text/plain")], 415),
        (Method::POST, "/mcp", vec![json, ("accept", "text/event-stream")], 403),
        (Method::POST, "/mcp", vec![json, ("x-http-method-override", "GET")], 403),
        (Method::POST, "/mcp", vec![json, ("mcp-method", "ping")], 400),
        (Method::PUT, "/mcp", vec![json], 405),
        (Method::PATCH, "/mcp", vec![json], 405),
        (Method::GET, "/mcp", vec![json], 400),
        (Method::DELETE, "/mcp", vec![json], 400),
        (Method::OPTIONS, "/mcp", vec![json], 400),
    ] {
        let answer = fixture.send(method.clone(), path, &headers, denied.as_bytes()).await;
        assert_eq!(answer.status.as_u16(), expected, "{method} {path} {headers:?}");
    }
    // In UTF-7 it is a call of `write`.
    let hidden = call(
        "tools/call",
        json!({"name": "read", "arguments": {"path": "/data/a+ACIAfQ-,+ACI-name+ACI-:+ACI-write"}}),
    );
    let answer = fixture.send(
        Method::POST,
        "/mcp",
        &[("content-type", "application/json; charset=utf-7")],
        hidden.as_bytes(),
    );
    assert_eq!(answer.await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(server.requests().is_empty());
}
