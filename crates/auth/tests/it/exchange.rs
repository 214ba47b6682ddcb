//! Token exchange.

use serde_json::{Value, json};
use skep_auth::Exchanger;
use skep_config::run_config::TokenExchange;
use skep_testkit::IdentityProvider;

const TOKEN: &str = "/token";

pub(crate) fn exchanger(provider: &IdentityProvider, changes: Value) -> Exchanger {
    let mut config = json!({
        "token_url": format!("{}{TOKEN}", provider.issuer), "client_id": "me:1", "audience": "backend",
        "scopes": ["read", "write"], "subject_token_type": "jwt",
    });
    config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let config: TokenExchange = serde_json::from_value(config).unwrap();
    Exchanger::new(&config, "s/cret").unwrap()
}

#[tokio::test]
async fn a_token_is_exchanged_once_for_each_caller() {
    let provider = IdentityProvider::start().await;
    let exchanger = exchanger(&provider, json!({}));
    for _ in 0..3 {
        assert_eq!(exchanger.exchange("a").await.unwrap(), "exchanged-1");
    }
    assert_eq!(exchanger.exchange("b").await.unwrap(), "exchanged-2");
    assert_eq!(exchanger.exchange("a").await.unwrap(), "exchanged-1");
    let requests = provider.requests(TOKEN);
    assert_eq!(requests.len(), 2);
    // "me%3A1:s%2Fcret"
    assert_eq!(requests[0].headers["authorization"], "Basic bWUlM0ExOnMlMkZjcmV0");
    let form = serde_json::to_value(&requests[0].form).unwrap();
    let expected = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "a",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "audience": "backend", "scope": "read write",
    });
    assert_eq!(form, expected);
}

#[tokio::test]
async fn requests_of_one_caller_wait_for_one_exchange() {
    let provider = IdentityProvider::start().await;
    let exchanger = exchanger(&provider, json!({}));
    let all = futures::future::join_all((0..8).map(|_| exchanger.exchange("a"))).await;
    assert!(all.iter().all(|token| token.as_deref().is_ok_and(|token| token == "exchanged-1")), "{all:?}");
    assert_eq!(provider.requests(TOKEN).len(), 1);
}

#[tokio::test]
async fn a_token_that_expires_soon_or_without_expiry_is_used_once() {
    let provider = IdentityProvider::start().await;
    let exchanger = exchanger(&provider, json!({}));
    for (life, answer) in [("short", json!({"expires_in": 30})), ("unknown", json!({}))] {
        let mut answer = answer;
        answer["access_token"] = json!("t");
        answer["token_type"] = json!("Bearer");
        answer["issued_token_type"] = json!("urn:ietf:params:oauth:token-type:access_token");
        provider.answer(TOKEN, answer);
        let before = provider.requests(TOKEN).len();
        for _ in 0..2 {
            assert_eq!(exchanger.exchange("a").await.unwrap(), "t", "{life}");
        }
        assert_eq!(provider.requests(TOKEN).len(), before + 2, "{life}");
    }
}

#[tokio::test]
async fn a_client_without_an_id_does_not_authenticate_itself() {
    let provider = IdentityProvider::start().await;
    exchanger(&provider, json!({"client_id": "", "subject_token_type": ""})).exchange("a").await.unwrap();
    let requests = provider.requests(TOKEN);
    assert_eq!(requests[0].headers.get("authorization"), None);
    assert_eq!(requests[0].form["subject_token_type"], "urn:ietf:params:oauth:token-type:access_token");
}

#[tokio::test]
async fn errors_contain_no_token() {
    let provider = IdentityProvider::start().await;
    let exchanger = exchanger(&provider, json!({}));
    let host = &provider.issuer;
    for (answer, message) in [
        (json!({"status": 400}), format!("{host} responded with status 400 Bad Request")),
        (
            json!({"token_type": "Bearer"}),
            format!("the response of {host} is malformed: it has no access_token"),
        ),
        (
            json!({"access_token": "hidden", "issued_token_type": "x", "token_type": null}),
            format!("the response of {host} is malformed: it has no token_type"),
        ),
        (
            json!({"access_token": "hidden", "token_type": "Bearer"}),
            format!("the response of {host} is malformed: it has no issued_token_type"),
        ),
    ] {
        provider.answer(TOKEN, answer);
        assert_eq!(exchanger.exchange("secret").await.unwrap_err().to_string(), message);
    }
}
