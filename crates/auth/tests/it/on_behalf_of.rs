//! The on-behalf-of flow.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use skep_auth::{OnBehalfOf, OnBehalfOfConfig};
use skep_testkit::IdentityProvider;

use crate::endless::endless_endpoint;

const TOKEN: &str = "/token";

pub(crate) fn flow(token_url: String) -> OnBehalfOf {
    OnBehalfOf::new(OnBehalfOfConfig {
        token_url,
        client_id: "app".into(),
        client_secret: "s3cret".into(),
        scope: "api://files/.default".into(),
        margin: Duration::from_secs(60),
    })
    .unwrap()
}

#[tokio::test]
async fn each_caller_gets_a_token_of_its_own_by_one_request() {
    let provider = IdentityProvider::start().await;
    let flow = flow(format!("{}{TOKEN}", provider.issuer));
    provider.slow(Duration::from_millis(50));
    let both = join_all(["a", "b", "a", "b", "a"].map(|caller| flow.exchange(caller))).await;
    let tokens: Vec<_> = both.into_iter().map(Result::unwrap).collect();
    assert_ne!(tokens[0], tokens[1], "the token of one caller reaches another");
    assert_eq!([&tokens[2], &tokens[3], &tokens[4]], [&tokens[0], &tokens[1], &tokens[0]]);
    let requests = provider.requests(TOKEN);
    assert_eq!(requests.len(), 2);
    let mut form = serde_json::to_value(&requests[0].form).unwrap();
    let assertion = form.as_object_mut().unwrap().remove("assertion").unwrap();
    assert!(assertion == "a" || assertion == "b");
    let expected = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "requested_token_use": "on_behalf_of",
        "client_id": "app", "client_secret": "s3cret", "scope": "api://files/.default",
    });
    assert_eq!(form, expected);
    assert_eq!(requests[0].headers.get("authorization"), None);
}

#[tokio::test]
async fn a_token_is_renewed_so_long_before_it_expires_as_is_configured() {
    let provider = IdentityProvider::start().await;
    let flow = flow(format!("{}{TOKEN}", provider.issuer));
    for (life, requests) in [(60, 2), (3600, 1)] {
        let before = provider.requests(TOKEN).len();
        let caller = life.to_string();
        provider.answer(TOKEN, json!({"access_token": "t", "token_type": "Bearer", "expires_in": life}));
        for _ in 0..2 {
            assert_eq!(flow.exchange(&caller).await.unwrap(), "t");
        }
        assert_eq!(provider.requests(TOKEN).len(), before + requests, "{life}");
    }
}

#[tokio::test]
async fn a_response_that_is_not_a_bearer_token_is_refused_and_quoted_nowhere() {
    let provider = IdentityProvider::start().await;
    let flow = flow(format!("{}{TOKEN}", provider.issuer));
    for (answer, expected) in [
        (json!({"status": 400}), "400"),
        (json!({"access_token": "hidden", "token_type": "pop"}), "its token_type is not Bearer"),
        (json!({"access_token": "hidden"}), "it has no token_type"),
        (json!({"token_type": "Bearer"}), "it has no access_token"),
        (
            json!({"access_token": "hidden".repeat(6_000), "token_type": "Bearer"}),
            "its access_token is too long",
        ),
    ] {
        provider.answer(TOKEN, answer);
        let error = flow.exchange("subject-token").await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(
            !["hidden", "subject-token", "s3cret"].iter().any(|secret| error.contains(secret)),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_response_without_an_end_is_an_error() {
    let error = flow(endless_endpoint().await).exchange("a").await.unwrap_err().to_string();
    assert!(error.ends_with("it broke off, or is too large"), "{error}");
}

#[test]
fn tokens_are_only_sent_encrypted() {
    let config = OnBehalfOfConfig { token_url: "http://login.example/token".into(), ..Default::default() };
    let error = OnBehalfOf::new(config).err().unwrap().to_string();
    assert_eq!(error, "tokenUrl: must be https, or http on localhost");
}
