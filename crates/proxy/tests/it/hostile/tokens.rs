//! Tokens and metadata that refer to other hosts. The validation of tokens is tested in `authentication.rs` and in
//! `skep-auth`.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, Signing};

use super::raw::{Raw, post};
use crate::fixture::{Fixture, Server, call, result};

fn middleware(oidc: Value) -> Value {
    json!([{"type": "auth", "parameters": {"oidc_config": oidc}}])
}

async fn status(fixture: &Fixture, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    let answer = fixture.post(&[("authorization", &bearer)], &call("ping", json!({}))).await;
    answer.status.as_u16()
}

#[tokio::test]
async fn a_token_cannot_name_the_location_of_its_key() {
    let (provider, evil) = (IdentityProvider::start().await, IdentityProvider::start().await);
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(provider.oidc(json!({})))).await;
    assert_eq!(status(&fixture, &provider.token(json!({}))).await, 200);
    let key = Signing::ecdsa("evil");
    let elsewhere = format!("{}/keys", evil.issuer);
    let claims = provider.claims(json!({"sub": "admin"}));
    for changes in [
        json!({"jku": elsewhere}),
        json!({"x5u": elsewhere}),
        json!({"jwk": key.public()}),
        json!({"jku": elsewhere, "kid": "key-1"}),
        json!({"jwk": key.public(), "kid": "key-1"}),
        json!({"jwk": key.public(), "kid": null}),
        json!({"x5c": ["MIIB"], "kid": "key-1"}),
        json!({"kid": elsewhere}),
        json!({"kid": "../../../../dev/null"}),
        json!({"kid": "/dev/null"}),
        json!({"kid": "key-1\u{0}"}),
        json!({"kid": "key-1' or '1'='1"}),
        json!({"kid": ""}),
        json!({"kid": "k".repeat(10_000)}),
        json!({"alg": "none"}),
        json!({"alg": "HS256"}),
        json!({"alg": "ES256", "crit": ["exp"]}),
    ] {
        let mut header = key.header();
        header.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        assert_eq!(status(&fixture, &key.token(&header, &claims)).await, 401, "{changes}");
    }
    // The other one is an issuer, too, but not the configured one.
    assert_eq!(status(&fixture, &evil.token(json!({}))).await, 401);
    assert_eq!(status(&fixture, &evil.token(json!({"iss": provider.issuer}))).await, 401);
    for path in ["/keys", "/.well-known/openid-configuration"] {
        assert!(evil.requests(path).is_empty(), "{path}");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn metadata_with_another_host_is_followed_only_if_that_is_allowed() {
    let (provider, victim) = (IdentityProvider::start().await, IdentityProvider::start().await);
    let server = Server::start(|request| result(request, json!({}))).await;
    let configuration = "/.well-known/openid-configuration";
    let keys = format!("{}/keys", victim.issuer);
    for (what, answer) in [
        ("a redirect", json!({"status": 302, "location": format!("{}{configuration}", victim.issuer)})),
        ("another issuer's description", json!({"issuer": victim.issuer, "jwks_uri": keys})),
        ("a file", json!({"issuer": provider.issuer, "jwks_uri": "file:///etc/passwd"})),
        ("another scheme", json!({"issuer": provider.issuer, "jwks_uri": "gopher://127.0.0.1/keys"})),
    ] {
        provider.answer(configuration, answer);
        let fixture = Fixture::new(&server, middleware(provider.oidc(json!({})))).await;
        assert_eq!(status(&fixture, &provider.token(json!({}))).await, 503, "{what}");
    }
    provider.answer(configuration, Value::Null);
    provider.answer("/keys", json!({"status": 307, "location": keys}));
    let fixture = Fixture::new(&server, middleware(provider.oidc(json!({})))).await;
    assert_eq!(status(&fixture, &provider.token(json!({}))).await, 503, "keys elsewhere");
    for path in ["/keys", configuration] {
        assert!(victim.requests(path).is_empty(), "{path}");
    }
    // An issuer that is trusted may keep its keys at another host, as several do; a private one only if that is allowed.
    provider.answer(configuration, json!({"issuer": provider.issuer, "jwks_uri": keys}));
    let fixture = Fixture::new(&server, middleware(provider.oidc(json!({})))).await;
    assert_eq!(status(&fixture, &provider.token(json!({}))).await, 401, "its keys are not the victim's");
    assert_eq!(victim.requests("/keys").len(), 1);
    let private = json!({"AllowPrivateIP": false});
    let fixture = Fixture::new(&server, middleware(provider.oidc(private))).await;
    assert_eq!(status(&fixture, &provider.token(json!({}))).await, 503, "a private address");
    assert_eq!(victim.requests("/keys").len(), 1);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn host_headers_do_not_change_the_challenge_or_the_metadata() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, middleware(provider.oidc(json!({})))).await;
    let plain = fixture.post(&[], &call("ping", json!({}))).await.headers["www-authenticate"].clone();
    let page = "/.well-known/oauth-protected-resource";
    let metadata = fixture.send(Method::GET, page, &[], b"").await.json();
    for headers in [
        vec![("host", "evil.example")],
        vec![("host", "evil.example\", error=\"x")],
        vec![("x-forwarded-host", "evil.example"), ("x-forwarded-proto", "http")],
        vec![("forwarded", "host=evil.example"), ("x-forwarded-prefix", "/evil")],
        vec![("x-original-url", "/evil"), ("x-rewrite-url", "/evil")],
    ] {
        let answer = fixture.post(&headers, &call("ping", json!({}))).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{headers:?}");
        assert_eq!(answer.headers["www-authenticate"], plain, "{headers:?}");
        assert_eq!(fixture.send(Method::GET, page, &headers, b"").await.json(), metadata, "{headers:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_caller_is_authenticated_before_its_body_is_read() {
    let provider = IdentityProvider::start().await;
    let server = Server::start(|request| result(request, json!({}))).await;
    let auth = json!([{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}]);
    let fixture = Fixture::new(&server, auth).await;
    // Of the body, nothing is sent.
    let mut stranger = Raw::new(fixture.address).await;
    stranger.send(post(&["Content-Length: 1000000"], "")).await;
    let reply = stranger.reply().await.unwrap();
    assert_eq!(reply.status, 401);
    assert!(server.requests().is_empty());
}
