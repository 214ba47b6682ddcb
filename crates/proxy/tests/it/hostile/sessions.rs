//! Sessions that are not the caller's.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use crate::{
    fixture::{Answer, Fixture, Server, call, initialize_response, result, status},
    stdio::{
        client::{Events, STREAM, initialize, send},
        fake::Fake,
    },
};

/// A caller with a token, who may use any session id.
struct Caller<'a> {
    fixture: &'a Fixture,
    bearer: String,
}

impl Caller<'_> {
    async fn post(&self, session: &str, body: &str) -> Answer {
        self.fixture.post(&[("authorization", &self.bearer), ("mcp-session-id", session)], body).await
    }

    async fn send(&self, method: Method, session: &str) -> http::Response<hyper::body::Incoming> {
        let headers = [STREAM, ("authorization", &*self.bearer), ("mcp-session-id", session)];
        send(self.fixture, method, "/mcp", &headers, "").await
    }

    async fn initialize(&self) -> String {
        let capabilities = json!({"sampling": {}, "roots": {}, "elicitation": {}});
        let answer = self
            .fixture
            .post(&[("authorization", &self.bearer)], &initialize("2025-11-25", capabilities))
            .await;
        assert_eq!(answer.status, StatusCode::OK);
        let session = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.post(&session, ready).await.status, StatusCode::ACCEPTED);
        session
    }
}

fn error_of(answer: &Answer) -> (u16, Value) {
    (answer.status.as_u16(), answer.json()["error"]["code"].clone())
}

#[tokio::test]
async fn only_its_caller_can_use_listen_to_or_end_a_session() {
    let provider = IdentityProvider::start().await;
    let fake = Fake::new(|received| match (received.method(), received.json.get("id")) {
        ("wait", _) | (_, None) | ("", _) => Vec::new(),
        _ => vec![received.result(json!({}))],
    });
    let middleware = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    let fixture = fake.configured(json!({"middleware_configs": middleware}), Duration::from_secs(20)).await;
    let caller = |claims| Caller { fixture: &fixture, bearer: format!("Bearer {}", provider.token(claims)) };
    let (alice, bob) = (caller(json!({"sub": "alice"})), caller(json!({"sub": "bob"})));
    let (of_alice, of_bob) = (alice.initialize().await, bob.initialize().await);
    assert_ne!(of_alice, of_bob);
    let mut alice_stream = Events::new(alice.send(Method::GET, &of_alice).await);
    let before = fake.received().len();

    let not_found = (404, json!(-32001));
    for (intruder, session) in [(&bob, &of_alice), (&alice, &of_bob)] {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        for body in [call("ping", json!({})), cancel.to_string(), answer.to_string()] {
            assert_eq!(error_of(&intruder.post(session, &body).await), not_found, "{body}");
        }
        for method in [Method::GET, Method::DELETE] {
            assert_eq!(intruder.send(method, session).await.status(), StatusCode::NOT_FOUND);
        }
    }
    let stranger = fixture.post(&[("mcp-session-id", &of_alice)], &call("ping", json!({}))).await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    assert_eq!(fake.received().len(), before, "the server received nothing");

    // Bob receives neither alice's responses nor the server's requests to her.
    let mut response = Events::new(
        send(
            &fixture,
            Method::POST,
            "/mcp",
            &[STREAM, ("authorization", &alice.bearer), ("mcp-session-id", &of_alice)],
            &call("wait", json!({})),
        )
        .await,
    );
    let mut bob_stream = Events::new(bob.send(Method::GET, &of_bob).await);
    let number = fake.received_method("wait").await.json["id"].clone();
    fake.send(json!({"jsonrpc": "2.0", "id": number, "result": {"secret": 1}}));
    response.expect(json!({"jsonrpc": "2.0", "id": 7, "result": {"secret": 1}})).await;
    let marker = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    fake.send(marker.clone());
    bob_stream.expect(marker.clone()).await;
    alice_stream.expect(marker).await;

    // Another token of the same subject may use the session, which is unchanged.
    let again = caller(json!({"sub": "alice", "jti": "2"}));
    assert_eq!(again.post(&of_alice, &call("ping", json!({}))).await.status, StatusCode::OK);
    assert_eq!(again.send(Method::DELETE, &of_alice).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(error_of(&alice.post(&of_alice, &call("ping", json!({}))).await), not_found);
    assert_eq!(bob.post(&of_bob, &call("ping", json!({}))).await.status, StatusCode::OK);
}

#[tokio::test]
async fn only_its_caller_can_use_a_session_of_an_http_server() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| match request.json()["method"].as_str() {
        Some("initialize") => initialize_response(request, "hers"),
        Some("notifications/initialized") => status(202),
        _ if request.method == Method::DELETE => status(204),
        _ => result(request, json!({})),
    })
    .await;
    let middleware = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    let fixture = Fixture::new(&server, middleware).await;
    let caller = |claims| Caller { fixture: &fixture, bearer: format!("Bearer {}", provider.token(claims)) };
    let (alice, bob) = (caller(json!({"sub": "alice"})), caller(json!({"sub": "bob"})));
    let hers = alice.initialize().await;
    let before = server.requests().len();
    // The proxy does not know the owner of a session that it did not start.
    assert_eq!(error_of(&alice.post("from-before", &call("ping", json!({}))).await), (404, json!(-32001)));
    assert_eq!(error_of(&bob.post(&hers, &call("ping", json!({}))).await), (404, json!(-32001)));
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(bob.send(method, &hers).await.status(), StatusCode::NOT_FOUND);
    }
    assert_eq!(server.requests().len(), before, "the server received nothing");

    let again = caller(json!({"sub": "alice", "jti": "2"}));
    assert_eq!(again.post(&hers, &call("ping", json!({}))).await.status, StatusCode::OK);
    assert_eq!(again.send(Method::DELETE, &hers).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_forged_or_malformed_id_is_no_session() {
    let server = Server::start(|_| status(404)).await;
    let fake = Fake::echo();
    let long = "x".repeat(40_000);
    for fixture in [Fixture::new(&server, json!([])).await, fake.proxy().await] {
        let ids = [
            "",
            "forged",
            "../../etc/passwd",
            "%00",
            "a b",
            "a,b",
            "\u{e9}",
            "0",
            "null",
            "*",
            &long[..1025],
            &long,
        ];
        for id in ids {
            let answer = fixture.post(&[("mcp-session-id", id)], &call("ping", json!({}))).await;
            assert_eq!(
                error_of(&answer),
                (404, json!(-32001)),
                "{} bytes: {}",
                id.len(),
                &id[..id.len().min(20)]
            );
            for method in [Method::GET, Method::DELETE] {
                let headers = [STREAM, ("mcp-session-id", id)];
                let answer = fixture.send(method, "/mcp", &headers, b"").await;
                assert_eq!(answer.status, StatusCode::NOT_FOUND);
            }
        }
        let twice = [("mcp-session-id", "a"), ("mcp-session-id", "a")];
        assert_eq!(error_of(&fixture.post(&twice, &call("ping", json!({}))).await), (404, json!(-32001)));
    }
    // An HTTP server may know a session from before this proxy, so the request is forwarded, unless the id is malformed.
    let is_forwarded =
        |id: &str| server.requests().iter().any(|request| request.header("mcp-session-id") == Some(id));
    assert!(is_forwarded("forged") && !["", "a b", "a", &long[..1025], &long].into_iter().any(is_forwarded));
    assert!(fake.received().is_empty());
}
