//! Authentication of callers, and the responses to unauthenticated ones.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use crate::{
    fixture::{Answer, Fixture, Server, call, initialize, result, session_id},
    stdio::{
        client::{Events, STREAM, send},
        fake::Fake,
    },
};

fn middleware(oidc: Value) -> Value {
    json!([{"type": "auth", "parameters": {"oidc_config": oidc}}, {"type": "mcp-parser", "parameters": {}}])
}

async fn list_tools(fixture: &Fixture, authorization: &[&str]) -> Answer {
    let headers: Vec<_> = authorization.iter().map(|value| ("authorization", *value)).collect();
    fixture.post(&headers, &call("tools/list", json!({}))).await
}

fn challenge(answer: &Answer) -> &str {
    answer.headers["www-authenticate"].to_str().unwrap()
}

#[tokio::test]
async fn only_a_caller_with_a_valid_token_reaches_the_server() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(provider.oidc(json!({})))).await;
    let good = format!("Bearer {}", provider.token(json!({})));
    assert_eq!(list_tools(&fixture, &[&good]).await.status, StatusCode::OK);
    let small = good.replacen("Bearer", "bearer", 1);
    assert_eq!(list_tools(&fixture, &[&small]).await.status, StatusCode::OK);
    let signed = |claims: Value| format!("Bearer {}", provider.token(claims));
    let headed = |header: Value| format!("Bearer {}", provider.token_with(header, json!({})));
    let table = [
        ("nothing", vec![], "invalid_request"),
        ("two tokens", vec![good.clone(), good.clone()], "invalid_request"),
        ("a password", vec!["Basic YTpi".into()], "invalid_request"),
        ("a huge token", vec![signed(json!({"x": "x".repeat(40 << 10)}))], "invalid_request"),
        ("no signature", vec![headed(json!({"alg": "none"}))], "invalid_token"),
        ("a shared secret", vec![headed(json!({"alg": "HS256"}))], "invalid_token"),
        ("an unknown key", vec![headed(json!({"kid": "forged"}))], "invalid_token"),
        ("another issuer", vec![signed(json!({"iss": "https://evil.example"}))], "invalid_token"),
        ("another audience", vec![signed(json!({"aud": "hr"}))], "invalid_token"),
        ("expired", vec![signed(json!({"exp": 1}))], "invalid_token"),
        ("no subject", vec![signed(json!({"sub": null}))], "invalid_token"),
        ("a bare word", vec!["Bearer word".into()], "invalid_token"),
    ];
    for (what, values, code) in table {
        let values: Vec<_> = values.iter().map(String::as_str).collect();
        let answer = list_tools(&fixture, &values).await;
        let body = answer.json();
        assert_eq!((answer.status, &body["error"]), (StatusCode::UNAUTHORIZED, &json!(code)), "{what}");
        assert!(challenge(&answer).contains(&format!(r#"error="{code}""#)), "{what}");
        assert!(!body["error_description"].as_str().unwrap().is_empty(), "{what}");
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_challenge_names_the_metadata_and_the_metadata_names_the_issuer() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let oidc = provider.oidc(json!({"Scopes": ["openid", "crm"]}));
    let fixture = Fixture::new(&server, middleware(oidc)).await;
    let expired = format!("Bearer {}", provider.token(json!({"exp": 1})));
    let answer = list_tools(&fixture, &[&expired]).await;
    let expected = format!(
        "Bearer realm=\"{}\", resource_metadata=\"https://crm.example/.well-known/oauth-protected-resource/mcp\", \
         scope=\"openid crm\", error=\"invalid_token\", error_description=\"the token has expired\"",
        provider.issuer
    );
    assert_eq!(challenge(&answer), expected);
    let body = json!({"error": "invalid_token", "error_description": "the token has expired"});
    assert_eq!(answer.json(), body);

    let described = json!({
        "resource": "https://crm.example/mcp", "authorization_servers": [provider.issuer],
        "bearer_methods_supported": ["header"], "scopes_supported": ["openid", "crm"],
    });
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let answer = fixture.send(Method::GET, path, &[("origin", "https://app.example")], b"").await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, described.clone()), "{path}");
        assert_eq!(answer.headers["access-control-allow-origin"], "https://app.example");
        assert_eq!(answer.headers["content-type"], "application/json");
    }
    let path = "/.well-known/oauth-protected-resource";
    let answer = fixture.send(Method::OPTIONS, path, &[], b"").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET, OPTIONS"),
        ("access-control-allow-headers", "mcp-protocol-version, Content-Type, Authorization"),
        ("access-control-max-age", "86400"),
    ] {
        assert_eq!(answer.headers[name], value);
    }
    for path in ["/.well-known/oauth-protected-resourceful", "/.well-known/other"] {
        assert_eq!(fixture.send(Method::GET, path, &[], b"").await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_proxy_without_a_resource_url_or_without_tokens_has_no_metadata() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let local = json!([{"type": "auth", "parameters": {}}]);
    for middleware in [middleware(provider.oidc(json!({"ResourceURL": ""}))), local] {
        let fixture = Fixture::new(&server, middleware).await;
        let answer = fixture.send(Method::GET, "/.well-known/oauth-protected-resource", &[], b"").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn policies_see_the_claims_of_the_token() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let policies =
        [r#"permit(principal == Client::"alice", action, resource) when { principal.claim_team == "crm" };"#];
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies, "entities_json": "[]"}});
    let middleware = json!([
        {"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}},
        {"type": "authorization", "parameters": {"config_data": document}},
    ]);
    let fixture = Fixture::new(&server, middleware).await;
    for (claims, expected) in [
        (json!({"team": "crm"}), StatusCode::OK),
        (json!({"team": "hr"}), StatusCode::FORBIDDEN),
        (json!({"team": "crm", "sub": "bob"}), StatusCode::FORBIDDEN),
    ] {
        let token = format!("Bearer {}", provider.token(claims.clone()));
        let answer =
            fixture.post(&[("authorization", &token)], &call("tools/call", json!({"name": "a"}))).await;
        assert_eq!(answer.status, expected, "{claims}");
    }
}

#[tokio::test]
async fn an_unavailable_issuer_is_reported_as_unavailable() {
    let provider = IdentityProvider::start().await;
    provider.down();
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(provider.oidc(json!({})))).await;
    let answer = list_tools(&fixture, &[&format!("Bearer {}", provider.token(json!({})))]).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        (&answer.headers["retry-after"], answer.headers.get("www-authenticate")),
        (&"2".parse().unwrap(), None)
    );
    assert!(server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotation_under_load_loses_no_valid_request() {
    let provider = Arc::new(IdentityProvider::start().await);
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Arc::new(Fixture::new(&server, middleware(provider.oidc(json!({})))).await);
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (provider, fixture) = (provider.clone(), fixture.clone());
            tokio::spawn(async move {
                for _ in 0..40 {
                    let token = format!("Bearer {}", provider.token(json!({})));
                    assert_eq!(list_tools(&fixture, &[&token]).await.status, StatusCode::OK);
                    tokio::time::sleep(Duration::from_millis(40)).await;
                }
            })
        })
        .collect();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        provider.rotate();
    }
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(server.requests().len(), 320);
}

fn token_exchange(provider: &IdentityProvider, changes: Value) -> Value {
    let mut exchange = json!({"token_url": format!("{}/token", provider.issuer), "client_id": "proxy", "client_secret": "s"});
    exchange.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    json!([
        {"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}},
        {"type": "tokenexchange", "parameters": {"token_exchange_config": exchange}},
    ])
}

#[tokio::test]
async fn the_server_receives_the_exchanged_token() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, token_exchange(&provider, json!({}))).await;
    let token = provider.token(json!({}));
    for _ in 0..3 {
        assert_eq!(list_tools(&fixture, &[&format!("Bearer {token}")]).await.status, StatusCode::OK);
    }
    for request in server.requests() {
        assert_eq!(request.header("authorization"), Some("Bearer exchanged-1"));
    }
    assert_eq!(provider.requests("/token").len(), 1, "it is exchanged once");
    assert_eq!(provider.requests("/token")[0].form["subject_token"], token);
    assert_eq!(list_tools(&fixture, &["Bearer wrong"]).await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(provider.requests("/token").len(), 1, "an invalid token is not exchanged");

    let custom = json!({"header_strategy": "custom", "external_token_header_name": "X-Upstream-Token"});
    let fixture = Fixture::new(&server, token_exchange(&provider, custom)).await;
    let own = format!("Bearer {token}");
    assert_eq!(list_tools(&fixture, &[&own]).await.status, StatusCode::OK);
    let request = server.requests().pop().unwrap();
    assert_eq!(
        (request.header("authorization"), request.header("x-upstream-token")),
        (Some(own.as_str()), Some("Bearer exchanged-2"))
    );
}

#[tokio::test]
async fn a_token_that_cannot_be_exchanged_is_not_forwarded() {
    let provider = IdentityProvider::start().await;
    provider.answer("/token", json!({"status": 400}));
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, token_exchange(&provider, json!({}))).await;
    let answer = list_tools(&fixture, &[&format!("Bearer {}", provider.token(json!({})))]).await;
    assert_eq!(
        (answer.status, &answer.body[..]),
        (StatusCode::UNAUTHORIZED, &b"Token exchange failed\n"[..])
    );
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_stream_that_a_caller_listens_to_ends_with_its_token() {
    let provider = IdentityProvider::start().await;
    let fake = Fake::echo();
    let auth = json!({"middleware_configs": middleware(provider.oidc(json!({})))});
    let fixture = fake.configured(auth, Duration::from_secs(20)).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let brief = format!("Bearer {}", provider.token(json!({"exp": now + 2})));
    let long = format!("Bearer {}", provider.token(json!({})));
    let started = fixture.post(&[("authorization", &brief)], &initialize()).await;
    let id = session_id(&started);
    let listen = async |bearer: &str| {
        let headers = [("authorization", bearer), ("mcp-session-id", &*id), STREAM];
        Events::new(send(&fixture, Method::GET, "/mcp", &headers, "").await)
    };
    assert_eq!(listen(&brief).await.next().await, None, "it ended, without a message");
    let mut renewed = listen(&long).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    fake.send(changed.clone());
    renewed.expect(changed).await;
}

#[tokio::test]
async fn the_metadata_is_served_also_where_the_chain_follows_from_typed_fields() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::with(&server, json!({"oidc_config": provider.oidc(json!({}))})).await;
    let answer = fixture.send(Method::GET, "/.well-known/oauth-protected-resource", &[], b"").await;
    assert_eq!(
        (answer.status, &answer.json()["resource"]),
        (StatusCode::OK, &json!("https://crm.example/mcp"))
    );
}
