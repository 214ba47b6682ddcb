//! The transport of 2024-11-05 in front of a stdio server.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    client::{Events, STREAM, initialize, send},
    fake::{Act, Fake},
};
use crate::fixture::{Answer, Fixture, call};

/// A client with a stream and an endpoint.
struct Client<'a> {
    fixture: &'a Fixture,
    events: Events,
    path: String,
}

impl<'a> Client<'a> {
    async fn new(fixture: &'a Fixture) -> Self {
        let mut events = Events::new(send(fixture, Method::GET, "/sse", &[STREAM], "").await);
        let (kind, path) = events.event().await.unwrap();
        assert_eq!(kind, "endpoint");
        assert!(path.starts_with("/messages?session_id="), "{path}");
        let mut client = Self { fixture, events, path };
        client.send(&initialize("2024-11-05", json!({}))).await;
        assert_eq!(client.events.next().await.unwrap()["result"]["protocolVersion"], "2024-11-05");
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client
    }

    async fn post(&self, body: &str) -> Answer {
        let json = ("content-type", "application/json");
        self.fixture.send(Method::POST, &self.path, &[json], body.as_bytes()).await
    }

    async fn send(&self, body: &str) {
        let answer = self.post(body).await;
        assert_eq!((answer.status, &*answer.body), (StatusCode::ACCEPTED, &b"Accepted"[..]));
    }
}

async fn proxy(fake: &Fake, patience: Duration) -> Fixture {
    fake.configured(json!({"proxy_mode": "sse"}), patience).await
}

#[tokio::test]
async fn each_client_gets_its_own_responses_on_its_own_stream() {
    let fake = Fake::echo();
    let fixture = proxy(&fake, Duration::from_secs(20)).await;
    let (mut one, mut two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    for turn in 0..10 {
        for (client, name) in [(&one, "one"), (&two, "two")] {
            client.send(&call("tools/call", json!({"name": name, "turn": turn}))).await;
        }
    }
    for turn in 0..10 {
        for (client, name) in [(&mut one, "one"), (&mut two, "two")] {
            let answer = client.events.next().await.unwrap();
            assert_eq!(answer["result"]["echo"], json!({"name": name, "turn": turn}));
            assert_eq!(answer["id"], 7);
        }
    }
    assert_eq!(fake.methods().iter().filter(|method| *method == "initialize").count(), 1);
}

#[tokio::test]
async fn a_session_ends_with_its_stream() {
    let fake = Fake::echo();
    let fixture = proxy(&fake, Duration::from_secs(20)).await;
    let (one, two) = (Client::new(&fixture).await, Client::new(&fixture).await);
    one.send(&call("resources/subscribe", json!({"uri": "file:///a"}))).await;
    let Client { events, path, .. } = one;
    drop(events);
    fake.received_method("resources/unsubscribe").await;
    let ended = Client { fixture: &fixture, path, events: two.events };
    let answer = ended.post(&call("ping", json!({}))).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (StatusCode::NOT_FOUND, json!(-32001))
    );
    for (method, path, expected) in [
        (Method::POST, "/messages", StatusCode::BAD_REQUEST),
        (Method::POST, "/sse", StatusCode::METHOD_NOT_ALLOWED),
        (Method::GET, "/messages", StatusCode::METHOD_NOT_ALLOWED),
        (Method::GET, "/mcp", StatusCode::NOT_FOUND),
    ] {
        let body = if method == Method::POST { call("ping", json!({})) } else { String::new() };
        let json = [("content-type", "application/json")];
        let answer = fixture.send(method.clone(), path, &json, body.as_bytes()).await;
        assert_eq!(answer.status, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn errors_are_sent_on_the_stream() {
    let fake = Fake::new(|received| match received.method() {
        "die" => vec![Act::Die],
        _ => Vec::new(),
    });
    let fixture = proxy(&fake, Duration::from_secs(2)).await;
    let mut client = Client::new(&fixture).await;
    for (method, code) in [("wait", -32000), ("die", -32603)] {
        client.send(&call(method, json!({}))).await;
        let error: Value = client.events.next().await.unwrap();
        assert_eq!((error["id"].clone(), error["error"]["code"].clone()), (json!(7), json!(code)));
    }
    let report = fixture.send(Method::GET, "/health", &[], b"").await;
    assert_eq!(report.json()["transport"], "stdio");
}

#[tokio::test]
async fn the_endpoint_is_relative_unless_a_trusted_proxy_names_the_host() {
    let fake = Fake::echo();
    let config = json!({"proxy_mode": "sse", "trust_proxy_headers": true});
    let fixture = fake.configured(config, Duration::from_secs(20)).await;
    let headers = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "mcp.example"),
        ("x-forwarded-prefix", "/team/files"),
    ];
    let mut events = Events::new(send(&fixture, Method::GET, "/sse", &headers, "").await);
    let (_, address) = events.event().await.unwrap();
    assert!(address.starts_with("https://mcp.example/team/files/messages?session_id="), "{address}");
}

#[tokio::test]
async fn a_client_that_tries_the_newest_revision_first_gets_an_error_on_its_stream() {
    let fake = Fake::new(|received| {
        let error = json!({"code": -32601, "message": "no such method"});
        vec![Act::Send(json!({"jsonrpc": "2.0", "id": received.json["id"], "error": error}).to_string())]
    });
    let fixture = proxy(&fake, Duration::from_secs(20)).await;
    let mut client = Client::new(&fixture).await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    // The transport has no headers that could mirror it.
    client.send(&call("server/discover", json!({"_meta": meta}))).await;
    assert_eq!(client.events.next().await.unwrap()["error"]["code"], -32601);
}
