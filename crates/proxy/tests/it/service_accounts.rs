//! Service accounts of a real API server, which issues their tokens and publishes its keys.

use std::fs;

use http::StatusCode;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::api::PostParams;
use serde_json::json;
use skep_testkit::Namespace;

use crate::fixture::{Fixture, Server, call, result};

/// A token of the service account, for one audience.
async fn token(test: &Namespace, audience: &str) -> String {
    let spec = TokenRequestSpec { audiences: vec![audience.into()], ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let api = test.api::<ServiceAccount>();
    let made = api.create_token_request("caller", &PostParams::default(), &request).await.unwrap();
    made.status.unwrap().token
}

#[tokio::test]
async fn a_service_account_token_is_verified_with_the_keys_of_the_api_server() {
    let test = skep_testkit::namespace().await;
    let account = json!({"metadata": {"name": "caller"}});
    test.create_object::<ServiceAccount>(&serde_json::from_value(account).unwrap()).await;
    // Like the token in the proxy's pod, for requests to the API server.
    let own = test.folder().join(format!("{}-token", test.name()));
    let issuer = "https://kubernetes.default.svc";
    fs::write(&own, token(&test, issuer).await).unwrap();
    let keys = format!("{}openid/v1/jwks", test.admin("keys").config().cluster_url);
    let oidc = json!({
        "Issuer": issuer, "Audience": "crm", "JWKSURL": keys, "AllowPrivateIP": true, "AuthTokenFile": own,
        "CACertPath": test.folder().join("ca.crt"),
    });
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, json!([{"type": "auth", "parameters": {"oidc_config": oidc}}])).await;
    for (audience, expected) in [("crm", StatusCode::OK), ("another", StatusCode::UNAUTHORIZED)] {
        let bearer = format!("Bearer {}", token(&test, audience).await);
        let answer = fixture.post(&[("authorization", &bearer)], &call("ping", json!({}))).await;
        assert_eq!(answer.status, expected, "{audience}");
    }
    assert_eq!(server.requests().len(), 1);
}
