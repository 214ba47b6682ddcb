//! Request targets that could lead to another server, or bypass a middleware.

use serde_json::json;
use skep_testkit::IdentityProvider;

use super::raw::{Raw, status};
use crate::fixture::{Fixture, Server, result};

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

fn request(method: &str, target: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {target} HTTP/1.1\r\nHost: files\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_request_target_is_forwarded_as_it_is_spelled_and_only_to_the_server() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let elsewhere = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, json!([])).await;
    let other = elsewhere.address;
    let rows = [
        ("//mcp".to_owned(), None),
        (format!("//{other}/mcp"), None),
        (format!("http://{other}/mcp"), Some("/mcp")),
        (format!("http://user:secret@{other}/mcp"), Some("/mcp")),
        ("/mcp/../health".to_owned(), None),
        ("/%2e%2e/mcp".to_owned(), None),
        ("/health/".to_owned(), None),
        ("/HEALTH".to_owned(), None),
        (format!("/mcp?u=http://{other}"), None),
    ];
    for (target, path_of_it) in &rows {
        assert_eq!(status(fixture.address, request("POST", target, PING)).await, Some(200), "{target}");
        let path = server.requests().pop().unwrap().path;
        assert_eq!(path, path_of_it.unwrap_or(target), "{target}");
    }
    assert_eq!((server.requests().len(), elsewhere.requests().len()), (rows.len(), 0));
}

#[tokio::test]
async fn an_unsupported_method_or_target_is_rejected() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, json!([])).await;
    for (method, target, body, expected) in [
        ("CONNECT", "evil.example:443", "", 400),
        ("OPTIONS", "*", "", 400),
        ("TRACE", "/mcp", "", 405),
        ("PUT", "/mcp", PING, 405),
        ("PATCH", "/mcp", PING, 405),
        ("QUERY", "/mcp", PING, 405),
        ("post", "/mcp", PING, 405),
        ("GET", "/mcp", PING, 400),
        ("DELETE", "/mcp", PING, 400),
        ("OPTIONS", "/mcp", PING, 400),
        ("POST", "evil.example:80", PING, 400),
        ("POST", "mcp", PING, 400),
        ("POST", "/mcp#x y", PING, 400),
        ("POST", "/mcp\0", PING, 400),
        ("GET", "/.well-known/../mcp", "", 404),
        ("POST", "/.well-known/../mcp", PING, 404),
    ] {
        let answer = status(fixture.address, request(method, target, body)).await;
        assert_eq!(answer, Some(expected), "{method} {target}");
    }
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[tokio::test]
async fn no_path_and_no_method_bypasses_authentication() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let auth = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    let fixture = Fixture::new(&server, auth).await;
    for target in [
        "/mcp",
        "//health",
        "/health/",
        "/health/../mcp",
        "/./health",
        "/%68ealth",
        "/metrics/",
        "/Health",
        "/",
        "/sse",
        "/.well-known",
        "/.Well-Known/x",
        "http://files/mcp",
    ] {
        for (method, body) in [("POST", PING), ("GET", ""), ("DELETE", ""), ("OPTIONS", ""), ("HEAD", "")] {
            let mut raw = Raw::new(fixture.address).await;
            raw.send(request(method, target, body)).await;
            // The response to HEAD has the length of a body that is not sent.
            let answer = raw.status().await;
            assert_eq!(answer, 401, "{method} {target}");
        }
    }
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}
