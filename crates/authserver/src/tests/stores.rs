//! Both stores keep the same promises.

use std::{net::IpAddr, sync::Arc, time::Duration};

use futures::future::join_all;
use serde_json::{Value, json};
use skep_testkit::Redis;

use crate::{
    clock::Clock,
    config::{RedisPlace, RedisSettings, RedisTls},
    limits,
    store::{Grant, MemoryStore, Pending, RedisStore, Rotation, Session, Store, Taken, Upstream, User},
};

/// The password of every Redis.
pub(super) const PASSWORD: &str = "correct-horse";
const LIFE: Duration = Duration::from_secs(60);

fn grant(session: &str) -> Grant {
    Grant {
        client_id: "c".into(),
        request_id: "r".into(),
        requested_at: 1,
        granted_scopes: Vec::new(),
        granted_audience: Vec::new(),
        session: Session { id: session.into(), user: User { id: "ann".into(), name: None, email: None } },
        expires_at: 1,
        proof: None,
    }
}

/// A login whose client has this state.
pub(crate) fn pending(state: &str) -> Pending {
    Pending {
        client_id: "c".into(),
        redirect_uri: "https://app.example/cb".into(),
        state: state.into(),
        scopes: Vec::new(),
        pkce_challenge: String::new(),
        pkce_method: String::new(),
        session_id: String::new(),
        internal_state: String::new(),
        upstream_provider_name: String::new(),
        upstream_pkce_verifier: String::new(),
        upstream_nonce: String::new(),
        created_at: 1,
        resources: Vec::new(),
        is_redirect_implied: false,
        is_approval_remembered: false,
        user: None,
    }
}

fn row(access_token: &str) -> Upstream {
    Upstream {
        provider_id: "corp".into(),
        access_token: access_token.into(),
        refresh_token: "secret-refresh".into(),
        id_token: String::new(),
        expires_at: 0,
        session_expires_at: 0,
        user_id: "ann".into(),
        connected_at: 0,
        scopes: Vec::new(),
        upstream_subject: "a".into(),
        client_id: "c".into(),
    }
}

async fn redis_store(redis: &Redis, key: Option<[u8; 32]>) -> Arc<dyn Store> {
    store_at(RedisPlace::Address(redis.address()), None, key).await
}

pub(super) async fn store_at(
    place: RedisPlace,
    tls: Option<RedisTls>,
    key: Option<[u8; 32]>,
) -> Arc<dyn Store> {
    store_as(None, PASSWORD, place, tls, key)
}

/// The store as this user of Redis sees it.
pub(super) fn store_as(
    user: Option<&str>,
    password: &str,
    place: RedisPlace,
    tls: Option<RedisTls>,
    key: Option<[u8; 32]>,
) -> Arc<dyn Store> {
    let settings = RedisSettings {
        place,
        tls,
        user: user.map(Into::into),
        password: password.into(),
        prefix: "thv:auth:{ns:kit}:".into(),
        connect_time: Duration::from_secs(5),
        response_time: Duration::from_secs(5),
        key,
    };
    Arc::new(RedisStore::new(settings).unwrap())
}

pub(super) async fn check_promises(store: Arc<dyn Store>) {
    // What may be used once is used once.
    let spent = join_all((0..16).map(|_| store.take_code("code"))).await;
    assert_eq!(spent.iter().filter(|taken| matches!(taken, Ok(Taken::First))).count(), 1);
    let spent = join_all((0..16).map(|_| store.spend("key", LIFE))).await;
    assert_eq!(spent.iter().filter(|first| **first == Ok(true)).count(), 1);
    // One rotation wins, and the others learn when that was.
    assert_eq!(store.put_refresh("old", &grant("s"), LIFE).await, Ok(true));
    let session = grant("s");
    let rotations =
        (0..16).map(|number| {
            let (store, session) = (store.clone(), &session);
            async move {
                store.rotate("old", &format!("new-{number}"), session, LIFE, 1000 + number).await.unwrap()
            }
        });
    let rotations = join_all(rotations).await;
    let winner = rotations.iter().position(|rotation| *rotation == Rotation::Done).unwrap() as u64;
    let lost = rotations.iter().filter(|rotation| **rotation == Rotation::Lost(1000 + winner)).count();
    assert_eq!(lost, 15, "{rotations:?}");
    assert!(store.refresh(&format!("new-{winner}")).await.unwrap().is_some());
    // Nothing is issued for a session that has ended.
    store.end_session("s", LIFE).await.unwrap();
    assert_eq!(store.is_ended("s").await, Ok(true));
    assert_eq!(store.is_ended("t").await, Ok(false));
    let next = format!("new-{winner}");
    assert_eq!(store.rotate(&next, "newest", &session, LIFE, 2000).await, Ok(Rotation::Ended));
    assert_eq!(store.put_refresh("other", &session, LIFE).await, Ok(false));
    // A subject of a provider is one user, also for requests at the same time.
    let users = join_all(["u1", "u2", "u3"].map(|new| store.user("corp", "ann", new, 1))).await;
    assert!(users.windows(2).all(|pair| pair[0] == pair[1]), "{users:?}");
    assert_eq!(store.user("cor", "pann", "u4", 1).await.as_deref(), Ok("u4"));
    // Rows of one session are not those of another.
    store.put_upstream("one", &row("first"), LIFE).await.unwrap();
    store.put_upstream("two", &row("second"), LIFE).await.unwrap();
    let token = |row: Option<Upstream>| row.map(|row| row.access_token);
    assert_eq!(token(store.upstream("one", "corp").await.unwrap()).as_deref(), Some("first"));
    assert_eq!(token(store.latest_upstream("ann", "corp").await.unwrap()).as_deref(), Some("second"));
    assert_eq!(token(store.upstream("one", "other").await.unwrap()), None);
}

#[tokio::test]
async fn the_memory_store_keeps_its_promises() {
    check_promises(Arc::new(MemoryStore::new(Clock::default()))).await;
}

#[tokio::test]
async fn the_redis_store_keeps_its_promises() {
    let redis = Redis::with_password(PASSWORD).await;
    check_promises(redis_store(&redis, None).await).await;
}

#[tokio::test]
async fn tokens_of_upstreams_cannot_be_read_in_redis_without_the_key() {
    let redis = Redis::with_password(PASSWORD).await;
    let sealed = redis_store(&redis, Some([7; 32])).await;
    sealed.put_upstream("one", &row("secret-access"), LIFE).await.unwrap();
    let found = sealed.upstream("one", "corp").await.unwrap().unwrap();
    assert_eq!((&*found.access_token, &*found.refresh_token), ("secret-access", "secret-refresh"));
    let plain = redis_store(&redis, None).await;
    assert!(plain.upstream("one", "corp").await.unwrap().is_none(), "readable without a key");
    // A row from before there was a key is still read.
    plain.put_upstream("two", &row("plain"), LIFE).await.unwrap();
    assert_eq!(sealed.upstream("two", "corp").await.unwrap().unwrap().access_token, "plain");
}

#[tokio::test]
async fn an_address_has_a_share_of_the_logins_in_redis() {
    let redis = Redis::with_password(PASSWORD).await;
    let store = redis_store(&redis, None).await;
    let [quiet, flooding] = [1, 2].map(|last| IpAddr::from([203, 0, 113, last]));
    store.put_pending("quiet", &pending(""), quiet).await.unwrap();
    store.put_pending("first", &pending(""), flooding).await.unwrap();
    let (store, login) = (&store, &pending(""));
    let more = (1..=limits::LOGINS_IN_REDIS)
        .map(|number| async move { store.put_pending(&number.to_string(), login, flooding).await });
    assert!(join_all(more).await.into_iter().all(|put| put.is_ok()));
    for (state, is_there) in [("quiet", true), ("first", false), ("1", true), ("10000", true)] {
        assert_eq!(store.take_pending(state).await.unwrap().is_some(), is_there, "{state}");
    }
}

/// The members of these rows are those that ToolHive's have. Times are seconds, or texts as Go writes them.
#[tokio::test]
async fn clients_users_and_tokens_that_toolhive_stored_are_found() {
    let redis = Redis::with_password(PASSWORD).await;
    let store = redis_store(&redis, None).await;
    let client = json!({
        "id": "c", "redirect_uris": ["http://127.0.0.1/cb"], "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"], "scopes": ["openid"], "audience": ["https://mcp.example/mcp"], "public": true,
        "dcr_issued": true, "token_endpoint_auth_method": "none",
    });
    let link = json!({
        "user_id": "u", "provider_id": "corp", "provider_subject": "ann", "linked_at": "2026-01-02T03:04:05Z",
        "last_used_at": "2026-01-02T03:04:05.123456789Z",
    });
    let upstream = |expires_at: Value| {
        json!({
            "provider_id": "corp", "access_token": "a", "refresh_token": "r", "id_token": "", "expires_at": expires_at,
            "session_expires_at": expires_at, "user_id": "u", "upstream_subject": "ann", "client_id": "c",
        })
    };
    let times = [
        (json!(1_767_323_045), 1_767_323_045),
        (json!("2026-01-02T03:04:05Z"), 1_767_323_045),
        (json!("2026-01-02T04:04:05.5+01:00"), 1_767_323_045),
        (json!("0001-01-01T00:00:00Z"), 0),
        (json!(-62_135_596_800_i64), 0),
    ];
    let mut rows = vec![("client:c".to_owned(), client), ("provider:4:corp:ann".to_owned(), link)];
    rows.extend(
        times
            .iter()
            .enumerate()
            .map(|(number, (time, _))| (format!("upstream:s{number}:corp"), upstream(time.clone()))),
    );
    let client = redis::Client::open(format!("redis://:{PASSWORD}@{}/", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    for (key, row) in rows {
        let mut command = redis::cmd("SET");
        command.arg(format!("thv:auth:{{ns:kit}}:{key}")).arg(row.to_string());
        command.query_async::<()>(&mut connection).await.unwrap();
    }
    assert!(store.client("c").await.unwrap().is_some_and(|client| client.public && client.dcr_issued));
    assert_eq!(store.user("corp", "ann", "new", 1).await.as_deref(), Ok("u"));
    for (number, (time, seconds)) in times.into_iter().enumerate() {
        let row = store.upstream(&format!("s{number}"), "corp").await.unwrap();
        assert_eq!(row.map(|row| (row.access_token, row.expires_at)), Some(("a".into(), seconds)), "{time}");
    }
}
