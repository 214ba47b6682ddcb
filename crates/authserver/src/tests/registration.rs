//! Registration of clients.

use http::{Request, StatusCode, header};
use http_body_util::Full;
use serde_json::json;

use super::world::{REDIRECT, World};
use crate::limits;

#[tokio::test]
async fn a_redirect_uri_that_is_no_application_cannot_be_registered() {
    let world = World::new().await;
    for uri in ["javascript:alert(1)//", "http://client.example/cb", "https://u@client.example/cb", "/cb"] {
        let (status, body) = world.register(json!({"redirect_uris": [uri]})).await;
        assert_eq!(
            (status, &body["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_redirect_uri")),
            "{uri}"
        );
    }
}

#[tokio::test]
async fn a_body_that_readers_could_understand_differently_is_refused() {
    let world = World::new().await;
    let twice = r#"{"redirect_uris":["https://a.example/cb"],"redirect_uris":["https://b.example/cb"]}"#;
    for body in ["{", "[]", "", r#"{"redirect_uris":["https://a.example/cb"]} more"#, twice] {
        let request = Request::post("/oauth/register").header(header::CONTENT_TYPE, "application/json");
        let response = world.send(request.body(Full::from(body)).unwrap()).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{body}");
    }
}

/// What is stored of a client is small, whatever its request has room for.
#[tokio::test]
async fn a_client_cannot_make_its_row_large() {
    let world = World::new().await;
    let grants = vec!["authorization_code"; 2000];
    let (status, body) = world.register(json!({"redirect_uris": [REDIRECT], "grant_types": grants})).await;
    assert_eq!((status, &body["grant_types"]), (StatusCode::CREATED, &json!(["authorization_code"])));
    let long = |number: usize| format!("https://client.example/{number}{}", "a".repeat(1900));
    let uris: Vec<String> = (0..3).map(long).collect();
    let (status, body) = world.register(json!({"redirect_uris": uris})).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_redirect_uri")));
}

#[tokio::test]
async fn one_address_registers_few_clients_at_once() {
    let world = World::new().await;
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(world.register(json!({"redirect_uris": [REDIRECT]})).await.0);
    }
    assert!(statuses[..5].iter().all(|status| *status == StatusCode::CREATED), "{statuses:?}");
    assert!(statuses[10..].contains(&StatusCode::TOO_MANY_REQUESTS), "{statuses:?}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let world = World::new().await;
    for path in ["/oauth/register", "/oauth/token", "/oauth/consent", "/oauth/revoke"] {
        let request = Request::post(path).body(Full::from("a".repeat(limits::BODY + 1))).unwrap();
        assert_eq!(world.send(request).await.status(), StatusCode::PAYLOAD_TOO_LARGE, "{path}");
    }
}

/// A client with a secret has no redirect URI where others could read it, also if another one of its redirect URIs gives it one.
#[tokio::test]
async fn a_client_that_gets_a_secret_has_redirect_uris_of_web_servers_only() {
    let world = World::with(json!({
        "issuer": "https://as.example", "allow_confidential_client_registration": true,
        "force_confidential_redirect_uris": ["https://app.example/cb"],
    }))
    .await;
    let register = async |uris: &[&str]| world.register(json!({"redirect_uris": uris})).await;
    let (status, body) = register(&["https://app.example/cb", "https://app.example/other"]).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    assert_eq!(body["token_endpoint_auth_method"], "client_secret_post");
    for other in [REDIRECT, "com.example.app:/cb"] {
        let (status, body) = register(&["https://app.example/cb", other]).await;
        assert_eq!(
            (status, &body["error"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_redirect_uri")),
            "{other}"
        );
    }
}
