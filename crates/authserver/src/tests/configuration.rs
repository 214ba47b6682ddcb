//! Mistakes of a configuration.

use std::time::Duration;

use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use super::{
    chains::oauth2,
    world::{Visitor, World, config, location, metadata_of},
};
use crate::{AuthServer, UpstreamTokenError};

#[tokio::test]
async fn every_mistake_is_reported_at_once_with_its_field() {
    let provider = IdentityProvider::start().await;
    let changes = json!({
        "issuer": "http://as.example/",
        "token_lifespans": {"access_token_lifespan": "10s", "auth_code_lifespan": "soon"},
        "hmac_secret_files": ["/nowhere"],
        "signing_key_config": {"signing_key_file": "/nowhere.pem"},
        "allowed_audiences": [],
        "baseline_client_scopes": ["root"],
        "storage": {"type": "redis"},
        "upstreams": [{"name": "Corp", "type": "oidc"}, {"type": "oauth2"}],
    });
    let errors = AuthServer::new(&config(&provider, &changes)).map(|_| ()).unwrap_err();
    let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    for field in [
        "issuer",
        "token_lifespans.access_token_lifespan",
        "token_lifespans.auth_code_lifespan",
        "hmac_secret_files[0]",
        "signing_key_config.signing_key_file",
        "allowed_audiences",
        "baseline_client_scopes",
        "storage.redis_config",
        "upstreams[0].name",
        "upstreams[1].name",
    ] {
        assert!(text.contains(field), "{field}:\n{text}");
    }
}

/// Each is refused by ToolHive as well.
#[tokio::test]
async fn what_would_let_others_in_is_refused_with_its_field() {
    let provider = IdentityProvider::start().await;
    let issuer = |changes: Value| {
        let mut issuer = json!({
            "issuer_url": "https://o.example", "expected_audience": "https://mcp.example", "allowed_delegate_clients": ["agent"],
        });
        issuer.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        issuer
    };
    let trusted = |changes: Value| json!({"trusted_issuers": [issuer(changes)]});
    let forced = |uri: &str| {
        json!({
            "issuer": "https://as.example", "allow_confidential_client_registration": true,
            "force_confidential_redirect_uris": [uri],
        })
    };
    for (changes, field) in [
        (trusted(json!({"expected_audience": ""})), "trusted_issuers[0].expected_audience"),
        (trusted(json!({"issuer_url": "http://o.example"})), "trusted_issuers[0].issuer_url"),
        (trusted(json!({"issuer_url": "https://u:p@o.example"})), "trusted_issuers[0].issuer_url"),
        (trusted(json!({"issuer_url": "https://o.example?x=1"})), "trusted_issuers[0].issuer_url"),
        (trusted(json!({"issuer_url": "http://127.0.0.1:1"})), "trusted_issuers[0].issuer_url"),
        (trusted(json!({"jwks_url": "https://u:p@o.example/keys"})), "trusted_issuers[0].jwks_url"),
        (json!({"trusted_issuers": [issuer(json!({})), issuer(json!({}))]}), "trusted_issuers[1].issuer_url"),
        (forced("http://127.0.0.1:7777/cb"), "force_confidential_redirect_uris[0]"),
        (forced("com.example.app:/cb"), "force_confidential_redirect_uris[0]"),
        (forced("javascript:alert(1)"), "force_confidential_redirect_uris[0]"),
        (
            json!({"force_confidential_redirect_uris": ["https://app.example/cb"]}),
            "force_confidential_redirect_uris",
        ),
        (
            json!({
                "issuer": "http://as.team", "insecure_allow_http": true, "allow_confidential_client_registration": true,
            }),
            "allow_confidential_client_registration",
        ),
    ] {
        let errors = AuthServer::new(&config(&provider, &changes)).map(|_| ()).unwrap_err();
        let fields: Vec<_> = errors.iter().map(|error| error.field.to_string()).collect();
        assert_eq!(fields, [field], "{changes}");
    }
    assert!(AuthServer::new(&config(&provider, &forced("https://app.example/cb"))).is_ok());
}

#[tokio::test]
async fn a_provider_that_cannot_be_discovered_is_named() {
    let provider = IdentityProvider::start().await;
    provider.down();
    let server = AuthServer::new(&config(&provider, &json!({}))).map_err(|_| ()).unwrap();
    let error = server.check().await.unwrap_err().to_string();
    assert!(error.contains("corp"), "{error}");
}

/// A provider with its metadata, and an upstream at it.
async fn oidc(name: &str) -> (IdentityProvider, Value) {
    let provider = IdentityProvider::start().await;
    provider.answer("/.well-known/openid-configuration", metadata_of(&provider));
    let upstream = json!({"name": name, "type": "oidc", "oidc_config": {
        "issuer_url": provider.issuer, "client_id": "us", "redirect_uri": "http://127.0.0.1:1/oauth/callback",
    }});
    (provider, upstream)
}

fn server(provider: &IdentityProvider, upstreams: &[&Value]) -> AuthServer {
    let changes = json!({"upstreams": upstreams});
    AuthServer::new(&config(provider, &changes)).map_err(|errors| format!("{errors:?}")).unwrap()
}

#[tokio::test]
async fn a_provider_that_is_down_at_the_start_makes_only_its_own_backends_fail() {
    let ((first, one), (second, two)) = (oidc("one").await, oidc("two").await);
    second.down();
    let world = World { server: server(&first, &[&one, &two]), provider: first };
    let missing = world.server.check().await.unwrap();
    assert!(missing.len() == 1 && missing[0].to_string().contains("two"), "{missing:?}");
    assert_eq!(world.server.next_check(), Some(Duration::ZERO));
    // Users log in without it.
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    let claims = world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    let session = claims["tsid"].as_str().unwrap();
    let upstream_tokens = world.server.upstream_tokens();
    assert_eq!(upstream_tokens.access_token(session, "one").await.as_deref(), Ok("at-of-ann"));
    let missing = upstream_tokens.access_token(session, "two").await;
    assert_eq!(missing, Err(UpstreamTokenError::NotConnected));
    // Once it is up, it is used.
    second.up();
    assert!(world.server.check().await.unwrap().is_empty());
    assert_eq!(world.server.next_check(), None);
    let mut visitor = Visitor::default();
    let url = world.begin(&mut visitor, &client, &[]).await;
    let next = location(&world.open(&mut visitor, &world.at_upstream(&url, "ann")).await);
    assert!(next.starts_with(&second.issuer), "{next}");
}

#[tokio::test]
async fn a_server_of_which_no_provider_can_be_used_does_not_start() {
    let ((first, one), (second, two)) = (oidc("one").await, oidc("two").await);
    first.down();
    second.down();
    let server = server(&first, &[&one, &two]);
    let error = server.check().await.unwrap_err().to_string();
    assert!(error.contains("one"), "{error}");
}

#[tokio::test]
async fn a_provider_that_refuses_to_register_the_server_keeps_it_from_starting_and_one_that_is_down_does_not()
{
    let (provider, one) = oidc("one").await;
    let endpoint = format!("{}/register", provider.issuer);
    let two =
        oauth2(&provider, "two", json!({"client_id": "", "dcr_config": {"registration_endpoint": endpoint}}));
    let server = server(&provider, &[&one, &two]);
    provider.answer("/register", json!({"status": 400}));
    let error = server.check().await.unwrap_err().to_string();
    assert!(error.contains("two") && error.contains("registration failed"), "{error}");
    for status in [408, 429, 500, 503] {
        provider.answer("/register", json!({"status": status}));
        assert_eq!(server.check().await.unwrap().len(), 1, "{status}");
    }
}
