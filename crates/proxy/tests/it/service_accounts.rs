//! Service accounts of a real API server, which issues their tokens and publishes its keys.

use std::{fs, future::ready, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
    rbac::v1::{Role, RoleBinding},
};
use kube::api::PostParams;
use serde_json::{Value, json};
use skep_config::{
    RunConfig, administration,
    calls::{PATH, audience},
    run_config::Oidc,
};
use skep_proxy::{
    Administration, AdministrationError, AdministrationPage, AdministrationRequest, CallsPage, Extras,
};
use skep_testkit::Namespace;

use crate::fixture::{Fixture, Server, call, result};

/// A token of the service account, for one audience.
async fn token(test: &Namespace, audience: &str) -> String {
    token_of(test, "caller", audience).await
}

async fn token_of(test: &Namespace, account: &str, audience: &str) -> String {
    let spec = TokenRequestSpec { audiences: vec![audience.into()], ..TokenRequestSpec::default() };
    let request = TokenRequest { spec, ..TokenRequest::default() };
    let api = test.api::<ServiceAccount>();
    let made = api.create_token_request(account, &PostParams::default(), &request).await.unwrap();
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
    let fixture = Fixture::with_extras(&config, Extras::default().with_calls_page(page)).await;
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

/// Lists nothing, and ends nothing.
struct NoSessions;

impl Administration for NoSessions {
    fn administer<'a>(
        &'a self,
        _: &'a AdministrationRequest,
    ) -> BoxFuture<'a, Result<Value, AdministrationError>> {
        ready(Ok(json!({"sessions": []}))).boxed()
    }
}

/// Lets an account do something in the namespace.
async fn grant(test: &Namespace, account: &str, rule: Value) {
    let name = format!("{account}-{}", uuid::Uuid::new_v4());
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    test.create_object::<Role>(&serde_json::from_value(role).unwrap()).await;
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": test.name()}],
    });
    test.create_object::<RoleBinding>(&serde_json::from_value(binding).unwrap()).await;
}

#[tokio::test]
async fn sessions_are_administered_by_those_whom_the_api_server_lets() {
    let test = skep_testkit::namespace().await;
    for name in ["caller", "proxy"] {
        let account = json!({"metadata": {"name": name}});
        test.create_object::<ServiceAccount>(&serde_json::from_value(account).unwrap()).await;
    }
    let own = test.folder().join(format!("{}-own-token", test.name()));
    fs::write(&own, token_of(&test, "proxy", "https://kubernetes.default.svc").await).unwrap();
    let object = ("MCPServer", test.name(), "files");
    let api_server = test.admin("keys").config().cluster_url.to_string();
    let oidc = Oidc {
        audience: administration::audience(object.0, object.1, object.2),
        jwks_url: format!("{api_server}openid/v1/jwks"),
        ca_cert_path: test.folder().join("ca.crt").display().to_string(),
        auth_token_file: own.display().to_string(),
        allow_private_ip: true,
        ..Oidc::default()
    };
    let page = AdministrationPage::of_object(object, &oidc, &api_server, Arc::new(NoSessions)).unwrap();
    let server = Server::start(|request| result(request, json!({}))).await;
    let config = json!({
        "name": "files", "transport": "streamable-http", "host": "127.0.0.1",
        "target_host": "127.0.0.1", "target_port": server.address.port(),
    });
    let config = RunConfig::parse(&config.to_string()).unwrap();
    let fixture =
        Fixture::with_extras(&config, Extras { administration: Some(Arc::new(page)), ..Extras::default() })
            .await;
    let token = token(&test, &oidc.audience).await;
    let send = async |method: Method, token: &str| {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{}?user=ann", fixture.address, administration::SESSIONS))
            .header("authorization", format!("Bearer {token}"));
        fixture.client.request(request.body(Full::default()).unwrap()).await.unwrap().status()
    };
    let group = administration::GROUP;
    let rule = |verb: &str, name: &str| {
        json!({
            "apiGroups": [group], "resources": ["mcpservers/sessions"], "resourceNames": [name], "verbs": [verb],
        })
    };
    assert_eq!(send(Method::GET, "x").await, StatusCode::UNAUTHORIZED);
    // The pod may not ask the API server.
    assert_eq!(send(Method::GET, &token).await, StatusCode::SERVICE_UNAVAILABLE);
    let reviews = json!({
        "apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"],
    });
    grant(&test, "proxy", reviews).await;
    skep_testkit::until("the pod may ask", async || send(Method::GET, &token).await == StatusCode::FORBIDDEN)
        .await;
    // Rights on the object itself, and on the sessions of another one, are none.
    let itself = json!({"apiGroups": [group], "resources": ["mcpservers"], "verbs": ["get", "delete"]});
    grant(&test, "caller", itself).await;
    grant(&test, "caller", rule("get", "others")).await;
    grant(&test, "caller", rule("delete", "others")).await;
    grant(&test, "caller", rule("get", "files")).await;
    skep_testkit::until("it may list", async || send(Method::GET, &token).await == StatusCode::OK).await;
    assert_eq!(send(Method::DELETE, &token).await, StatusCode::FORBIDDEN);
    grant(&test, "caller", rule("delete", "files")).await;
    skep_testkit::until("it may end", async || send(Method::DELETE, &token).await == StatusCode::OK).await;
    // None of these requests has reached the server.
    assert!(server.requests().is_empty());
    fixture.end().await;
}
