//! Refresh tokens and revocation.

use std::{net::IpAddr, time::Duration};

use futures::future::join_all;
use http::StatusCode;
use serde_json::Value;

use super::world::World;
use crate::{limits, rules::Parameters};

fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap()
}

/// CVE-2026-1035: of concurrent refreshes, one wins.
#[tokio::test]
async fn of_many_refreshes_at_once_exactly_one_wins() {
    let world = World::new().await;
    let client = world.client().await;
    for _ in 0..10 {
        let tokens = world.tokens(&client).await;
        let refresh = text(&tokens, "refresh_token");
        let results = join_all((0..8).map(|_| world.refresh(&client, refresh, &[]))).await;
        let won: Vec<_> = results.iter().filter(|(status, _)| *status == StatusCode::OK).collect();
        assert_eq!(won.len(), 1);
    }
}

#[tokio::test]
async fn a_refresh_token_that_comes_back_ends_its_session() {
    let world = World::new().await;
    let client = world.client().await;
    let first = world.tokens(&client).await;
    let (status, second) = world.refresh(&client, text(&first, "refresh_token"), &[]).await;
    assert_eq!(status, StatusCode::OK);
    world.server.clock.advance(limits::REPLACED_LEEWAY + Duration::from_secs(1));
    assert_eq!(world.refresh(&client, text(&first, "refresh_token"), &[]).await.1["error"], "invalid_grant");
    assert_eq!(world.refresh(&client, text(&second, "refresh_token"), &[]).await.1["error"], "invalid_grant");
    assert_eq!(world.server.claims(text(&second, "access_token")).await.unwrap(), None);
}

#[tokio::test]
async fn a_refresh_token_that_comes_back_after_many_others_ends_its_session() {
    let world = World::new().await;
    let client = world.client().await;
    let first = world.tokens(&client).await;
    let mut last = first.clone();
    for _ in 0..5 {
        last = world.refresh(&client, text(&last, "refresh_token"), &[]).await.1;
    }
    assert_eq!(world.refresh(&client, text(&first, "refresh_token"), &[]).await.1["error"], "invalid_grant");
    assert_eq!(world.refresh(&client, text(&last, "refresh_token"), &[]).await.1["error"], "invalid_grant");
    assert_eq!(world.server.claims(text(&last, "access_token")).await.unwrap(), None);
}

/// Several processes of one client share its tokens, and refresh at the same time: the requests arrive one after the other, however
/// they were sent.
#[tokio::test]
async fn a_refresh_that_was_sent_twice_gives_tokens_once_and_ends_nothing() {
    let world = World::new().await;
    let client = world.client().await;
    let first = world.tokens(&client).await;
    let (status, won) = world.refresh(&client, text(&first, "refresh_token"), &[]).await;
    assert_eq!(status, StatusCode::OK);
    for _ in 0..3 {
        let (_, lost) = world.refresh(&client, text(&first, "refresh_token"), &[]).await;
        assert_eq!(lost["error"], "invalid_grant");
        world.server.clock.advance(limits::REPLACED_LEEWAY / 4);
    }
    assert!(
        world.server.claims(text(&won, "access_token")).await.unwrap().is_some(),
        "its session has ended"
    );
    assert_eq!(world.refresh(&client, text(&won, "refresh_token"), &[]).await.0, StatusCode::OK);
}

/// A client that has got no response sends its request again.
#[tokio::test]
async fn a_refresh_whose_response_was_not_on_its_way_gives_the_same_token_again() {
    let world = World::new().await;
    let id = world.client().await;
    let client = world.server.client(&id, IpAddr::from([127, 0, 0, 1])).await.unwrap().unwrap();
    let first = world.tokens(&id).await;
    let form = format!("refresh_token={}", text(&first, "refresh_token"));
    let form = Parameters::parse(form.as_bytes());
    let (lost, undelivered) = world.server.refresh(&client, &form, [203, 0, 113, 9].into()).await.unwrap();
    assert_eq!(
        world.server.refresh(&client, &form, [203, 0, 113, 9].into()).await.err().unwrap().code,
        "invalid_grant",
        "two at once"
    );
    drop(undelivered);
    world.server.clock.advance(10 * limits::REPLACED_LEEWAY);
    let (status, again) = world.refresh(&id, text(&first, "refresh_token"), &[]).await;
    assert_eq!(status, StatusCode::OK, "{again}");
    assert_eq!(again["refresh_token"], lost["refresh_token"]);
    assert_eq!(world.refresh(&id, text(&again, "refresh_token"), &[]).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_refresh_adds_neither_scopes_nor_resources() {
    let world = World::new().await;
    let (client, other) = (world.client().await, world.client().await);
    let tokens = world.tokens(&client).await;
    let refresh = text(&tokens, "refresh_token");
    for (changes, error) in [
        ([("scope", "openid email")], "invalid_scope"),
        ([("resource", "https://other.example/mcp")], "invalid_target"),
        ([("client_id", &*other)], "invalid_grant"),
    ] {
        assert_eq!(world.refresh(&client, refresh, &changes).await.1["error"], error, "{changes:?}");
    }
    let (_, narrow) = world.refresh(&client, refresh, &[("scope", "openid")]).await;
    assert_eq!(narrow["scope"], "openid");
    let (_, all) = world.refresh(&client, text(&narrow, "refresh_token"), &[]).await;
    assert_eq!(all["scope"], "openid offline_access");
}

#[tokio::test]
async fn a_refresh_token_expires() {
    let world = World::new().await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    world.server.clock.advance(Duration::from_secs(7 * 24 * 3600 + 1));
    assert_eq!(world.refresh(&client, text(&tokens, "refresh_token"), &[]).await.1["error"], "invalid_grant");
}

#[tokio::test]
async fn a_client_revokes_its_own_session_and_no_other() {
    let world = World::new().await;
    let (client, other) = (world.client().await, world.client().await);
    for kind in ["access_token", "refresh_token"] {
        let tokens = world.tokens(&client).await;
        let access = text(&tokens, "access_token");
        let revoke = async |client: &str, token: &str| {
            world.post("/oauth/revoke", &[("client_id", client), ("token", token)]).await.0
        };
        assert_eq!(revoke(&other, text(&tokens, kind)).await, StatusCode::OK);
        assert!(world.server.claims(access).await.unwrap().is_some(), "another client revoked it");
        assert_eq!(revoke(&client, "unknown").await, StatusCode::OK);
        assert_eq!(revoke(&client, text(&tokens, kind)).await, StatusCode::OK);
        assert_eq!(world.server.claims(access).await.unwrap(), None);
        assert_eq!(
            world.refresh(&client, text(&tokens, "refresh_token"), &[]).await.1["error"],
            "invalid_grant"
        );
    }
}

#[tokio::test]
async fn a_refusal_of_this_server_by_its_provider_ends_no_login() {
    let world = World::new().await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    world.server.clock.advance(Duration::from_secs(3601));
    let other = serde_json::json!({"error": "invalid_client"});
    for refusal in [serde_json::json!({"status": 400}), serde_json::json!({"status": 401, "body": other})] {
        world.provider.answer("/token", refusal);
        let (status, body) = world.refresh(&client, text(&tokens, "refresh_token"), &[]).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        world.server.clock.advance(limits::REFRESH_PAUSE + Duration::from_secs(1));
    }
    world.provider.answer("/token", Value::Null);
    let (status, body) = world.refresh(&client, text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(status, StatusCode::OK, "{body}");
}

/// A user whose account is disabled at the identity provider has no access here for longer than its token there.
#[tokio::test]
async fn a_session_is_not_continued_when_the_identity_provider_refuses_its_user() {
    let world = World::new().await;
    let client = world.client().await;
    let first = world.tokens(&client).await;
    let (status, second) = world.refresh(&client, text(&first, "refresh_token"), &[]).await;
    assert_eq!(status, StatusCode::OK, "its token at the provider is valid");
    world.server.clock.advance(Duration::from_secs(3601));
    world.provider.answer("/token", serde_json::json!({"status": 503}));
    let (status, _) = world.refresh(&client, text(&second, "refresh_token"), &[]).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "the provider does not respond");
    world.server.clock.advance(limits::REFRESH_PAUSE + Duration::from_secs(1));
    world.provider.answer("/token", serde_json::json!({"status": 400, "body": {"error": "invalid_grant"}}));
    for _ in 0..3 {
        let (_, body) = world.refresh(&client, text(&second, "refresh_token"), &[]).await;
        assert_eq!(body["error"], "invalid_grant");
        world.server.clock.advance(limits::REFRESH_PAUSE + Duration::from_secs(1));
    }
}
