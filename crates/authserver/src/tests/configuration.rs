//! Mistakes of a configuration.

use serde_json::json;
use skep_testkit::IdentityProvider;

use super::world::config;
use crate::AuthServer;

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

#[tokio::test]
async fn a_provider_that_cannot_be_discovered_is_named() {
    let provider = IdentityProvider::start().await;
    provider.down();
    let server = AuthServer::new(&config(&provider, &json!({}))).map_err(|_| ()).unwrap();
    let error = server.check().await.unwrap_err().to_string();
    assert!(error.contains("corp"), "{error}");
}
