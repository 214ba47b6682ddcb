//! Service accounts of a real API server, which issues their tokens and publishes its keys.

use std::fs;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::api::PostParams;
use serde_json::json;
use skep_config::{
    RunConfig,
    calls::{PATH, audience},
    run_config::Oidc,
};
use skep_proxy::{CallsPage, Proxy};
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

/// Reads the stream until it has this text.
async fn read_until(body: &mut hyper::body::Incoming, text: &mut String, wanted: &str) {
    while !text.contains(wanted) {
        let frame = body.frame().await.expect("the stream goes on").unwrap();
        text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
    }
}

#[tokio::test]
async fn the_console_reads_the_calls_of_a_proxy_with_a_token_for_just_these() {
    let test = skep_testkit::namespace().await;
    let account = json!({"metadata": {"name": "caller"}});
    test.create_object::<ServiceAccount>(&serde_json::from_value(account).unwrap()).await;
    let own = test.folder().join(format!("{}-token", test.name()));
    fs::write(&own, token(&test, "https://kubernetes.default.svc").await).unwrap();
    let oidc = Oidc {
        audience: audience("MCPServer", test.name(), "files"),
        jwks_url: format!("{}openid/v1/jwks", test.admin("keys").config().cluster_url),
        ca_cert_path: test.folder().join("ca.crt").display().to_string(),
        auth_token_file: own.display().to_string(),
        allow_private_ip: true,
        ..Oidc::default()
    };
    let page = CallsPage::new(&format!("system:serviceaccount:{}:caller", test.name()), &oidc).unwrap();
    let server = Server::start(|request| result(request, json!({}))).await;
    let config = json!({
        "name": "files", "transport": "streamable-http", "host": "127.0.0.1",
        "target_host": "127.0.0.1", "target_port": server.address.port(),
    });
    let config = RunConfig::parse(&config.to_string()).unwrap();
    let fixture = Fixture::around(Proxy::new(&config).unwrap().with_calls_page(page)).await;
    let get = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let request =
            Request::get(format!("http://{}{PATH}", fixture.address)).header("authorization", bearer);
        fixture.client.request(request.body(Full::default()).unwrap()).await.unwrap()
    };
    let other = token(&test, &audience("MCPServer", test.name(), "another")).await;
    assert_eq!(get(&other).await.status(), StatusCode::UNAUTHORIZED);
    let response = get(&token(&test, &audience("MCPServer", test.name(), "files")).await).await;
    assert_eq!(response.status(), StatusCode::OK);
    let (mut body, mut text) = (response.into_body(), String::new());
    fixture.post(&[], &call("tools/call", json!({"name": "add", "arguments": {"secret": "value"}}))).await;
    read_until(&mut body, &mut text, "\"target\":\"add\"").await;
    assert!(text.contains("\"method\":\"tools/call\"") && !text.contains("secret"), "{text}");
    // Requests for the page are no calls, and none of them has reached the server.
    assert!(!text.contains("skep/calls") && server.requests().len() == 1, "{text}");
    // A stream does not hold up the end of the proxy.
    fixture.end().await;
}

#[tokio::test]
async fn without_a_console_the_path_is_one_of_the_server_like_any_other() {
    let server = Server::start(|request| result(request, json!({}))).await;
    let fixture = Fixture::new(&server, json!([])).await;
    let answer = fixture.send(Method::GET, PATH, &[("authorization", "Bearer x")], b"").await;
    assert_eq!((answer.status, server.requests().len()), (StatusCode::OK, 1));
}
