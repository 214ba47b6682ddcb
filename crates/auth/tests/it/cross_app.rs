//! Cross-app access.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use skep_auth::{CrossAppAccess, CrossAppConfig, TokenClient};
use skep_testkit::IdentityProvider;

use crate::endless::endless_endpoint;

const PROVIDER: &str = "/provider";
pub(crate) const TARGET: &str = "/target";
const AUDIENCE: &str = "https://as.files.example";
const RESOURCE: &str = "https://files.example/mcp";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

fn client(token_url: String, secret: &str) -> TokenClient {
    TokenClient { token_url, client_id: "us".into(), client_secret: secret.into() }
}

pub(crate) fn config(provider: &IdentityProvider) -> CrossAppConfig {
    CrossAppConfig {
        provider: client(format!("{}{PROVIDER}", provider.issuer), "s3cret"),
        target: client(format!("{}{TARGET}", provider.issuer), ""),
        is_target_insecure: false,
        audience: AUDIENCE.into(),
        resource: RESOURCE.into(),
        scopes: vec!["read".into(), "write".into()],
    }
}

/// The response with an assertion. Entries of `changes` override it, and those of `claims` its claims.
fn assertion(provider: &IdentityProvider, changes: Value, claims: Value) -> Value {
    let mut all = json!({"aud": AUDIENCE, "resource": RESOURCE});
    all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    let mut answer =
        json!({"access_token": provider.token(all), "token_type": "N_A", "issued_token_type": ID_JAG});
    answer.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    answer
}

pub(crate) async fn started() -> (IdentityProvider, CrossAppAccess) {
    let provider = IdentityProvider::start().await;
    provider.answer(PROVIDER, assertion(&provider, json!({}), json!({})));
    provider.answer(TARGET, json!({"access_token": "access", "token_type": "bearer", "expires_in": 3600}));
    let access = CrossAppAccess::new(&config(&provider)).unwrap();
    (provider, access)
}

#[tokio::test]
async fn an_id_token_becomes_an_assertion_and_that_an_access_token_once_for_all_who_wait() {
    let (provider, access) = started().await;
    provider.slow(Duration::from_millis(50));
    for token in join_all((0..4).map(|_| access.exchange("id-token"))).await {
        assert_eq!(token.unwrap(), "access");
    }
    assert_eq!(access.exchange("id-token").await.unwrap(), "access");
    let [(first, first_form), (second, second_form)] = [PROVIDER, TARGET].map(|path| {
        let requests = provider.requests(path);
        assert_eq!(requests.len(), 1, "{path}");
        let form = serde_json::to_value(&requests[0].form).unwrap();
        (requests.into_iter().next().unwrap(), form)
    });
    assert_eq!(first.headers["authorization"], "Basic dXM6czNjcmV0");
    let expected = json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "requested_token_type": ID_JAG,
        "audience": AUDIENCE, "resource": RESOURCE, "scope": "read write", "subject_token": "id-token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
    });
    assert_eq!(first_form, expected);
    // A client without a secret sends its name alone.
    assert_eq!(second.headers.get("authorization"), None);
    assert_eq!(second_form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!((&second_form["scope"], &second_form["client_id"]), (&json!("read write"), &json!("us")));
    assert_eq!(second_form["assertion"].as_str().unwrap().split('.').count(), 3);
}

#[tokio::test]
async fn the_token_of_one_caller_never_reaches_another() {
    let (provider, access) = started().await;
    assert_eq!(access.exchange("of-ann").await.unwrap(), "access");
    provider.answer(TARGET, json!({"access_token": "other", "token_type": "Bearer", "expires_in": 3600}));
    assert_eq!(access.exchange("of-bob").await.unwrap(), "other");
    assert_eq!(access.exchange("of-ann").await.unwrap(), "access");
    provider.answer(TARGET, json!({"status": 401}));
    assert!(access.exchange("of-eve").await.is_err());
}

#[tokio::test]
async fn an_assertion_that_another_application_could_use_is_not_passed_on() {
    let (provider, access) = started().await;
    let of = |changes: Value, claims: Value| assertion(&provider, changes, claims);
    for (answer, expected) in [
        (of(json!({}), json!({"aud": "https://as.evil.example"})), "not for targetAudience alone"),
        (
            of(json!({}), json!({"aud": [AUDIENCE, "https://as.evil.example"]})),
            "not for targetAudience alone",
        ),
        (of(json!({}), json!({"aud": []})), "not for targetAudience alone"),
        (of(json!({}), json!({"aud": null})), "not for targetAudience alone"),
        (of(json!({}), json!({"resource": "https://other.example"})), "not for targetResource alone"),
        (of(json!({}), json!({"resource": null})), "not for targetResource alone"),
        (
            of(json!({"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}), json!({})),
            "issued_token_type is not that of an ID-JAG",
        ),
        (of(json!({"issued_token_type": null}), json!({})), "issued_token_type is not that of an ID-JAG"),
        (of(json!({"token_type": "Bearer"}), json!({})), "token_type is not N_A"),
        (of(json!({"access_token": "hidden"}), json!({})), "the ID-JAG is not a JWT"),
        (json!({"status": 400}), "400"),
    ] {
        provider.answer(PROVIDER, answer);
        let error = access.exchange("id-token").await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("hidden") && !error.contains("id-token"), "{error}");
    }
    assert!(provider.requests(TARGET).is_empty());
    provider.answer(PROVIDER, of(json!({}), json!({"aud": [AUDIENCE]})));
    assert_eq!(access.exchange("id-token").await.unwrap(), "access");
}

#[tokio::test]
async fn a_response_without_an_end_is_an_error() {
    let provider = IdentityProvider::start().await;
    let mut config = config(&provider);
    config.provider.token_url = endless_endpoint().await;
    let error = CrossAppAccess::new(&config).unwrap().exchange("a").await.unwrap_err().to_string();
    assert!(error.ends_with("it broke off, or is too large"), "{error}");
}

#[tokio::test]
async fn only_a_client_with_a_secret_at_the_target_has_a_token_of_its_own() {
    let (provider, access) = started().await;
    assert!(access.own_token().await.is_none());
    let mut config = config(&provider);
    config.target.client_secret = "s3cret".into();
    let access = CrossAppAccess::new(&config).unwrap();
    assert_eq!(access.own_token().await.unwrap().unwrap(), "access");
    assert_eq!(provider.requests(TARGET)[0].form["grant_type"], "client_credentials");
}

#[tokio::test]
async fn an_unencrypted_target_must_be_permitted_and_an_unencrypted_provider_never_is() {
    let provider = IdentityProvider::start().await;
    let plain = "http://idp.example/token";
    let mut config = config(&provider);
    config.target.token_url = plain.into();
    let error = |config: &CrossAppConfig| CrossAppAccess::new(config).err().map(|error| error.to_string());
    let expected = |field: &str| Some(format!("{field}: must be https, or http on localhost"));
    assert_eq!(error(&config), expected("targetTokenUrl"));
    config.is_target_insecure = true;
    assert_eq!(error(&config), None);
    config.provider.token_url = plain.into();
    assert_eq!(error(&config), expected("idpTokenUrl"));
}
