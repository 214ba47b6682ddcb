//! Tokens of upstreams.

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::world::World;
use crate::UpstreamTokenError;

async fn session(world: &World) -> String {
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    let claims = world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    claims["tsid"].as_str().unwrap().to_owned()
}

fn refreshed(world: &World, subject: &str) -> Value {
    let id_token = world.provider.token(json!({"sub": subject, "aud": "us"}));
    json!({"access_token": "new", "token_type": "Bearer", "expires_in": 3600, "id_token": id_token})
}

/// Eight calls at once after the token has expired, for which the provider responds with this one.
async fn refresh_for_all_who_wait(response: Value) {
    let world = World::new().await;
    let session = session(&world).await;
    let before = world.provider.requests("/token").len();
    world.server.clock.advance(Duration::from_secs(3601));
    world.provider.answer("/token", response.clone());
    let tokens = world.server.upstream_tokens();
    let results = join_all((0..8).map(|_| tokens.access_token(&session, "corp"))).await;
    let token = response["access_token"].as_str().unwrap();
    assert!(results.iter().all(|result| result.as_deref() == Ok(token)), "{results:?}");
    assert_eq!(world.provider.requests("/token").len(), before + 1);
    assert_eq!(world.provider.requests("/token").last().unwrap().form["refresh_token"], "rt-of-ann");
}

#[tokio::test]
async fn an_expired_token_is_refreshed_once_for_all_who_wait() {
    // The ID token of the fake is valid for an hour of its own clock, which the server's has left behind.
    let response = json!({"access_token": "new", "token_type": "Bearer", "expires_in": 3600});
    refresh_for_all_who_wait(response).await;
}

/// RFC 6749, section 5.1: the lifetime is zero, so the token is not used. It is not one that never expires.
#[tokio::test]
async fn a_token_with_a_lifetime_of_zero_is_refreshed_before_each_use() {
    let world = World::new().await;
    let session = session(&world).await;
    let tokens = world.server.upstream_tokens();
    world.server.clock.advance(Duration::from_secs(3601));
    let before = world.provider.requests("/token").len();
    for number in 1..=2 {
        let token = format!("short-{number}");
        let response = json!({"access_token": token, "token_type": "Bearer", "expires_in": 0});
        world.provider.answer("/token", response);
        assert_eq!(tokens.access_token(&session, "corp").await, Ok(token));
        assert_eq!(world.provider.requests("/token").len(), before + number);
    }
    let row = world.server.store.upstream(&session, "corp").await.unwrap().unwrap();
    assert!((1..=world.server.clock.now()).contains(&row.expires_at), "{}", row.expires_at);
    // Without a refresh token it is of no use.
    let row = crate::store::Upstream { refresh_token: String::new(), ..row };
    world.server.store.put_upstream(&session, &row, Duration::from_secs(60)).await.unwrap();
    assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::Expired));
    let connections = tokens.connections(&session).await.unwrap();
    assert!(connections[0].connected && connections[0].expired, "{connections:?}");
}

#[tokio::test]
async fn a_token_with_a_lifetime_of_zero_is_refreshed_once_for_all_who_wait() {
    let response = json!({"access_token": "short", "token_type": "Bearer", "expires_in": 0});
    refresh_for_all_who_wait(response).await;
}

#[tokio::test]
async fn a_refresh_that_returns_another_user_is_refused() {
    let world = World::new().await;
    let session = session(&world).await;
    world.provider.answer("/token", refreshed(&world, "bob"));
    let mut row = world.server.store.upstream(&session, "corp").await.unwrap().unwrap();
    row.expires_at = 1;
    world.server.store.put_upstream(&session, &row, Duration::from_secs(60)).await.unwrap();
    let result = world.server.upstream_tokens().access_token(&session, "corp").await;
    assert_eq!(result, Err(UpstreamTokenError::Expired));
}

#[tokio::test]
async fn a_refusal_needs_a_login_and_an_outage_does_not() {
    let world = World::new().await;
    let session = session(&world).await;
    let tokens = world.server.upstream_tokens();
    world.server.clock.advance(Duration::from_secs(3601));
    world.provider.answer("/token", json!({"status": 400}));
    assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::Expired));
    world.provider.answer("/token", json!({"status": 500}));
    assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::Unavailable));
    assert_eq!(tokens.access_token("unknown", "corp").await, Err(UpstreamTokenError::NotConnected));
    world.provider.answer("/token", json!({"access_token": "new", "token_type": "Bearer"}));
    assert_eq!(tokens.access_token(&session, "corp").await.as_deref(), Ok("new"));
}

#[tokio::test]
async fn an_expired_id_token_is_renewed_if_the_upstream_issues_another_one() {
    let world = World::new().await;
    let session = session(&world).await;
    let tokens = world.server.upstream_tokens();
    let first = tokens.id_token(&session, "corp").await.unwrap();
    assert_eq!(tokens.id_token(&session, "corp").await.as_deref(), Ok(&*first));
    let before = world.provider.requests("/token").len();
    world.server.clock.advance(Duration::from_secs(3601));
    let claims = json!({"sub": "ann", "aud": "us", "exp": 9_999_999_999_u64});
    let second = world.provider.token(claims);
    let access = json!({"access_token": "new", "token_type": "Bearer", "expires_in": 3600});
    world.provider.answer("/token", access.clone());
    assert_eq!(tokens.id_token(&session, "corp").await, Err(UpstreamTokenError::Expired));
    let mut both = access;
    both["id_token"] = second.clone().into();
    world.provider.answer("/token", both);
    for _ in 0..2 {
        assert_eq!(tokens.id_token(&session, "corp").await.as_deref(), Ok(&*second));
    }
    assert_eq!(world.provider.requests("/token").len(), before + 2);
    let mut row = world.server.store.upstream(&session, "corp").await.unwrap().unwrap();
    row.id_token.clear();
    world.server.store.put_upstream(&session, &row, Duration::from_secs(60)).await.unwrap();
    assert_eq!(tokens.id_token(&session, "corp").await, Err(UpstreamTokenError::NoIdToken));
    assert_eq!(tokens.id_token("unknown", "corp").await, Err(UpstreamTokenError::NotConnected));
}
