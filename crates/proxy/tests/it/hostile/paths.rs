//! Targets of requests that lead elsewhere, or around what protects.

use serde_json::json;
use skep_testkit::IdentityProvider;

use super::raw::{Raw, status};
use crate::fixture::{Fixture, Server, result};

const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

fn asked(method: &str, target: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {target} HTTP/1.1\r\nHost: files\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_target_leads_to_the_server_as_it_is_spelt_and_nowhere_else() {
    let server = Server::start(|got| result(got, json!({}))).await;
    let elsewhere = Server::start(|got| result(got, json!({}))).await;
    let fixture = Fixture::new(&server, json!([])).await;
    let other = elsewhere.address;
    let rows = [
        ("//mcp".to_owned(), "//mcp"),
        (format!("//{other}/mcp"), "//"),
        (format!("http://{other}/mcp"), "/mcp"),
        (format!("http://user:secret@{other}/mcp"), "/mcp"),
        ("/mcp/../health".to_owned(), "/mcp/../health"),
        ("/%2e%2e/mcp".to_owned(), "/%2e%2e/mcp"),
        ("/health/".to_owned(), "/health/"),
        ("/HEALTH".to_owned(), "/HEALTH"),
        (format!("/mcp?u=http://{other}"), "/mcp?u=http://"),
    ];
    for (target, seen) in &rows {
        assert_eq!(status(fixture.address, asked("POST", target, PING)).await, Some(200), "{target}");
        let path = server.got().pop().unwrap().path;
        assert!(path.starts_with(seen), "{target} became {path}");
    }
    assert_eq!((server.got().len(), elsewhere.got().len()), (rows.len(), 0));
}

#[tokio::test]
async fn what_is_no_method_of_mcp_or_no_path_of_the_server_ends_here() {
    let server = Server::start(|got| result(got, json!({}))).await;
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
        let answer = status(fixture.address, asked(method, target, body)).await;
        assert_eq!(answer, Some(expected), "{method} {target}");
    }
    assert!(server.got().is_empty(), "{:?}", server.got());
}

#[tokio::test]
async fn no_path_and_no_method_leads_around_authentication() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|got| result(got, json!({}))).await;
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
            raw.send(asked(method, target, body)).await;
            // The answer to HEAD has the length of a body that does not come.
            let answer = raw.status().await;
            assert_eq!(answer, 401, "{method} {target}");
        }
    }
    assert!(server.got().is_empty(), "{:?}", server.got());
}
