//! The connections of all users, for those who run the server.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use skep_testkit::Redis;

use super::{
    stores::{LIFE, PASSWORD, row, settings},
    world::{Visitor, World},
};
use crate::{
    clock::Clock,
    limits,
    store::{Connected, MemoryStore, RedisStore, Store, Upstream},
};

fn redis_store(redis: &Redis, key: Option<[u8; 32]>, clock: &Clock) -> Arc<dyn Store> {
    let settings = settings(None, PASSWORD, redis.address().parse().unwrap(), key);
    Arc::new(RedisStore::new(settings, clock.clone()).unwrap())
}

fn of(user: &str, provider: &str) -> Upstream {
    Upstream { user_id: user.into(), provider_id: provider.into(), ..row("secret-access") }
}

/// Users and providers of connections.
fn names(shown: &[Connected]) -> BTreeSet<String> {
    shown.iter().map(|one| format!("{} {}", one.user_id, one.provider_id)).collect()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// Each connection is listed while it can be used, and no longer.
async fn check(store: Arc<dyn Store>, clock: &Clock) {
    assert_eq!(store.connections(10).await, Ok((0, Vec::new())));
    let times = Upstream { connected_at: 1000, expires_at: 2000, ..of("ann", "corp") };
    store.put_upstream("one", &times, 3 * LIFE).await.unwrap();
    let (total, shown) = store.connections(10).await.unwrap();
    let expected = Connected {
        user_id: "ann".into(),
        provider_id: "corp".into(),
        upstream_subject: "a".into(),
        connected_at: 1000,
        expires_at: 2000,
        is_renewed: true,
    };
    assert_eq!((total, shown), (1, vec![expected]));
    // A refresh is no other connection.
    store.put_upstream("one", &of("ann", "corp"), 3 * LIFE).await.unwrap();
    store.put_upstream("one", &of("ann", "hub"), 2 * LIFE).await.unwrap();
    let unrenewed = Upstream { refresh_token: String::new(), ..of("bob", "corp") };
    store.put_upstream("two", &unrenewed, LIFE).await.unwrap();
    let (total, shown) = store.connections(10).await.unwrap();
    assert_eq!((total, names(&shown)), (3, set(["ann corp", "ann hub", "bob corp"])));
    assert_eq!(shown.iter().filter(|one| one.is_renewed).count(), 2);
    // A part of them: those that expire last.
    let (total, shown) = store.connections(1).await.unwrap();
    assert_eq!((total, names(&shown)), (3, set(["ann corp"])));
    // One without tokens is none.
    let disconnected =
        Upstream { access_token: String::new(), refresh_token: String::new(), ..of("ann", "hub") };
    store.put_upstream("one", &disconnected, 2 * LIFE).await.unwrap();
    let (total, shown) = store.connections(10).await.unwrap();
    assert_eq!((total, names(&shown)), (2, set(["ann corp", "bob corp"])));
    // A session that has ended has none, also if a refresh that was under way ends later.
    store.end_session("one", &["corp", "hub"], LIFE).await.unwrap();
    store.put_upstream("one", &of("ann", "corp"), 3 * LIFE).await.unwrap();
    let (total, shown) = store.connections(10).await.unwrap();
    assert_eq!((total, names(&shown)), (1, set(["bob corp"])));
    // What a user with many sessions has lost is not counted.
    for number in 0..limits::SESSIONS_OF_A_USER + 5 {
        store.put_upstream(&format!("of-eve-{number}"), &of("eve", "corp"), 2 * LIFE).await.unwrap();
    }
    let (total, shown) = store.connections(10).await.unwrap();
    assert_eq!((total, names(&shown)), (limits::SESSIONS_OF_A_USER + 1, set(["eve corp"])));
    // Nor is what has expired.
    clock.advance(LIFE + Duration::from_secs(1));
    assert_eq!(store.connections(0).await, Ok((limits::SESSIONS_OF_A_USER, Vec::new())));
}

#[tokio::test]
async fn the_memory_store_lists_each_connection_while_it_can_be_used() {
    let clock = Clock::default();
    check(Arc::new(MemoryStore::new(clock.clone())), &clock).await;
}

#[tokio::test]
async fn the_redis_store_lists_each_connection_while_it_can_be_used() {
    for key in [None, Some([7; 32])] {
        let (redis, clock) = (Redis::with_password(PASSWORD).await, Clock::default());
        check(redis_store(&redis, key, &clock), &clock).await;
    }
}

#[tokio::test]
async fn a_full_memory_store_counts_only_the_connections_that_it_has() {
    let store = MemoryStore::new(Clock::default());
    for number in 0..limits::ROWS + 10 {
        store.put_upstream(&number.to_string(), &of(&number.to_string(), "corp"), LIFE).await.unwrap();
    }
    let (total, shown) = store.connections(3).await.unwrap();
    assert_eq!((total, shown.len()), (limits::ROWS, 3));
}

#[tokio::test]
async fn a_view_reads_as_many_rows_of_redis_as_it_shows_however_many_there_are() {
    let (redis, clock) = (Redis::with_password(PASSWORD).await, Clock::default());
    let store = redis_store(&redis, None, &clock);
    let client = redis::Client::open(format!("redis://:{PASSWORD}@{}/", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    // Others that expire earlier, up to the bound and beyond.
    let until = clock.now() + 30;
    for chunk in 0..=limits::CONNECTIONS_IN_REDIS / 1000 {
        let mut command = redis::cmd("ZADD");
        command.arg("thv:auth:{ns:kit}:connections");
        for number in 0..1000 {
            command.arg(until).arg(format!("row-{chunk}-{number}"));
        }
        command.query_async::<()>(&mut connection).await.unwrap();
    }
    for number in 0..20 {
        let user = format!("user-{number}");
        store.put_upstream(&user, &of(&user, "corp"), LIFE).await.unwrap();
    }
    let reads = async || {
        let commands = redis.commands().await;
        ["get", "mget", "scan", "keys"].map(|name| commands.get(name).copied().unwrap_or_default())
    };
    let before = reads().await;
    let (total, shown) = store.connections(5).await.unwrap();
    assert_eq!((total, shown.len()), (limits::CONNECTIONS_IN_REDIS, 5), "the index is bounded");
    let after = reads().await;
    let read: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    assert_eq!(read, [5, 0, 0, 0]);
}

#[tokio::test]
async fn what_is_listed_of_a_user_has_no_token_and_no_session() {
    let world = World::new().await;
    let client = world.client().await;
    let tokens = world.tokens(&client).await;
    let claims = world.server.claims(tokens["access_token"].as_str().unwrap()).await.unwrap().unwrap();
    let listed = world.server.user_connections(10).await.unwrap();
    assert_eq!((listed.total, listed.is_shared), (1, false));
    let one = &listed.shown[0];
    let user = claims["sub"].as_str().unwrap();
    assert_eq!((&*one.user, &*one.provider, &*one.account), (user, "corp", "ann"));
    let now = world.server.clock.now();
    assert!(one.since.is_some_and(|since| now - since < 60) && one.is_renewed, "{one:?}");
    assert!(one.expires_at.is_some_and(|until| until > now), "{one:?}");
    let text = format!("{listed:?}");
    let session = claims["tsid"].as_str().unwrap();
    for secret in ["at-of-ann", "rt-of-ann", session] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    // It ends with its session.
    let token = tokens["refresh_token"].as_str().unwrap();
    world.post("/oauth/revoke", &[("client_id", &client), ("token", token)]).await;
    assert_eq!(world.server.user_connections(10).await.unwrap().total, 0);
    world.log_in(&mut Visitor::default(), &client, &[]).await;
    assert_eq!(world.server.user_connections(10).await.unwrap().total, 1);
}
