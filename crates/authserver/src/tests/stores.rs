//! Both stores keep the same promises.

use std::{net::IpAddr, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use skep_redis::{Place, Settings, Timeouts};
use skep_testkit::Redis;
use tokio::time::sleep;

use crate::{
    clock::Clock,
    config::RedisSettings,
    keys::family,
    limits,
    random::hash,
    store::{
        Client, Grant, MemoryStore, Method, Pending, RedisStore, Rotation, Session, Store, Taken, Upstream,
        User, UserSession,
    },
};

/// The password of every Redis.
pub(super) const PASSWORD: &str = "correct-horse";
pub(super) const LIFE: Duration = Duration::from_secs(60);

pub(super) fn grant(session: &str) -> Grant {
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

pub(super) fn row(access_token: &str) -> Upstream {
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
        is_refused: false,
    }
}

async fn redis_store(redis: &Redis, key: Option<[u8; 32]>) -> Arc<dyn Store> {
    store_at(redis.address().parse().unwrap(), key).await
}

pub(super) async fn store_at(place: Place, key: Option<[u8; 32]>) -> Arc<dyn Store> {
    store_as(None, PASSWORD, place, key)
}

/// The store as this user of Redis sees it.
pub(super) fn store_as(
    user: Option<&str>,
    password: &str,
    place: Place,
    key: Option<[u8; 32]>,
) -> Arc<dyn Store> {
    Arc::new(RedisStore::new(settings(user, password, place, key), Clock::default()).unwrap())
}

pub(super) fn settings(
    user: Option<&str>,
    password: &str,
    place: Place,
    key: Option<[u8; 32]>,
) -> RedisSettings {
    let time = Duration::from_secs(5);
    RedisSettings {
        connection: Settings {
            field: "storage.redis_config",
            place,
            db: 0,
            user: user.map(Into::into),
            password: password.into(),
            password_variable: "REDIS_PASSWORD".into(),
            timeouts: Timeouts { connect: time, response: time, total: 2 * time },
        },
        prefix: "thv:auth:{ns:kit}:".into(),
        key,
    }
}

pub(super) async fn check_promises(store: Arc<dyn Store>) {
    // What may be used once is used once.
    let spent = join_all((0..16).map(|_| store.spend("key", LIFE))).await;
    assert_eq!(spent.iter().filter(|first| **first == Ok(true)).count(), 1);
    // A code is spent when its tokens are on their way.
    store.put_code("code", &grant("s"), LIFE).await.unwrap();
    assert_eq!(store.code("code").await.unwrap().unwrap().1, Taken::Free);
    store.spend_code("code").await.unwrap();
    assert_eq!(store.code("code").await.unwrap().unwrap().1, Taken::Spent);
    // A refresh token is replaced by another one, and by no third one once that is on its way.
    let session = grant("s");
    let rotate = async |old: &str, new: &str| store.rotate(old, new, &session, LIFE).await.unwrap();
    for _ in 0..2 {
        assert_eq!(store.put_refresh("old", &session, LIFE).await, Ok(true));
    }
    for _ in 0..2 {
        assert_eq!(rotate("old", "new").await, Rotation::Done);
    }
    assert_eq!(store.put_refresh("old", &session, LIFE).await, Ok(false), "it brings back a former one");
    assert!(store.refresh(&family("s")).await.unwrap().is_some());
    store.deliver("old", "s").await.unwrap();
    assert_eq!(rotate("old", "new").await, Rotation::Done, "the new one was not delivered");
    store.deliver("new", "s").await.unwrap();
    assert_eq!(rotate("old", "x").await, Rotation::Refused);
    // One that was replaced before the last one was is not sent twice at once.
    assert_eq!(rotate("new", "third").await, Rotation::Done);
    assert_eq!(rotate("old", "x").await, Rotation::Stolen);
    assert_eq!(rotate("new", "third").await, Rotation::Done);
    assert_eq!(store.rotate("old", "x", &grant("none"), LIFE).await, Ok(Rotation::Refused));
    // Nothing is issued for a session that has ended.
    store.end_session("s", &[], LIFE).await.unwrap();
    assert_eq!(store.is_ended("s").await, Ok(true));
    assert_eq!(store.is_ended("t").await, Ok(false));
    assert_eq!(rotate("third", "newest").await, Rotation::Refused);
    assert_eq!(store.put_refresh("other", &session, LIFE).await, Ok(false));
    assert!(store.refresh(&family("s")).await.unwrap().is_none(), "it can still be refreshed");
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
    // A user with many sessions loses the oldest of them, and others lose none.
    let of_bob = Upstream { user_id: "bob".into(), ..row("of-bob") };
    store.put_upstream("three", &of_bob, LIFE).await.unwrap();
    for number in 1..limits::SESSIONS_OF_A_USER {
        store.put_upstream(&format!("more-{number}"), &row("more"), LIFE).await.unwrap();
        store.put_upstream("two", &row("again"), LIFE).await.unwrap();
    }
    for (session, expected) in [("one", None), ("two", Some("again")), ("three", Some("of-bob"))] {
        let found = token(store.upstream(session, "corp").await.unwrap());
        assert_eq!(found.as_deref(), expected, "{session}");
    }
    // A lock has one holder, and only this one releases it.
    let held = join_all((0..16).map(|holder| {
        let store = store.clone();
        async move { store.lock("k", &holder.to_string(), LIFE).await }
    }));
    let held = held.await;
    assert_eq!(held.iter().filter(|held| **held == Ok(true)).count(), 1, "{held:?}");
    let holder = held.iter().position(|held| *held == Ok(true)).unwrap();
    store.unlock("k", &(holder + 1).to_string()).await.unwrap();
    assert_eq!(store.lock("k", "next", LIFE).await, Ok(false));
    assert_eq!(store.lock("other", "next", LIFE).await, Ok(true));
    store.unlock("k", &holder.to_string()).await.unwrap();
    assert_eq!(store.lock("k", "next", LIFE).await, Ok(true));
    // A session that has ended does not come back while it has rows.
    store.put_upstream("over", &row("at"), LIFE).await.unwrap();
    store.end_session("over", &["corp"], Duration::from_secs(1)).await.unwrap();
    // One that goes on is its user's while it can be continued, whatever it has at providers.
    assert_eq!(store.put_refresh("of-lasting", &grant("lasting"), LIFE).await, Ok(true));
    store.put_upstream("lasting", &row("at"), Duration::from_secs(1)).await.unwrap();
    sleep(Duration::from_millis(2100)).await;
    assert_eq!(store.is_ended("over").await, Ok(true));
    let sessions = store.sessions("ann", &["corp"]).await.unwrap();
    let has = |id: &str| sessions.iter().any(|session| session.id == id);
    assert!(has("lasting") && !has("over"));
}

fn client(id: usize) -> Client {
    Client {
        id: id.to_string(),
        name: String::new(),
        redirect_uris: Vec::new(),
        grant_types: Vec::new(),
        response_types: Vec::new(),
        scopes: Vec::new(),
        audience: Vec::new(),
        public: true,
        dcr_issued: true,
        token_endpoint_auth_method: Method::None,
        secret_hash: String::new(),
        any_secret_method: false,
        keys: None,
    }
}

/// What is sent to a store at once.
const AT_ONCE: usize = 200;

fn address(number: usize) -> IpAddr {
    IpAddr::from((u32::from_be_bytes([198, 18, 0, 0]) + number as u32).to_be_bytes())
}

/// Strangers register clients, at as many addresses as they have.
async fn check_clients(store: Arc<dyn Store>) {
    let put = async |id: usize, at: usize| store.put_client(&client(id), address(at)).await.unwrap();
    let is_there = async |id: usize| store.client(&id.to_string()).await.unwrap().is_some();
    const USED: usize = 0;
    const NEW: usize = 1;
    const FIRST: usize = 2;
    put(USED, 0).await;
    store.renew_client("0").await.unwrap();
    put(NEW, 1).await;
    let addresses = 2 * limits::NEW_CLIENTS / limits::NEW_CLIENTS_OF_AN_ADDRESS;
    let ids: Vec<usize> = (FIRST..FIRST + 2 * limits::NEW_CLIENTS).collect();
    for ids in ids.chunks(AT_ONCE) {
        join_all(ids.iter().map(|id| put(*id, 2 + id % addresses))).await;
    }
    assert!(is_there(USED).await, "a client in use made room for one that nobody uses");
    assert!(is_there(NEW).await, "an address with one client lost it to those with many");
    assert!(!is_there(FIRST).await, "there is no end of them");
    assert!(is_there(*ids.last().unwrap()).await, "newcomers are refused");
    let mut left = 0;
    for ids in ids.chunks(AT_ONCE) {
        let found = join_all(ids.iter().map(|id| is_there(*id))).await;
        left += found.into_iter().filter(|is_there| *is_there).count();
    }
    assert!((limits::NEW_CLIENTS / 2..limits::NEW_CLIENTS).contains(&left), "{left}");
}

/// One address fills its share, and its own oldest make room.
async fn check_clients_of_an_address(store: Arc<dyn Store>) {
    for id in 0..=limits::NEW_CLIENTS_OF_AN_ADDRESS {
        store.put_client(&client(id), address(0)).await.unwrap();
        // One that was used counts no more.
        if id == 1 {
            store.renew_client("1").await.unwrap();
        }
    }
    store.put_client(&client(usize::MAX), address(0)).await.unwrap();
    for (id, is_there) in [(0, false), (1, true), (limits::NEW_CLIENTS_OF_AN_ADDRESS, true)] {
        assert_eq!(store.client(&id.to_string()).await.unwrap().is_some(), is_there, "{id}");
    }
}

#[tokio::test]
async fn strangers_that_register_clients_without_end_remove_none_that_is_used_from_memory() {
    check_clients(Arc::new(MemoryStore::new(Clock::default()))).await;
    check_clients_of_an_address(Arc::new(MemoryStore::new(Clock::default()))).await;
}

#[tokio::test]
async fn strangers_that_register_clients_without_end_remove_none_that_is_used_from_redis() {
    let redis = Redis::with_password(PASSWORD).await;
    check_clients(redis_store(&redis, None).await).await;
    let redis = Redis::with_password(PASSWORD).await;
    check_clients_of_an_address(redis_store(&redis, None).await).await;
}

/// A client that refreshes without end takes no room of others.
#[tokio::test]
async fn the_tokens_of_a_session_are_one_row_in_memory_however_often_they_are_replaced() {
    let store = MemoryStore::new(Clock::default());
    store.put_refresh("of-bob", &grant("bob"), LIFE).await.unwrap();
    store.put_refresh("0", &grant("s"), LIFE).await.unwrap();
    for number in 0..limits::ROWS + 1 {
        let (old, new) = (number.to_string(), (number + 1).to_string());
        assert_eq!(store.rotate(&old, &new, &grant("s"), 2 * LIFE).await, Ok(Rotation::Done), "{number}");
    }
    assert_eq!(store.rotate("of-bob", "next", &grant("bob"), LIFE).await, Ok(Rotation::Done));
    assert_eq!(store.rotate("0", "x", &grant("s"), LIFE).await, Ok(Rotation::Stolen), "it is forgotten");
}

#[tokio::test]
async fn the_tokens_of_a_session_are_one_row_in_redis_however_often_they_are_replaced() {
    let redis = Redis::with_password(PASSWORD).await;
    let store = redis_store(&redis, None).await;
    let client = redis::Client::open(format!("redis://:{PASSWORD}@{}/", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    store.put_refresh("0", &grant("s"), LIFE).await.unwrap();
    for number in 0..100 {
        let (old, new) = (number.to_string(), (number + 1).to_string());
        assert_eq!(store.rotate(&old, &new, &grant("s"), LIFE).await, Ok(Rotation::Done));
    }
    // One row, and one index with one member.
    assert_eq!(redis::cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap(), 2);
    let mut count = redis::cmd("ZCARD");
    count.arg("thv:auth:{ns:kit}:sessions");
    assert_eq!(count.query_async::<u64>(&mut connection).await.unwrap(), 1);
}

/// Users of a provider that does not name them are new with each login.
#[tokio::test]
async fn more_logins_than_the_memory_store_has_room_for_end_the_oldest_session() {
    let store = MemoryStore::new(Clock::default());
    for number in 0..=limits::ROWS {
        let (session, life) = (number.to_string(), LIFE + Duration::from_secs(number as u64));
        let row = Upstream { user_id: session.clone(), ..row("t") };
        store.put_upstream(&session, &row, life).await.unwrap();
        store.put_refresh(&session, &grant(&session), life).await.unwrap();
        store.put_code(&session, &grant(&session), life).await.unwrap();
    }
    for (number, is_there) in [(0, false), (1, true), (limits::ROWS, true)] {
        let session = number.to_string();
        assert_eq!(store.upstream(&session, "corp").await.unwrap().is_some(), is_there, "{number}");
        assert_eq!(store.refresh(&family(&session)).await.unwrap().is_some(), is_there, "{number}");
        assert_eq!(store.code(&session).await.unwrap().is_some(), is_there, "{number}");
    }
}

fn grant_of(user: &str, session: &str) -> Grant {
    let user = User { id: user.into(), name: None, email: None };
    Grant { session: Session { id: session.into(), user }, ..grant(session) }
}

#[tokio::test]
async fn a_user_with_many_sessions_ends_none_of_others() {
    let store = MemoryStore::new(Clock::default());
    let begin = async |user: &str, session: &str, life: Duration| {
        let grant = grant_of(user, session);
        store.put_refresh(session, &grant, life).await.unwrap();
        store.put_code(session, &grant, life).await.unwrap();
    };
    // They expire before those of the other user.
    begin("ann", "of-ann", LIFE).await;
    for number in 0..=limits::ROWS {
        begin("bob", &number.to_string(), 2 * LIFE).await;
    }
    assert!(store.refresh(&family("of-ann")).await.unwrap().is_some());
    assert!(store.code("of-ann").await.unwrap().is_some());
    let (all, _) = store.all_sessions("", 1, &["corp"]).await.unwrap();
    assert_eq!(all.first().map(UserSession::user_id), Some("ann"));
}

#[tokio::test]
async fn the_used_clients_of_an_address_make_no_room_among_those_of_another() {
    let store = MemoryStore::new(Clock::default());
    for number in 0..=limits::CLIENTS {
        store.put_client(&client(number), address(number.min(1))).await.unwrap();
        store.renew_client(&number.to_string()).await.unwrap();
    }
    assert!(store.client("0").await.unwrap().is_some() && store.client("1").await.unwrap().is_none());
}

#[tokio::test]
async fn a_session_stays_ended_however_many_others_its_user_ends() {
    let store = MemoryStore::new(Clock::default());
    let begin = async |user: &str, session: &str| {
        let row = Upstream { user_id: user.into(), ..row("token") };
        store.put_upstream(session, &row, LIFE).await.unwrap();
    };
    begin("ann", "of-ann").await;
    for number in 0..=2 * limits::ROWS_OF_A_USER {
        begin("bob", &number.to_string()).await;
        store.end_session(&number.to_string(), &["corp"], LIFE).await.unwrap();
    }
    for session in ["0", "1", &*limits::ROWS_OF_A_USER.to_string()] {
        assert_eq!(store.is_ended(session).await, Ok(true), "{session}");
        assert!(store.session(session, &["corp"]).await.unwrap().is_none(), "{session}");
        assert_eq!(store.put_refresh("r", &grant_of("bob", session), LIFE).await, Ok(false), "{session}");
    }
    begin("bob", "new").await;
    for session in ["of-ann", "new"] {
        assert_eq!(store.is_ended(session).await, Ok(false), "{session}");
        assert!(store.session(session, &["corp"]).await.unwrap().is_some(), "{session}");
    }
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
    let [quiet, flooding] = [1, 2].map(address);
    store.put_pending("quiet", &pending(""), quiet).await.unwrap();
    let put = async |number: usize, at: usize| {
        store.put_pending(&number.to_string(), &pending(""), address(at)).await
    };
    let most = limits::LOGINS_OF_AN_ADDRESS_IN_REDIS;
    put(0, 2).await.unwrap();
    put(1, 2).await.unwrap();
    assert!(store.take_pending("1", flooding).await.unwrap().is_some());
    let numbers: Vec<usize> = (2..=most + 1).collect();
    for numbers in numbers.chunks(AT_ONCE) {
        join_all(numbers.iter().map(|number| put(*number, 2))).await;
    }
    for (state, is_there) in [("quiet", true), ("0", false), ("2", true), (&*(most + 1).to_string(), true)] {
        assert_eq!(store.take_pending(state, quiet).await.unwrap().is_some(), is_there, "{state}");
    }
}

#[tokio::test]
async fn a_login_that_nobody_finishes_ends_in_redis_after_ten_minutes() {
    let redis = Redis::with_password(PASSWORD).await;
    let store = redis_store(&redis, None).await;
    store.put_pending("s", &pending(""), address(0)).await.unwrap();
    let client = redis::Client::open(format!("redis://:{PASSWORD}@{}/", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let key = "thv:auth:{ns:kit}:pending:s";
    let left: i64 = redis::cmd("TTL").arg(key).query_async(&mut connection).await.unwrap();
    assert!((590..=600).contains(&left), "{left}");
}

/// A crowd of strangers, which has more addresses than shares.
#[tokio::test]
async fn logins_in_redis_are_bounded_over_all_addresses_and_one_with_few_keeps_them() {
    let redis = Redis::with_password(PASSWORD).await;
    let store = redis_store(&redis, None).await;
    store.put_pending("quiet", &pending(""), address(0)).await.unwrap();
    let numbers: Vec<usize> = (0..2 * limits::LOGINS_IN_REDIS).collect();
    for numbers in numbers.chunks(AT_ONCE) {
        let put = numbers.iter().map(async |number| {
            store.put_pending(&number.to_string(), &pending(""), address(1 + number % 50)).await
        });
        assert!(join_all(put).await.into_iter().all(|put| put.is_ok()));
    }
    let client = redis::Client::open(format!("redis://:{PASSWORD}@{}/", redis.address())).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let keys: usize = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert!(keys <= limits::LOGINS_IN_REDIS + 60, "{keys}");
    assert!(store.take_pending("quiet", address(0)).await.unwrap().is_some());
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
    let secret = STANDARD.encode(Sha256::digest("secret-of-a-client"));
    let confidential = json!({
        "id": "d", "secret": secret, "redirect_uris": ["https://app.example/cb"], "grant_types": ["authorization_code"],
        "response_types": ["code"], "scopes": [], "audience": [], "public": false, "dcr_issued": true,
        "token_endpoint_auth_method": "client_secret_basic",
    });
    let mut rows = vec![
        ("client:c".to_owned(), client),
        ("client:d".to_owned(), confidential),
        ("provider:4:corp:ann".to_owned(), link),
    ];
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
    let confidential = store.client("d").await.unwrap().unwrap();
    assert_eq!(confidential.secret_hash, hash("secret-of-a-client"));
    // As it is written here, it is read as well.
    store.put_client(&confidential, address(0)).await.unwrap();
    assert!(store.client("d").await.unwrap().is_some_and(|client| client == confidential));
    assert_eq!(store.user("corp", "ann", "new", 1).await.as_deref(), Ok("u"));
    for (number, (time, seconds)) in times.into_iter().enumerate() {
        let row = store.upstream(&format!("s{number}"), "corp").await.unwrap();
        assert_eq!(row.map(|row| (row.access_token, row.expires_at)), Some(("a".into(), seconds)), "{time}");
    }
}

#[tokio::test]
async fn a_user_who_ends_sessions_without_end_keeps_nobody_from_ending_one() {
    let store = MemoryStore::new(Clock::default());
    let end = async |user: &str, session: &str| {
        let row = Upstream { user_id: user.into(), ..row("token") };
        store.put_upstream(session, &row, LIFE).await.unwrap();
        store.end_session(session, &["corp"], LIFE).await.unwrap();
        store.doubt(user, session, true).await.unwrap();
    };
    end("ann", "of-ann").await;
    for number in 0..=limits::ROWS {
        end("bob", &number.to_string()).await;
    }
    end("cat", "of-cat").await;
    for (user, session) in [("ann", "of-ann"), ("cat", "of-cat"), ("bob", &*limits::ROWS.to_string())] {
        assert_eq!(store.is_ended(session).await, Ok(true), "{session}");
        assert_eq!(store.is_in_doubt(user, session).await, Ok(true), "{session}");
    }
}
