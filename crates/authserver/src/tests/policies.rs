//! How long sessions last, who may log in, and which clients may register.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};

use super::world::{REDIRECT, Visitor, World, authorize_path, parameter};
use crate::{AuthServer, random::hash};

fn end_of(token: &Value, world: &World) -> u64 {
    let claims = world.server.verified(token.as_str().unwrap()).unwrap();
    claims["exp"].as_u64().unwrap()
}

#[tokio::test]
async fn a_session_lasts_as_long_as_it_may_however_often_it_is_continued() {
    let world = World::with(json!({
        "session_lifespan": "3h",
        "token_lifespans": {"access_token_lifespan": "1h", "refresh_token_lifespan": "2h"},
    }))
    .await;
    let client = world.client().await;
    let began = world.server.clock.now();
    let mut tokens = world.tokens(&client).await;
    // The provider continues its own session.
    let answer =
        json!({"access_token": "at-2", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "rt-2"});
    world.provider.answer("/token", answer);
    for _ in 0..2 {
        world.server.clock.advance(Duration::from_secs(80 * 60));
        let (status, next) = world.refresh(&client, tokens["refresh_token"].as_str().unwrap(), &[]).await;
        assert_eq!(status, StatusCode::OK, "{next}");
        tokens = next;
    }
    // 20 minutes are left, for whatever it has.
    let end = began + 3 * 3600;
    assert!(end_of(&tokens["access_token"], &world) <= end + 1, "{tokens}");
    assert!(tokens["expires_in"].as_u64().unwrap() <= 20 * 60, "{tokens}");
    world.server.clock.advance(Duration::from_secs(20 * 60));
    let (status, error) = world.refresh(&client, tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!((status, &error["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_grant")), "{error}");
    // Another login begins another one.
    assert!(world.tokens(&client).await["refresh_token"].is_string());
}

#[tokio::test]
async fn a_shorter_life_ends_sessions_that_have_begun_before() {
    let mut world = World::new().await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    world.server.clock.advance(Duration::from_secs(2 * 3600));
    world.server.settings.session_life = Some(Duration::from_secs(3600));
    let (status, error) = world.refresh(&client, tokens["refresh_token"].as_str().unwrap(), &[]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{error}");
    assert!(error["error_description"].as_str().unwrap().contains("must log in again"), "{error}");
    assert!(world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().is_none());
}

/// The response to the return of a user from the identity provider, who has these claims.
async fn back(world: &World, client: &str, browser: &mut Visitor, claims: Value) -> Response<Bytes> {
    let url = world.begin(browser, client, &[]).await;
    let path = world.at_upstream(&url, "eve");
    let mut all = json!({
        "sub": "eve", "aud": "us", "nonce": parameter(&url, "nonce"), "exp": world.server.clock.now() + 3600,
    });
    all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    let id_token = world.provider.token(all);
    let tokens = json!({
        "access_token": "at-of-eve", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "rt-of-eve",
        "id_token": id_token,
    });
    world.provider.answer("/token", tokens);
    world.open(browser, &path).await
}

#[tokio::test]
async fn a_user_who_may_not_log_in_sees_why_and_leaves_nothing() {
    let world = World::with(json!({"allowed_users": {
        "email_domains": ["example.test"], "claims": [{"name": "groups", "values": ["staff"]}],
    }}))
    .await;
    let client = world.client().await;
    let mut browser = Visitor::default();
    for (claims, reason) in [
        (json!({"email": "eve@evil.test", "email_verified": true, "groups": ["staff"]}), "e-mail"),
        (json!({"email": "eve@example.test", "groups": ["staff"]}), "e-mail"),
        (json!({"email": "eve@example.test", "email_verified": true, "groups": ["guests"]}), "group"),
        (json!({"email": "eve@example.test", "email_verified": true}), "group"),
    ] {
        let page = back(&world, &client, &mut browser, claims.clone()).await;
        let text = String::from_utf8(page.body().to_vec()).unwrap();
        assert_eq!(page.status(), StatusCode::FORBIDDEN, "{claims}: {text}");
        assert!(text.contains("<h1>") && text.contains(reason) && text.contains("administrator"), "{text}");
        // The page says nothing of other users, and no code is in it.
        assert!(
            !text.contains("staff") && !text.contains("example.test") && !text.contains("code="),
            "{text}"
        );
    }
    assert_eq!(world.server.user_connections(10).await.unwrap().total, 0);
    let allowed = json!({"email": "eve@example.test", "email_verified": true, "groups": ["x", "staff"]});
    let page = back(&world, &client, &mut browser, allowed).await;
    assert_eq!(page.status(), StatusCode::SEE_OTHER, "{page:?}");
}

async fn register(world: &World, token: Option<&str>, redirect: &str) -> Response<Bytes> {
    let mut request = Request::post("/oauth/register").header(header::CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let metadata = json!({"client_name": "Notes", "redirect_uris": [redirect]});
    world.send(request.body(Full::from(metadata.to_string())).unwrap()).await
}

async fn metadata(world: &World) -> Value {
    let request = Request::get("/.well-known/oauth-authorization-server").body(Full::default()).unwrap();
    serde_json::from_slice(world.send(request).await.body()).unwrap()
}

#[tokio::test]
async fn where_registration_is_off_no_client_registers_and_none_is_told_to() {
    let mut world = World::new().await;
    let client = world.client().await;
    assert!(metadata(&world).await["registration_endpoint"].is_string());
    world.server.settings.registration.is_open = false;
    // A token changes nothing.
    for token in [None, Some("t")] {
        assert_eq!(register(&world, token, REDIRECT).await.status(), StatusCode::FORBIDDEN);
    }
    assert_eq!(metadata(&world).await["registration_endpoint"], Value::Null);
    // One that has registered before goes on.
    assert!(world.tokens(&client).await["access_token"].is_string());
}

#[tokio::test]
async fn a_client_registers_with_the_initial_access_token_and_with_no_other() {
    let mut world = World::new().await;
    world.server.settings.registration.token_hash = Some(hash("right-0123456789"));
    for token in [None, Some(""), Some("wrong"), Some("right-0123456789x"), Some(&*hash("right-0123456789"))]
    {
        let response = register(&world, token, REDIRECT).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{token:?}");
        assert!(response.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with("Bearer"));
        world.server.clock.advance(Duration::from_secs(5));
    }
    let response = register(&world, Some("right-0123456789"), REDIRECT).await;
    assert_eq!(response.status(), StatusCode::CREATED, "{response:?}");
}

#[tokio::test]
async fn users_are_sent_back_to_the_hosts_of_the_list_alone() {
    let world = World::with(json!({"client_registration": {"redirect_hosts": ["app.example"]}})).await;
    assert_eq!(register(&world, None, "https://app.example/cb").await.status(), StatusCode::CREATED);
    for foreign in ["https://evil.test/cb", "http://127.0.0.1/cb", "cursor://x/cb"] {
        let response = register(&world, None, foreign).await;
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        let found = (response.status(), &body["error"]);
        assert_eq!(found, (StatusCode::BAD_REQUEST, &json!("invalid_redirect_uri")), "{foreign}");
    }
}

#[tokio::test]
async fn a_client_that_has_registered_before_is_held_to_the_list_as_well() {
    let mut world = World::new().await;
    let client = world.client().await;
    world.server.settings.registration.redirect_hosts = vec!["app.example".into()];
    let page = world.open(&mut Visitor::default(), &authorize_path(&client, &[])).await;
    assert_eq!(page.status(), StatusCode::BAD_REQUEST);
    assert!(page.headers().get(header::LOCATION).is_none(), "{page:?}");
}

#[tokio::test]
async fn policies_that_no_one_can_meet_are_mistakes() {
    let world = World::new().await;
    let mistakes = |changes: Value| {
        let config = super::world::config(&world.provider, &changes);
        let errors = AuthServer::new(&config).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    for (changes, field) in [
        (json!({"allowed_users": {"email_domains": ["@example.com"]}}), "allowed_users.email_domains"),
        (json!({"allowed_users": {"claims": [{"name": "groups"}]}}), "allowed_users.claims[0]"),
        (json!({"session_lifespan": "1m"}), "session_lifespan"),
        (json!({"session_lifespan": "x"}), "session_lifespan"),
        (json!({"client_registration": {"redirect_hosts": [""]}}), "client_registration.redirect_hosts"),
        (
            json!({"client_registration": {"initial_access_token_env_var": "SKEP_NOT_SET"}}),
            "client_registration.initial_access_token_env_var",
        ),
        // It has a value, which is too short.
        (
            json!({"client_registration": {"initial_access_token_env_var": "CARGO_PKG_VERSION_MAJOR"}}),
            "at least 16 characters",
        ),
    ] {
        assert!(mistakes(changes.clone()).contains(field), "{changes}: {}", mistakes(changes.clone()));
    }
}
