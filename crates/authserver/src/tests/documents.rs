//! Clients with a document.

use futures::FutureExt;
use http::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;

use super::world::{REDIRECT, Visitor, World, authorize_path};

/// GHSA-pr64-jmmf-jp54: a stranger names an address, and the server connects to it.
#[tokio::test]
async fn a_client_id_leads_no_connection_into_the_private_network() {
    let world = World::with(json!({"issuer": "https://as.example", "cimd": {"enabled": true}})).await;
    let inner = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = inner.local_addr().unwrap().port();
    for id in [
        &*format!("https://127.0.0.1:{port}/c.json"),
        &format!("https://localhost:{port}/c.json"),
        &format!("https://2130706433:{port}/c.json"),
        &format!("https://0.0.0.0:{port}/c.json"),
        &format!("https://[::ffff:127.0.0.1]:{port}/c.json"),
        &format!("http://127.0.0.1:{port}/c.json"),
        "https://169.254.169.254/latest",
        "https://10.0.0.1/c.json",
        "https://[fd00::1]/c.json",
    ] {
        let response = world.open(&mut Visitor::default(), &authorize_path(id, &[])).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{id}");
    }
    assert!(inner.accept().now_or_never().is_none(), "there was a connection");
}

#[tokio::test]
async fn a_client_with_a_document_logs_in_and_refreshes() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let id = format!("{}/c.json", world.provider.issuer);
    world
        .provider
        .answer("/c.json", json!({"client_id": id, "client_name": "Notes", "redirect_uris": [REDIRECT]}));
    let tokens = world.tokens(&id).await;
    let (status, body) = world.refresh(&id, tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(world.provider.requests("/c.json").len(), 1);
}

#[tokio::test]
async fn a_document_of_another_client_is_refused() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let id = format!("{}/c.json", world.provider.issuer);
    for document in [
        json!({"client_id": "https://other.example/c.json", "redirect_uris": [REDIRECT]}),
        json!({"client_id": id, "redirect_uris": []}),
        json!({"client_id": id, "redirect_uris": ["javascript:alert(1)"]}),
        json!({"client_id": id, "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_post"}),
        json!({"status": 302, "location": "/d.json"}),
    ] {
        world.provider.answer("/c.json", document.clone());
        let response = world.open(&mut Visitor::default(), &authorize_path(&id, &[])).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{document}");
    }
    assert!(world.provider.requests("/d.json").is_empty(), "a redirect was followed");
}
