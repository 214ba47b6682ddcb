//! Clients with a document.

use std::net::IpAddr;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::json;
use tokio::net::TcpListener;

use super::world::{REDIRECT, Visitor, World, authorize_path};
use crate::limits;

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
        // A name that does not resolve may do so later.
        let status = response.status();
        assert!(
            [StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE].contains(&status),
            "{id}: {status}"
        );
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

/// A stranger names documents of another site, to have this server flood it. That is no reason to refuse others.
#[tokio::test]
async fn an_address_has_few_documents_fetched_and_others_have_theirs() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let open = async |path: &str, last: u8| {
        let id = format!("{}{path}", world.provider.issuer);
        let request = Request::get(authorize_path(&id, &[])).body(Full::<Bytes>::default()).unwrap();
        world.server.respond(request, IpAddr::from([198, 18, 1, last])).await.status()
    };
    let (mut refused, begin) = (0, std::time::Instant::now());
    for number in 0..400 {
        let status = open(&format!("/none-{number}.json"), 1).await;
        refused += usize::from(status == StatusCode::SERVICE_UNAVAILABLE);
    }
    let most = limits::DOCUMENTS.burst + (1.0 + begin.elapsed().as_secs_f64()) * limits::DOCUMENTS.per_second;
    let sent = 400 - refused;
    assert!(sent >= 100 && sent as f64 <= most, "{sent} of {most}");
    let id = format!("{}/c.json", world.provider.issuer);
    world.provider.answer("/c.json", json!({"client_id": id, "redirect_uris": [REDIRECT]}));
    assert_eq!(open("/c.json", 2).await, StatusCode::OK);
}

/// A client that gets `invalid_client` forgets its tokens.
#[tokio::test]
async fn a_client_is_known_on_while_its_document_cannot_be_fetched() {
    let world = World::with(json!({"cimd": {"enabled": true, "cache_fallback_ttl": "0s"}})).await;
    let id = format!("{}/c.json", world.provider.issuer);
    world.provider.answer("/c.json", json!({"client_id": id, "redirect_uris": [REDIRECT]}));
    let mut tokens = world.tokens(&id).await;
    let fetched = world.provider.requests("/c.json").len();
    assert_eq!(fetched, 1, "it is fetched at each step");
    for failure in [json!({"status": 503}), json!({"status": 429}), json!("<html>")] {
        world.provider.answer("/c.json", failure.clone());
        world.server.clock.advance(limits::DOCUMENT_LEAST_LIFE);
        let (status, body) = world.refresh(&id, tokens["refresh_token"].as_str().unwrap(), &[]).await;
        assert_eq!(status, StatusCode::OK, "{failure}: {body}");
        tokens = body;
    }
    // One that is not known is not unknown because of that, and one that is gone is.
    let other = format!("{}/other.json", world.provider.issuer);
    world.provider.answer("/other.json", json!({"status": 503}));
    let (status, body) = world.refresh(&other, "x", &[]).await;
    assert_eq!(
        (status, &body["error"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("temporarily_unavailable"))
    );
    world.provider.answer("/c.json", json!({"status": 404}));
    world.server.clock.advance(limits::DOCUMENT_LEAST_LIFE);
    let (status, body) = world.refresh(&id, tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!((status, &body["error"]), (StatusCode::UNAUTHORIZED, &json!("invalid_client")));
}

#[tokio::test]
async fn all_who_wait_for_a_document_share_one_request() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let id = format!("{}/c.json", world.provider.issuer);
    world.provider.answer("/c.json", json!({"client_id": id, "redirect_uris": [REDIRECT]}));
    let open = |last: u8| {
        let request = Request::get(authorize_path(&id, &[])).body(Full::<Bytes>::default()).unwrap();
        world.server.respond(request, IpAddr::from([198, 18, 3, last]))
    };
    let responses = futures::future::join_all((0..32).map(open)).await;
    assert!(responses.iter().all(|response| response.status() == StatusCode::OK));
    assert_eq!(world.provider.requests("/c.json").len(), 1);
}

/// A client that leaves before its document has arrived.
#[tokio::test]
async fn strangers_who_leave_before_their_document_arrives_take_no_memory() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let tarpit = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tarpit.local_addr().unwrap().port();
    let open = |number: usize| {
        let id = format!("http://127.0.0.1:{port}/{number}.json");
        let request = Request::get(authorize_path(&id, &[])).body(Full::<Bytes>::default()).unwrap();
        world.server.respond(request, IpAddr::from([198, 18, 4, 1]))
    };
    let documents = world.server.documents.as_ref().unwrap();
    let mut staying = Box::pin(open(0));
    assert!((&mut staying).now_or_never().is_none());
    for number in [0, 0, 1, 2, 3] {
        assert!(open(number).now_or_never().is_none(), "{number}");
    }
    assert_eq!(documents.fetching(), 1, "the one that another request still waits for");
    drop(staying);
    assert_eq!(documents.fetching(), 0);
}

/// A document is for all servers, of which this one does not have every scope.
#[tokio::test]
async fn scopes_in_a_document_that_the_server_does_not_have_are_left_out() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let id = format!("{}/c.json", world.provider.issuer);
    world.provider.answer(
        "/c.json",
        json!({"client_id": id, "redirect_uris": [REDIRECT], "scope": "openid offline_access mcp:tools"}),
    );
    let tokens = world.tokens(&id).await;
    assert_eq!(tokens["scope"], "openid offline_access");
    let page = world.open(&mut Visitor::default(), &authorize_path(&id, &[("scope", "mcp:tools")])).await;
    assert_ne!(page.status(), StatusCode::OK, "a scope that the server does not have is granted");
}

/// One address names documents that never come. Others are fetched meanwhile.
#[tokio::test]
async fn an_address_that_names_slow_documents_keeps_no_other_from_its_own() {
    let world = World::with(json!({"cimd": {"enabled": true}})).await;
    let tarpit = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tarpit.local_addr().unwrap().port();
    let open = |id: &str, last: u8| {
        let request = Request::get(authorize_path(id, &[])).body(Full::<Bytes>::default()).unwrap();
        world.server.respond(request, IpAddr::from([198, 18, 2, last]))
    };
    let slow: Vec<_> = (0..skep_auth::limits::FETCHES)
        .map(|number| open(&format!("http://127.0.0.1:{port}/{number}.json"), 1))
        .collect();
    let (slow, accepted) = (futures::future::join_all(slow), async {
        let mut streams = Vec::new();
        while streams.len() < limits::DOCUMENTS_AT_ONCE {
            streams.push(tarpit.accept().await.unwrap());
        }
        let id = format!("{}/c.json", world.provider.issuer);
        world.provider.answer("/c.json", json!({"client_id": id, "redirect_uris": [REDIRECT]}));
        let other = open(&id, 2).await.status();
        drop(streams);
        drop(tarpit);
        other
    });
    let (statuses, other) = futures::future::join(slow, accepted).await;
    assert_eq!(other, StatusCode::OK);
    let refused = statuses.iter().filter(|response| response.status() == StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.count(), skep_auth::limits::FETCHES, "none of them came");
}
