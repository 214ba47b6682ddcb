//! Tokens of upstreams.

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use serde_json::{Value, json};
use skep_testkit::{IdentityProvider, Redis};

use super::{
    chains::{by_registration, oauth2, registered, world},
    flow::{Flow, STEPS, Servers},
    stores::{PASSWORD, row, store_at},
    world::{World, config, metadata_of},
};
use crate::{AuthServer, SessionError, UpstreamTokenError, limits, store::Upstream};

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
    world.provider.answer("/token", json!({"status": 400, "body": {"error": "invalid_grant"}}));
    assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::Expired));
    for status in [400, 401, 500, 503, 408, 429] {
        world.provider.answer("/token", json!({"status": status}));
        assert_eq!(
            tokens.access_token(&session, "corp").await,
            Err(UpstreamTokenError::Unavailable),
            "{status}"
        );
        world.server.clock.advance(2 * limits::REFRESH_PAUSE);
    }
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

#[tokio::test]
async fn a_refresh_token_that_the_provider_refuses_twice_is_not_sent_again() {
    let world = World::new().await;
    let session = session(&world).await;
    let tokens = world.server.upstream_tokens();
    let expired = async || {
        let connections = tokens.connections(&session).await.unwrap();
        assert!(connections[0].connected);
        connections[0].expired
    };
    world.server.clock.advance(Duration::from_secs(3601));
    let before = world.provider.requests("/token").len();
    let refusal = json!({"status": 400, "body": {"error": "invalid_grant"}});
    world.provider.answer("/token", refusal.clone());
    assert!(!expired().await, "it has not been tried yet");
    assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::Expired));
    assert!(expired().await, "users do not learn what to do");
    // A provider may have erred.
    world.provider.answer("/token", json!({"access_token": "new", "token_type": "Bearer", "expires_in": 1}));
    assert_eq!(tokens.access_token(&session, "corp").await.as_deref(), Ok("new"));
    world.server.clock.advance(Duration::from_secs(2));
    assert!(!expired().await);
    // Some have the error in a response of success.
    for refusal in [refusal, json!({"error": "bad_refresh_token"})] {
        world.provider.answer("/token", refusal);
        assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::Expired));
    }
    for _ in 0..3 {
        assert_eq!(tokens.access_token(&session, "corp").await, Err(UpstreamTokenError::Expired));
    }
    assert!(expired().await);
    assert_eq!(world.provider.requests("/token").len(), before + 4);
}

#[tokio::test]
async fn all_who_wait_share_a_failure_and_then_the_provider_has_a_pause() {
    let world = World::new().await;
    let session = session(&world).await;
    let tokens = world.server.upstream_tokens();
    world.server.clock.advance(Duration::from_secs(3601));
    let before = world.provider.requests("/token").len();
    world.provider.down();
    for _ in 0..3 {
        let results = join_all((0..8).map(|_| tokens.access_token(&session, "corp"))).await;
        assert_eq!(results, vec![Err(UpstreamTokenError::Unavailable); 8]);
    }
    assert_eq!(world.provider.requests("/token").len(), before + 1);
    world.provider.up();
    world.provider.answer("/token", json!({"access_token": "new", "token_type": "Bearer"}));
    world.server.clock.advance(limits::REFRESH_PAUSE);
    assert_eq!(tokens.access_token(&session, "corp").await.as_deref(), Ok("new"));
}

/// A client may give up and retry as often as it likes.
#[tokio::test]
async fn requests_that_give_up_send_no_more_to_a_provider_that_hangs() {
    let world = World::new().await;
    let session = session(&world).await;
    let tokens = world.server.upstream_tokens();
    world.server.clock.advance(Duration::from_secs(3601));
    let before = world.provider.requests("/token").len();
    world.provider.slow(Duration::from_secs(3600));
    for _ in 0..5 {
        let waiting = join_all((0..8).map(|_| tokens.access_token(&session, "corp")));
        tokio::time::timeout(Duration::from_millis(100), waiting).await.unwrap_err();
    }
    assert_eq!(world.provider.requests("/token").len(), before + 1);
}

/// Two servers with one Redis, and a session whose token has expired.
struct Replicas {
    _redis: Redis,
    provider: IdentityProvider,
    servers: [AuthServer; 2],
    session: String,
}

impl Replicas {
    async fn new() -> Self {
        let redis = Redis::with_password(PASSWORD).await;
        let provider = IdentityProvider::start().await;
        provider.answer("/.well-known/openid-configuration", metadata_of(&provider));
        let start = async || {
            let store = store_at(redis.address().parse().unwrap(), None).await;
            let server = AuthServer::with_store(&config(&provider, &json!({})), store);
            assert!(server.check().await.unwrap().is_empty());
            server
        };
        let (first, second) = (start().await, start().await);
        let world = World { server: first, provider };
        let session = session(&world).await;
        let World { server: first, provider } = world;
        let servers = [first, second];
        for server in &servers {
            server.clock.advance(Duration::from_secs(3601));
        }
        Self { _redis: redis, provider, servers, session }
    }

    /// Calls at both, at the same time.
    async fn tokens(&self) -> Vec<Result<String, UpstreamTokenError>> {
        let servers = self.servers.iter().cycle().take(8);
        join_all(servers.map(|server| server.upstream_tokens().access_token(&self.session, "corp"))).await
    }
}

/// RFC 9700, section 4.14.2: a provider takes the second use of a refresh token for theft, and ends the grant.
#[tokio::test]
async fn replicas_do_not_use_one_refresh_token_at_the_same_time() {
    let replicas = Replicas::new().await;
    let before = replicas.provider.requests("/token").len();
    let response = json!({"access_token": "new", "token_type": "Bearer", "expires_in": 3600});
    replicas.provider.answer("/token", response);
    replicas.provider.slow(Duration::from_millis(200));
    assert_eq!(replicas.tokens().await, vec![Ok("new".to_owned()); 8]);
    assert_eq!(replicas.provider.requests("/token").len(), before + 1);
}

/// It is waited for as long as the request to the provider takes, and not for as long as its lock lasts by itself.
#[tokio::test]
async fn a_refresh_that_takes_longer_than_its_lock_is_still_the_only_one() {
    let replicas = Replicas::new().await;
    let before = replicas.provider.requests("/token").len();
    let response = json!({"access_token": "new", "token_type": "Bearer", "expires_in": 3600});
    replicas.provider.answer("/token", response);
    replicas.provider.slow(limits::LOCK_LIFE + limits::LOCK_RENEWAL);
    assert_eq!(replicas.tokens().await, vec![Ok("new".to_owned()); 8]);
    assert_eq!(replicas.provider.requests("/token").len(), before + 1);
}

#[tokio::test]
async fn a_replica_that_is_killed_while_it_refreshes_does_not_hold_others_for_long() {
    let replicas = Replicas::new().await;
    let [killed, other] = replicas.servers;
    let before = replicas.provider.requests("/token").len();
    replicas.provider.slow(Duration::from_secs(3600));
    // Its process ends with all of its tasks, and releases nothing.
    let process = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let session = replicas.session.clone();
    process.spawn(async move { killed.upstream_tokens().access_token(&session, "corp").await });
    while replicas.provider.requests("/token").len() == before {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    process.shutdown_background();
    replicas.provider.slow(Duration::ZERO);
    let response = json!({"access_token": "new", "token_type": "Bearer", "expires_in": 3600});
    replicas.provider.answer("/token", response);
    let tokens = other.upstream_tokens();
    let begun = std::time::Instant::now();
    let refreshing = async {
        while tokens.access_token(&replicas.session, "corp").await != Ok("new".to_owned()) {
            // A failure is shared for some time.
            other.clock.advance(limits::REFRESH_PAUSE);
        }
    };
    refreshing.await;
    assert!(begun.elapsed() < limits::LOCK_LIFE + limits::LOCK_RENEWAL, "{:?}", begun.elapsed());
}

/// Each request of a client is checked so.
#[tokio::test]
async fn a_session_is_checked_by_one_command_of_redis_however_many_providers_there_are() {
    let redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let store = store_at(redis.address().parse().unwrap(), None).await;
    let world = World { server: servers.start(store).await, provider };
    let mut flow = Flow::new("ann");
    for step in STEPS {
        flow.step(&servers, &world, step).await.unwrap();
    }
    let token = flow.tokens["access_token"].as_str().unwrap();
    let session = world.server.verified(token).unwrap()["tsid"].as_str().unwrap().to_owned();
    let before = redis.commands().await;
    assert_eq!(world.server.check_session(&session).await, Ok(()));
    let mut after = redis.commands().await;
    after.retain(|name, count| {
        *count -= before.get(name).copied().unwrap_or_default();
        *count > 0
    });
    assert_eq!(after, BTreeMap::from([("mget".to_owned(), 1)]));
    // A session that another replica ends has ended with the next request.
    let store = store_at(redis.address().parse().unwrap(), None).await;
    servers.start(store).await.end_session(&session).await.unwrap();
    assert_eq!(world.server.check_session(&session).await, Err(SessionError::Ended));
}

#[tokio::test]
async fn a_session_is_of_use_while_one_of_its_providers_has_a_token() {
    let provider = IdentityProvider::start().await;
    let by_id = json!({"identity_from_token": {"subject_path": "who"}});
    let upstreams = vec![oauth2(&provider, "one", by_id.clone()), oauth2(&provider, "two", by_id)];
    let world = world(provider, upstreams).await;
    let store = &world.server.store;
    let put = async |name: &str, expires_at: u64, refresh_token: &str| {
        let refresh_token = refresh_token.to_owned();
        let row = Upstream { provider_id: name.into(), expires_at, refresh_token, ..row("token") };
        store.put_upstream("s", &row, Duration::from_secs(60)).await.unwrap();
    };
    let check = async || {
        let checked = world.server.check_session("s").await;
        world.server.clock.advance(2 * limits::REFRESH_PAUSE);
        checked
    };
    assert_eq!(check().await, Ok(()), "it has never had one");
    put("one", 1, "").await;
    assert_eq!(check().await, Err(SessionError::Expired));
    put("two", 0, "").await;
    assert_eq!(check().await, Ok(()));
    // One that does not respond may do so later.
    put("two", 1, "refresh").await;
    world.provider.answer("/token", json!({"status": 503}));
    assert_eq!(check().await, Err(SessionError::Unavailable));
    world.provider.answer("/token", json!({"access_token": "new", "token_type": "Bearer"}));
    assert_eq!(check().await, Ok(()));
    // What has been disconnected is no reason to log in again.
    for name in ["one", "two"] {
        let row = Upstream { provider_id: name.into(), expires_at: 1, ..row("") };
        store.put_upstream("s", &row, Duration::from_secs(60)).await.unwrap();
    }
    assert_eq!(check().await, Ok(()));
}

#[tokio::test]
async fn replicas_share_the_failure_of_a_refresh() {
    let replicas = Replicas::new().await;
    let before = replicas.provider.requests("/token").len();
    replicas.provider.down();
    replicas.provider.slow(Duration::from_millis(200));
    assert_eq!(replicas.tokens().await, vec![Err(UpstreamTokenError::Unavailable); 8]);
    assert_eq!(replicas.provider.requests("/token").len(), before + 1);
}

#[tokio::test]
async fn replicas_that_start_together_are_one_client_of_a_provider() {
    let redis = Redis::with_password(PASSWORD).await;
    let provider = IdentityProvider::start().await;
    provider.answer("/register", registered("new", 0));
    provider.slow(Duration::from_millis(200));
    let changes = json!({"upstreams": [oauth2(&provider, "one", by_registration(&provider))]});
    let start = async || {
        let store = store_at(redis.address().parse().unwrap(), None).await;
        AuthServer::with_store(&config(&provider, &changes), store)
    };
    let servers = [start().await, start().await, start().await];
    for checked in join_all(servers.iter().map(AuthServer::check)).await {
        assert!(checked.unwrap().is_empty());
    }
    assert_eq!(provider.requests("/register").len(), 1);
}

/// Its lock ends by itself, and the next one does not take it for one that has failed.
#[tokio::test]
async fn a_refresh_goes_on_after_a_replica_that_was_killed_during_it() {
    let redis = Redis::with_password(PASSWORD).await;
    let (servers, provider) = Servers::new().await;
    let store = store_at(redis.address().parse().unwrap(), None).await;
    let world = World { server: servers.start(store).await, provider };
    let store = &world.server.store;
    let expired = Upstream { provider_id: "one".into(), expires_at: 1, ..row("expired") };
    store.put_upstream("session", &expired, Duration::from_secs(600)).await.unwrap();
    let life = Duration::from_secs(1);
    assert!(store.lock("upstream:session:one", "killed", life).await.unwrap());
    world.provider.answer("/token", json!({"access_token": "new", "token_type": "Bearer"}));
    assert_eq!(world.server.upstream_tokens().access_token("session", "one").await.as_deref(), Ok("new"));
}
