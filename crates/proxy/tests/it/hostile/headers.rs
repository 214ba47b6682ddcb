//! Headers that do not match the body, or that would strip what the proxy sets.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, Server, call, result},
    stdio::fake::Fake,
};

fn modern_call(name: &str) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    call("tools/call", json!({"name": name, "arguments": {}, "_meta": meta}))
}

#[tokio::test]
async fn a_request_whose_headers_do_not_match_its_body_is_rejected() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fake = Fake::echo();
    let (version, method) = (("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"));
    let name = |value| ("mcp-name", value);
    for fixture in [Fixture::new(&server, json!([])).await, fake.proxy().await] {
        for headers in [
            vec![version, method],
            vec![version, name("safe")],
            vec![version, method, name("rm")],
            vec![version, method, name("Safe")],
            vec![version, method, name("")],
            vec![version, method, name("safe"), name("safe")],
            vec![version, method, name("safe"), name("rm")],
            vec![version, method, name("safe,rm")],
            vec![version, method, name("=?base64?cm0=?=")],
            vec![version, method, name("=?base64?c2FmZQ?=")],
            vec![version, method, name("=?base64?c2FmZQ==")],
            vec![version, method, name("=?base64?c2FmZQA=?=")],
            vec![version, method, name("=?utf-8?b?c2FmZQ==?=")],
            vec![version, method, name("\"safe\"")],
            vec![version, method, method, name("safe")],
            vec![version, ("mcp-method", "tools/list"), name("safe")],
            vec![version, ("mcp-method", "TOOLS/CALL"), name("safe")],
            vec![version, ("mcp-method", "tools%2Fcall"), name("safe")],
            vec![version, version, method, name("safe")],
            vec![("mcp-protocol-version", "2025-11-25"), method, name("safe")],
            vec![method, name("safe")],
        ] {
            let answer = fixture.post(&headers, &modern_call("safe")).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["code"], &answer.json()["id"]),
                (StatusCode::BAD_REQUEST, &json!(-32020), &json!(7)),
                "{headers:?}: {}",
                answer.json()
            );
        }
    }
    assert!(server.requests().is_empty() && fake.received().is_empty());
    let fixture = Fixture::new(&server, json!([])).await;
    for same in ["safe", " safe\t", "=?base64?c2FmZQ==?="] {
        assert_eq!(
            fixture.post(&[version, method, name(same)], &modern_call("safe")).await.status,
            200,
            "{same:?}"
        );
    }
}

#[tokio::test]
async fn a_message_of_an_older_revision_does_not_contradict_its_headers_either() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, json!([])).await;
    let version = ("mcp-protocol-version", "2026-07-28");
    let danger = call("tools/call", json!({"name": "danger"}));
    let notification =
        json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "danger"}}).to_string();
    for (headers, body) in [
        (vec![("mcp-method", "ping"), ("mcp-name", "harmless")], &danger),
        (vec![("mcp-name", "harmless")], &danger),
        (vec![version, ("mcp-method", "ping")], &notification),
        (vec![version, ("mcp-name", "danger"), ("mcp-name", "harmless")], &notification),
        (vec![version, version], &notification),
    ] {
        assert_eq!(fixture.post(&headers, body).await.status, StatusCode::BAD_REQUEST, "{headers:?}");
    }
    let twice = [("mcp-protocol-version", "2025-11-25"), version];
    let answer = fixture.send(Method::GET, "/mcp", &twice, b"").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(server.requests().is_empty());
    let same = [("mcp-method", "tools/call"), ("mcp-name", "danger")];
    assert_eq!(fixture.post(&same, &danger).await.status, StatusCode::OK);
}

fn forwarding(headers: Value) -> Value {
    json!([
        {"type": "strip-auth", "parameters": {}},
        {"type": "header-forward", "parameters": {"add_headers": headers}},
    ])
}

#[tokio::test]
async fn a_connection_header_cannot_strip_headers_that_the_proxy_sets() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture =
        Fixture::new(&server, forwarding(json!({"Authorization": "Bearer ours", "X-Key": "k"}))).await;
    let ping = call("ping", json!({}));
    for connection in [
        "Authorization, X-Key",
        "close, x-key, AUTHORIZATION, x-forwarded-for, x-request-id",
        "keep-alive, Content-Length, Content-Type, Host",
    ] {
        let headers = [
            ("connection", connection),
            ("authorization", "Bearer theirs"),
            ("x-key", "theirs"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-forwarded-host", "evil.example"),
            ("x-real-ip", "10.0.0.1"),
            ("forwarded", "for=10.0.0.1"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("proxy-authorization", "Basic YTpi"),
        ];
        assert_eq!(fixture.post(&headers, &ping).await.status, StatusCode::OK, "{connection}");
        let request = server.requests().pop().unwrap();
        let seen = |name| {
            request.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(seen("authorization"), ["Bearer ours"], "{connection}");
        assert_eq!(seen("x-key"), ["k"], "{connection}");
        assert_eq!(seen("x-forwarded-for"), ["127.0.0.1"], "{connection}");
        assert_eq!(seen("x-request-id").len(), 1, "{connection}");
        assert_eq!(seen("content-length"), [ping.len().to_string()], "{connection}");
        for stripped in ["connection", "te", "upgrade", "proxy-authorization", "x-real-ip", "forwarded"] {
            assert_eq!(seen(stripped), [""; 0], "{stripped}");
        }
    }
}

#[tokio::test]
async fn a_page_of_another_origin_is_rejected_in_every_spelling() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let origins = json!([{"type": "origin", "parameters": {"allowed_origins": ["https://app.example"]}}]);
    let fixture = Fixture::new(&server, origins).await;
    let good = ("origin", "https://app.example");
    for headers in [
        vec![good, good],
        vec![good, ("origin", "https://evil.example")],
        vec![("origin", "")],
        vec![("origin", "null")],
        vec![("origin", "http://app.example")],
        vec![("origin", "https://app.example/")],
        vec![("origin", "https://app.example, https://evil.example")],
        vec![("origin", "https://app.example@evil.example")],
        vec![("origin", "https://app.example.")],
        vec![("origin", "https://127.0.0.1")],
        vec![("origin", "http://localhost:8080"), ("host", "localhost:8080")],
        vec![("origin", "http://evil.example"), ("host", "evil.example")],
        vec![
            ("origin", "https://evil.example"),
            ("x-forwarded-host", "evil.example"),
            ("x-forwarded-proto", "https"),
        ],
    ] {
        let answer = fixture.post(&headers, &call("ping", json!({}))).await;
        assert_eq!((answer.status, answer.json().get("id")), (StatusCode::FORBIDDEN, None), "{headers:?}");
    }
    assert!(server.requests().is_empty());
}
