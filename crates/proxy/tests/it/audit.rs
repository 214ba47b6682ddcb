//! The audit log.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::Proxy;
use skep_testkit::IdentityProvider;

use crate::{
    fixture::{Fixture, Server, call, json_response, result},
    hostile::raw::{Raw, post},
    stdio::{client::Client, fake::Fake},
};

pub(crate) struct Log(PathBuf);

impl Log {
    pub(crate) fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("skep-audit-{name}-{}.log", std::process::id())))
    }

    /// The entries, once there are as many. An entry is written when the response has ended, which may be a moment after
    /// the client has all of it.
    pub(crate) async fn entries(&self, count: usize) -> Vec<Value> {
        let read = || -> Vec<Value> {
            let text = fs::read_to_string(&self.0).unwrap_or_default();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        for _ in 0..500 {
            if read().len() >= count {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        read()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

pub(crate) fn middleware(log: &Log, more: Value) -> Value {
    let mut config = json!({"logFile": log.0, "component": "files"});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let policies = ["permit(principal, action, resource) unless { resource == Tool::\"secret\" };"];
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    json!([
        {"type": "audit", "parameters": {"config_data": config, "transport_type": "streamable-http"}},
        {"type": "auth", "parameters": {}},
        {"type": "authorization", "parameters": {"config_data": document}},
    ])
}

#[tokio::test]
async fn each_request_is_one_entry_with_the_caller_the_target_and_the_outcome() {
    let log = Log::new("each");
    let server = Server::start(|request| match request.json()["params"]["name"].as_str() {
        Some("broken") => {
            json_response(json!({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}}))
        }
        Some("crash") => crate::fixture::status(500),
        _ => result(request, json!({"content": "a secret answer"})),
    })
    .await;
    let fixture = Fixture::new(&server, middleware(&log, json!({}))).await;
    let token = ("authorization", "Bearer a-secret-token");
    for name in ["read", "secret", "broken", "crash"] {
        fixture.post(&[token, ("user-agent", "tester/1")], &call("tools/call", json!({"name": name}))).await;
    }
    let entries = log.entries(4).await;
    let mode = fs::metadata(&log.0).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    let summary: Vec<_> = entries.iter().map(|entry| (&entry["target"]["name"], &entry["outcome"])).collect();
    let expected =
        [("read", "success"), ("secret", "denied"), ("broken", "application_error"), ("crash", "error")]
            .map(|(name, outcome)| (json!(name), json!(outcome)));
    assert_eq!(summary, expected.iter().map(|(name, outcome)| (name, outcome)).collect::<Vec<_>>());
    let error = &entries[2]["metadata"]["extra"];
    assert_eq!((&error["jsonrpc_error_code"], &error["jsonrpc_error_message"]), (&json!(1), &json!("no")));
    let first = &entries[0];
    assert_eq!(first["type"], "mcp_tool_call");
    assert_eq!(
        (&first["level"], &first["msg"], &first["component"]),
        (&json!("AUDIT"), &json!("audit_event"), &json!("files"))
    );
    assert_eq!(first["subjects"], json!({"user_id": "local", "user": "Local User: local"}));
    assert_eq!(first["source"]["value"], "127.0.0.1");
    assert_eq!(first["source"]["extra"]["user_agent"], "tester/1");
    assert!(first["metadata"]["extra"]["duration_ms"].is_u64());
    let text = fs::read_to_string(&log.0).unwrap();
    assert!(!text.contains("a-secret-token") && !text.contains("a secret answer"), "{text}");
}

#[tokio::test]
async fn bodies_are_logged_if_configured_and_event_types_can_be_excluded() {
    let log = Log::new("bodies");
    let server = Server::start(|request| result(request, json!({"x": 1}))).await;
    let more =
        json!({"includeRequestData": true, "includeResponseData": true, "excludeEventTypes": ["mcp_ping"]});
    let fixture = Fixture::new(&server, middleware(&log, more)).await;
    assert_eq!(fixture.post(&[], &call("ping", json!({}))).await.status, StatusCode::OK);
    fixture.post(&[], &call("tools/list", json!({}))).await;
    let entries = log.entries(1).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["data"]["request"]["method"], "tools/list");
    assert_eq!(entries[0]["data"]["response"]["result"], json!({"x": 1}));
}

#[tokio::test]
async fn a_request_whose_client_disconnects_before_the_response_is_logged() {
    let log = Log::new("disconnected");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let fixture = Fixture::before(listener.local_addr().unwrap(), middleware(&log, json!({}))).await;
    let mut client = Raw::new(fixture.address).await;
    let body = call("tools/call", json!({"name": "read"}));
    client.send(post(&[&format!("Content-Length: {}", body.len())], &body)).await;
    // The server has the request, and does not respond.
    let (mut server, _) = listener.accept().await.unwrap();
    tokio::io::AsyncReadExt::read_u8(&mut server).await.unwrap();
    drop(client);
    let entries = log.entries(1).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!((&entries[0]["target"]["name"], &entries[0]["outcome"]), (&json!("read"), &json!("failure")));
    assert_eq!(entries[0]["subjects"]["user_id"], "local");
    assert_eq!(entries[0]["metadata"]["extra"]["client_disconnected"], true);
}

#[tokio::test]
async fn what_is_rejected_before_or_while_it_is_read_is_logged() {
    let log = Log::new("rejected");
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(&log, json!({}))).await;
    let json = ("content-type", "application/json");
    for (method, headers, body, status) in [
        (Method::PUT, vec![], "", 405),
        (Method::POST, vec![json], "{", 400),
        (Method::POST, vec![("content-type", "text/plain")], "{}", 415),
        (Method::POST, vec![json], "", 400),
    ] {
        assert_eq!(fixture.send(method, "/mcp", &headers, body.as_bytes()).await.status, status);
    }
    let entries = log.entries(4).await;
    let outcomes: Vec<_> = entries.iter().map(|entry| (&entry["type"], &entry["outcome"])).collect();
    assert_eq!(outcomes, [(&json!("http_request"), &json!("failure")); 4]);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_entry_names_the_client_the_delegation_and_the_address_that_a_trusted_proxy_forwards() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let act = json!({"sub": "agent", "act": {"sub": "scheduler", "act": {"sub": "cron"}}});
    let token = provider.token(json!({"act": act, "client_name": "editor", "client_version": "1.2"}));
    let headers = [
        ("authorization", &*format!("Bearer {token}")),
        ("x-forwarded-for", "198.51.100.7, 10.0.0.1"),
        ("x-real-ip", "198.51.100.8"),
    ];
    for (trusted, source) in [(true, "10.0.0.1"), (false, "127.0.0.1")] {
        let log = Log::new(&format!("trusted-{trusted}"));
        let config = json!({"logFile": log.0, "maxDelegationDepth": 2});
        let chain = json!([
            {"type": "audit", "parameters": {"config_data": config, "transport_type": "streamable-http"}},
            {"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}},
        ]);
        let more = json!({"middleware_configs": chain, "trust_proxy_headers": trusted});
        let fixture = Fixture::with(&server, more).await;
        fixture
            .post(&headers, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())
            .await;
        let entries = log.entries(1).await;
        let entry = &entries[0];
        assert_eq!((&entry["source"]["value"], &entry["type"]), (&json!(source), &json!("mcp_request")));
        let subjects = json!({
            "user_id": "alice", "user": "anonymous", "client_name": "editor", "client_version": "1.2",
        });
        assert_eq!(entry["subjects"], subjects);
        assert_eq!(entry["delegation"], json!([{"sub": "agent"}, {"sub": "scheduler"}]));
    }
}

#[tokio::test]
async fn a_stream_is_logged_when_it_starts() {
    let log = Log::new("stream");
    let fake = Fake::echo();
    let audited = json!({"middleware_configs": middleware(&log, json!({}))});
    let fixture = fake.configured(audited, Duration::from_secs(20)).await;
    let client = Client::new(&fixture).await;
    let _open = client.listen().await;
    let entries = log.entries(3).await;
    let entry = &entries[2];
    assert_eq!((&entry["type"], &entry["outcome"]), (&json!("sse_connection"), &json!("success")));
    assert_eq!(
        (&entry["target"]["type"], &entry["target"]["endpoint"]),
        (&json!("sse_endpoint"), &json!("/mcp"))
    );
    assert_eq!(entry["metadata"]["extra"]["transport"], "streamable-http");
}

#[tokio::test]
async fn settings_in_a_file_are_used_and_a_missing_file_is_an_error() {
    let log = Log::new("settings");
    let file = std::env::temp_dir().join(format!("skep-audit-settings-{}.json", std::process::id()));
    fs::write(&file, json!({"logFile": log.0, "Component": "from the file"}).to_string()).unwrap();
    let server = Server::start(|request| result(request, json!({}))).await;
    let chain = |path: &std::path::Path| json!([{"type": "audit", "parameters": {"config_path": path}}]);
    let fixture = Fixture::new(&server, chain(&file)).await;
    fixture.post(&[], &call("ping", json!({}))).await;
    assert_eq!(log.entries(1).await[0]["component"], "from the file");
    fs::remove_file(&file).unwrap();
    let config = json!({
        "name": "a", "transport": "streamable-http", "target_port": 1, "middleware_configs": chain(&file),
    });
    let error = Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).err().unwrap().to_string();
    assert!(error.starts_with("audit: config_path: "), "{error}");
}

#[tokio::test]
async fn an_error_that_comes_as_an_event_or_is_long_is_no_success() {
    let log = Log::new("events");
    let server = Server::start(|request| {
        let name = request.json()["params"]["name"].as_str().unwrap().to_owned();
        let data = if name == "long" { "x".repeat(16 << 10) } else { String::new() };
        let error =
            json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32603, "message": "no", "data": data}});
        if name == "json" || name == "long" {
            return json_response(error);
        }
        let response = Response::builder().header("content-type", "text/event-stream");
        response.body(format!("data: {error}\n\n").into()).unwrap()
    })
    .await;
    let fixture = Fixture::new(&server, middleware(&log, json!({}))).await;
    for name in ["json", "event", "long"] {
        fixture.post(&[], &call("tools/call", json!({"name": name}))).await;
    }
    for entry in log.entries(3).await {
        let code = &entry["metadata"]["extra"]["jsonrpc_error_code"];
        assert_eq!((&entry["outcome"], code), (&json!("application_error"), &json!(-32603)), "{entry}");
    }
}

#[tokio::test]
async fn a_request_writes_no_more_than_a_few_texts_of_bounded_length() {
    let log = Log::new("long");
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(&log, json!({}))).await;
    let long = "x".repeat(40 << 10);
    fixture.post(&[("user-agent", &long)], &call("tools/call", json!({"name": long}))).await;
    fixture.post(&[("user-agent", &long)], &call(&long, json!({}))).await;
    for entry in log.entries(2).await {
        assert!(entry.to_string().len() < 8 << 10, "{} bytes", entry.to_string().len());
    }
}

#[tokio::test]
async fn the_address_of_a_client_is_the_one_that_the_nearest_proxy_names() {
    let log = Log::new("forwarded");
    let server = Server::start(|request| result(request, json!({}))).await;
    let more = json!({"trust_proxy_headers": true, "audit_config": {"logFile": log.0}});
    let fixture = Fixture::with(&server, more).await;
    let forged = "6.6.6.6, 203.0.113.9";
    for headers in [
        &[("x-forwarded-for", forged)][..],
        &[("x-forwarded-for", forged), ("x-real-ip", "6.6.6.6")],
        &[("x-real-ip", "203.0.113.9")],
    ] {
        fixture.post(headers, &call("ping", json!({}))).await;
    }
    fixture
        .post(&[("x-forwarded-for", "6.6.6.6, unknown"), ("x-real-ip", "6.6.6.6")], &call("ping", json!({})))
        .await;
    let entries = log.entries(4).await;
    let sources: Vec<_> = entries.iter().map(|entry| entry["source"]["value"].as_str().unwrap()).collect();
    assert_eq!(sources, ["203.0.113.9", "203.0.113.9", "203.0.113.9", "127.0.0.1"]);
}
