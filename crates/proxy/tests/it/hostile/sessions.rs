//! Sessions that are not the caller's.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use crate::{
    fixture::{Answer, Fixture, Server, begun, call, result, status},
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

    async fn sent(&self, method: Method, session: &str) -> http::Response<hyper::body::Incoming> {
        let headers = [STREAM, ("authorization", &*self.bearer), ("mcp-session-id", session)];
        send(self.fixture, method, "/mcp", &headers, "").await
    }

    async fn begin(&self) -> String {
        let abilities = json!({"sampling": {}, "roots": {}, "elicitation": {}});
        let answer =
            self.fixture.post(&[("authorization", &self.bearer)], &initialize("2025-11-25", abilities)).await;
        assert_eq!(answer.status, StatusCode::OK);
        let session = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.post(&session, ready).await.status, StatusCode::ACCEPTED);
        session
    }
}

fn refused(answer: &Answer) -> (u16, Value) {
    (answer.status.as_u16(), answer.json()["error"]["code"].clone())
}

#[tokio::test]
async fn a_session_is_of_who_began_it_and_nobody_else_can_use_hear_or_end_it() {
    let provider = IdentityProvider::start().await;
    let fake = Fake::new(|heard| match (heard.method(), heard.json.get("id")) {
        ("wait", _) | (_, None) | ("", _) => Vec::new(),
        _ => vec![heard.result(json!({}))],
    });
    let middleware = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    let fixture = fake.configured(json!({"middleware_configs": middleware}), Duration::from_secs(20)).await;
    let caller = |claims| Caller { fixture: &fixture, bearer: format!("Bearer {}", provider.token(claims)) };
    let (alice, bob) = (caller(json!({"sub": "alice"})), caller(json!({"sub": "bob"})));
    let (of_alice, of_bob) = (alice.begin().await, bob.begin().await);
    assert_ne!(of_alice, of_bob);
    let mut hears = Events::new(alice.sent(Method::GET, &of_alice).await);
    let before = fake.heard().len();

    let gone = (404, json!(-32001));
    for (intruder, session) in [(&bob, &of_alice), (&alice, &of_bob)] {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        for body in [call("ping", json!({})), cancel.to_string(), answer.to_string()] {
            assert_eq!(refused(&intruder.post(session, &body).await), gone, "{body}");
        }
        for method in [Method::GET, Method::DELETE] {
            assert_eq!(intruder.sent(method, session).await.status(), StatusCode::NOT_FOUND);
        }
    }
    let stranger = fixture.post(&[("mcp-session-id", &of_alice)], &call("ping", json!({}))).await;
    assert_eq!(stranger.status, StatusCode::UNAUTHORIZED);
    assert_eq!(fake.heard().len(), before, "the server has heard nothing of all this");

    // What alice is told, bob is not: neither her answers, nor what the server asks her.
    let mut waits = Events::new(
        send(
            &fixture,
            Method::POST,
            "/mcp",
            &[STREAM, ("authorization", &alice.bearer), ("mcp-session-id", &of_alice)],
            &call("wait", json!({})),
        )
        .await,
    );
    let mut bob_hears = Events::new(bob.sent(Method::GET, &of_bob).await);
    let number = fake.heard_method("wait").await.json["id"].clone();
    fake.say(json!({"jsonrpc": "2.0", "id": number, "result": {"secret": 1}}));
    waits.expect(json!({"jsonrpc": "2.0", "id": 7, "result": {"secret": 1}})).await;
    let marker = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    fake.say(marker.clone());
    bob_hears.expect(marker.clone()).await;
    hears.expect(marker).await;

    // Another token of the same person is the same person, and the session is as it was.
    let again = caller(json!({"sub": "alice", "jti": "2"}));
    assert_eq!(again.post(&of_alice, &call("ping", json!({}))).await.status, StatusCode::OK);
    assert_eq!(again.sent(Method::DELETE, &of_alice).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(refused(&alice.post(&of_alice, &call("ping", json!({}))).await), gone);
    assert_eq!(bob.post(&of_bob, &call("ping", json!({}))).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_at_an_http_server_is_of_who_began_it_and_nobody_else_reaches_it() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|got| match got.json()["method"].as_str() {
        Some("initialize") => begun(got, "hers"),
        Some("notifications/initialized") => status(202),
        _ if got.method == Method::DELETE => status(204),
        _ => result(got, json!({})),
    })
    .await;
    let middleware = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    let fixture = Fixture::new(&server, middleware).await;
    let caller = |claims| Caller { fixture: &fixture, bearer: format!("Bearer {}", provider.token(claims)) };
    let (alice, bob) = (caller(json!({"sub": "alice"})), caller(json!({"sub": "bob"})));
    let hers = alice.begin().await;
    let before = server.got().len();
    // Whose one is that this proxy did not begin, it does not know.
    assert_eq!(refused(&alice.post("from-before", &call("ping", json!({}))).await), (404, json!(-32001)));
    assert_eq!(refused(&bob.post(&hers, &call("ping", json!({}))).await), (404, json!(-32001)));
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(bob.sent(method, &hers).await.status(), StatusCode::NOT_FOUND);
    }
    assert_eq!(server.got().len(), before, "the server has heard nothing of this");

    let again = caller(json!({"sub": "alice", "jti": "2"}));
    assert_eq!(again.post(&hers, &call("ping", json!({}))).await.status, StatusCode::OK);
    assert_eq!(again.sent(Method::DELETE, &hers).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn an_id_that_is_forged_or_none_at_all_is_no_session() {
    let server = Server::start(|_| status(404)).await;
    let fake = Fake::echo();
    let long = "x".repeat(40_000);
    for fixture in [Fixture::new(&server, json!([])).await, fake.proxied().await] {
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
                refused(&answer),
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
        assert_eq!(refused(&fixture.post(&twice, &call("ping", json!({}))).await), (404, json!(-32001)));
    }
    // A server behind HTTP may know a session from before this proxy, so it is asked, unless there can be none of that id.
    let asked = |id: &str| server.got().iter().any(|got| got.header("mcp-session-id") == Some(id));
    assert!(asked("forged") && !["", "a b", "a", &long[..1025], &long].into_iter().any(asked));
    assert!(fake.heard().is_empty());
}
