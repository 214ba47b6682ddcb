//! Opaque tokens.

use serde_json::{Value, json};
use skep_auth::{AuthenticationError, Pace};
use skep_testkit::IdentityProvider;

use crate::fixture::Fixture;

const INTROSPECT: &str = "/introspect";

fn fixture(provider: &IdentityProvider) -> Fixture {
    let changes = json!({
        "IntrospectionURL": format!("{}{INTROSPECT}", provider.issuer), "ClientID": "crm client", "ClientSecret": "s:1",
    });
    Fixture::with(provider, changes, Pace::default())
}

#[tokio::test]
async fn an_opaque_token_is_introspected_at_its_issuer() {
    let provider = IdentityProvider::start().await;
    let fixture = fixture(&provider);
    provider.issue("opaque", provider.claims(json!({"scope": "read", "client_id": "x", "username": "a"})));
    let identity = fixture.check("opaque").await.unwrap();
    assert_eq!(identity.subject, "alice");
    let mut kept: Vec<_> = identity.claims.keys().map(String::as_str).collect();
    kept.sort_unstable();
    assert_eq!(kept, ["aud", "exp", "iss", "scope", "sub"]);
    let requests = provider.requests(INTROSPECT);
    // "crm+client:s%3A1"
    assert_eq!(requests[0].headers["authorization"], "Basic Y3JtK2NsaWVudDpzJTNBMQ==");
    assert_eq!(
        (requests[0].form["token"].as_str(), requests[0].form["token_type_hint"].as_str()),
        ("opaque", "access_token")
    );
}

#[tokio::test]
async fn an_active_token_is_cached_and_an_inactive_one_is_not() {
    let provider = IdentityProvider::start().await;
    let fixture = fixture(&provider);
    let unknown = AuthenticationError::Token("the issuer does not know the token, or it has expired");
    for _ in 0..2 {
        assert_eq!(fixture.check("opaque").await, Err(unknown));
    }
    provider.issue("opaque", provider.claims(json!({})));
    for _ in 0..10 {
        assert!(fixture.check("opaque").await.is_ok());
    }
    provider.revoke("opaque");
    assert!(fixture.check("opaque").await.is_ok(), "for half a minute");
    assert_eq!(provider.requests(INTROSPECT).len(), 3);
    assert_eq!(fixture.check("opaque2").await, Err(unknown), "each token is introspected by itself");
}

#[tokio::test]
async fn introspected_claims_are_validated_like_those_of_a_jwt() {
    let provider = IdentityProvider::start().await;
    let fixture = fixture(&provider);
    let now = provider.claims(json!({}))["iat"].as_u64().unwrap();
    for (number, wrong) in [
        json!({"iss": "https://evil.example"}),
        json!({"aud": "hr"}),
        json!({"exp": null}),
        json!({"exp": now - 1}),
        json!({"nbf": now + 60}),
        json!({"sub": null}),
    ]
    .into_iter()
    .enumerate()
    {
        let token = format!("opaque-{number}");
        provider.issue(&token, provider.claims(wrong.clone()));
        assert!(matches!(fixture.check(&token).await, Err(AuthenticationError::Token(_))), "{wrong}");
    }
    let now = provider.claims(json!({}))["iat"].as_u64().unwrap();
    provider.issue("short", provider.claims(json!({"exp": now + 4})));
    assert!(fixture.check("short").await.is_ok());
    tokio::time::sleep(std::time::Duration::from_millis(4100)).await;
    let expired = fixture.check("short").await;
    assert_eq!(
        expired,
        Err(AuthenticationError::Token("the token has expired")),
        "a cached response expires with the token"
    );
}

#[tokio::test]
async fn a_jwt_is_not_sent_to_the_introspection_endpoint() {
    let provider = IdentityProvider::start().await;
    let fixture = fixture(&provider);
    assert!(fixture.check(&provider.token(json!({}))).await.is_ok());
    let forged = provider.token_with(json!({"alg": "none"}), json!({}));
    provider.issue(&forged, provider.claims(json!({})));
    assert!(matches!(fixture.check(&forged).await, Err(AuthenticationError::Token(_))));
    assert!(provider.requests(INTROSPECT).is_empty());
}

#[tokio::test]
async fn an_unavailable_endpoint_is_reported_as_unavailable() {
    let provider = IdentityProvider::start().await;
    let fixture = fixture(&provider);
    provider.issue("opaque", provider.claims(json!({})));
    for status in [401, 403, 500] {
        provider.answer(INTROSPECT, json!({"status": status}));
        assert_eq!(fixture.check("opaque").await, Err(AuthenticationError::Unavailable), "{status}");
    }
    provider.answer(INTROSPECT, Value::Null);
    provider.down();
    assert_eq!(fixture.check("opaque").await, Err(AuthenticationError::Unavailable));
    provider.up();
    assert!(fixture.check("opaque").await.is_ok());
}
