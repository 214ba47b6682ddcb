//! Logins at several upstreams, and at upstreams without OpenID Connect.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use skep_testkit::IdentityProvider;

use super::world::{Visitor, World, location, parameter};
use crate::clock::Clock;

const CALLBACK: &str = "http://127.0.0.1:1/oauth/callback";

/// An upstream without OpenID Connect, at this provider.
pub(super) fn oauth2(provider: &IdentityProvider, name: &str, changes: Value) -> Value {
    let mut config = json!({
        "authorization_endpoint": format!("{}/authorize", provider.issuer),
        "token_endpoint": format!("{}/token", provider.issuer),
        "client_id": "us", "redirect_uri": CALLBACK,
    });
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    json!({"name": name, "type": "oauth2", "oauth2_config": config})
}

/// A world with these upstreams, all at one provider.
pub(super) async fn world(provider: IdentityProvider, upstreams: Vec<Value>) -> World {
    let mut world = World::with(json!({"upstreams": upstreams})).await;
    world.provider = provider;
    world
}

async fn claims(world: &World, code: &str, client: &str) -> Value {
    let (status, tokens) = world.redeem(client, code, &[]).await;
    assert_eq!(status, StatusCode::OK, "{tokens}");
    Value::Object(world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap())
}

pub(super) fn back(url: &str) -> String {
    format!("/oauth/callback?code=x&state={}", parameter(url, "state"))
}

/// The code of a login at upstreams that respond with these in turn.
async fn log_in(world: &World, client: &str, responses: &[Value]) -> String {
    let mut visitor = Visitor::default();
    let mut url = world.begin(&mut visitor, client, &[]).await;
    for response in responses {
        world.provider.answer("/token", response.clone());
        url = location(&world.open(&mut visitor, &back(&url)).await);
    }
    parameter(&url, "code")
}

#[tokio::test]
async fn a_chain_of_logins_is_one_session_of_the_first_user_with_a_token_of_each_provider() {
    let provider = IdentityProvider::start().await;
    let by_id = json!({"identity_from_token": {"subject_path": "who.id", "name_path": "who.name"}});
    let upstreams = vec![oauth2(&provider, "one", by_id.clone()), oauth2(&provider, "two", by_id)];
    let world = world(provider, upstreams).await;
    let client = world.client().await;
    let response = |id: &str| json!({"access_token": format!("at-{id}"), "token_type": "bearer", "who": {"id": id, "name": id}});
    let code = log_in(&world, &client, &[response("ann"), response("bob")]).await;
    let claims = claims(&world, &code, &client).await;
    assert_eq!(claims["name"], "ann");
    let session = claims["tsid"].as_str().unwrap();
    let tokens = world.server.upstream_tokens();
    assert_eq!(tokens.access_token(session, "one").await.as_deref(), Ok("at-ann"));
    assert_eq!(tokens.access_token(session, "two").await.as_deref(), Ok("at-bob"));
}

/// The attacker logs in at the first provider, and has a victim log in at the second.
#[tokio::test]
async fn the_second_login_of_a_chain_belongs_to_the_browser_of_the_first() {
    let provider = IdentityProvider::start().await;
    let upstreams = vec![oauth2(&provider, "one", json!({})), oauth2(&provider, "two", json!({}))];
    let world = world(provider, upstreams).await;
    let client = world.client().await;
    let (mut attacker, mut victim) = (Visitor::default(), Visitor::default());
    world.provider.answer("/token", json!({"access_token": "a", "token_type": "bearer"}));
    let first = world.begin(&mut attacker, &client, &[]).await;
    let second = location(&world.open(&mut attacker, &back(&first)).await);
    assert!(second.starts_with(&world.provider.issuer), "{second}");
    assert_eq!(world.open(&mut victim, &back(&second)).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(world.provider.requests("/token").len(), 1);
}

#[tokio::test]
async fn a_provider_that_names_no_user_gives_each_login_a_user_of_its_own() {
    let provider = IdentityProvider::start().await;
    let upstreams = vec![oauth2(&provider, "one", json!({}))];
    let world = world(provider, upstreams).await;
    let client = world.client().await;
    let mut subjects = Vec::new();
    for token in ["a", "b"] {
        let code = log_in(&world, &client, &[json!({"access_token": token, "token_type": "bearer"})]).await;
        subjects.push(claims(&world, &code, &client).await["sub"].as_str().unwrap().to_owned());
    }
    assert!(subjects.iter().all(|subject| subject.starts_with("tk-") && subject.len() == 35), "{subjects:?}");
    assert_ne!(subjects[0], subjects[1]);
}

/// The response to a registration.
pub(super) fn registered(client: &str, expires: u64) -> Value {
    json!({
        "client_id": client, "client_secret": "s", "token_endpoint_auth_method": "client_secret_basic",
        "client_secret_expires_at": expires,
    })
}

/// What makes the server register itself at a provider.
pub(super) fn by_registration(provider: &IdentityProvider) -> Value {
    let endpoint = format!("{}/register", provider.issuer);
    json!({"client_id": "", "dcr_config": {"registration_endpoint": endpoint}})
}

/// A world whose server has registered itself, as this client.
async fn registered_world(client: &str, expires: u64) -> World {
    let provider = IdentityProvider::start().await;
    provider.answer("/register", registered(client, expires));
    let upstreams = vec![oauth2(&provider, "one", by_registration(&provider))];
    let world = world(provider, upstreams).await;
    world.server.check().await.unwrap();
    assert_eq!(world.provider.requests("/register").len(), 1);
    world
}

/// The client that the server is at the provider.
async fn client_at_provider(world: &World) -> String {
    let client = world.client().await;
    parameter(&world.begin(&mut Visitor::default(), &client, &[]).await, "client_id")
}

#[tokio::test]
async fn the_server_registers_itself_once_at_a_provider_where_it_is_no_client() {
    let world = registered_world("new", 0).await;
    world.server.check().await.unwrap();
    assert_eq!(world.provider.requests("/register").len(), 1);
    assert_eq!(client_at_provider(&world).await, "new");
}

/// RFC 7591, section 3.2.1.
#[tokio::test]
async fn the_server_registers_itself_again_when_its_secret_expires() {
    let world = registered_world("first", Clock::default().now() + 3600).await;
    let wait = world.server.next_check().unwrap();
    assert!((Duration::from_secs(3000)..Duration::from_secs(3600)).contains(&wait), "{wait:?}");
    world.server.clock.advance(wait + Duration::from_secs(1));
    assert_eq!(world.server.next_check(), Some(Duration::ZERO));
    // It stays the former client while it cannot be another one.
    world.provider.answer("/register", json!({"status": 503}));
    world.server.check().await.unwrap_err();
    assert_eq!(client_at_provider(&world).await, "first");
    world.provider.answer("/register", registered("second", 0));
    world.server.check().await.unwrap();
    assert_eq!(world.server.next_check(), None);
    assert_eq!(client_at_provider(&world).await, "second");
}
