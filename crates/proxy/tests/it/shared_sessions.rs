//! Sessions in a real Redis, where every proxy of a server sees them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::{Method, StatusCode};
use redis::cmd;
use serde_json::{Value, json};
use skep_config::{RunConfig, run_config::SessionRedis};
use skep_proxy::Proxy;
use skep_testkit::{IdentityProvider, Redis, RedisCluster, Sentinel};

use crate::fixture::{
    Answer, Fixture, Server, call, eventually, initialize, initialize_response, redis_connection, result,
    status,
};

const ID: &str = "0b0ef4f6-2c5e-4f0f-9f3b-9d2f2e3f5a10";
const KEY: &str = "thv:proxy:session:0b0ef4f6-2c5e-4f0f-9f3b-9d2f2e3f5a10";

/// A server whose only session has this id.
async fn server(id: &'static str) -> Server {
    Server::start(move |request| match request.json()["method"].as_str() {
        Some("initialize") => initialize_response(request, id),
        _ if request.header("mcp-session-id") != Some(id) => status(404),
        _ if request.method == Method::DELETE => status(200),
        _ => result(request, json!({})),
    })
    .await
}

async fn proxy(server: &Server, redis: &Redis) -> Fixture {
    proxy_at(server, &redis.address(), "").await
}

/// A proxy with its sessions in the Redis at this address, under keys with this prefix.
async fn proxy_at(server: &Server, address: &str, prefix: &str) -> Fixture {
    let redis = json!({"session_redis": {"address": address, "key_prefix": prefix}});
    Fixture::with(server, json!({"scaling_config": redis, "session_ttl": "1h"})).await
}

async fn list_tools(fixture: &Fixture, id: &str) -> Answer {
    fixture.post(&[("mcp-session-id", id)], &call("tools/list", json!({}))).await
}

#[tokio::test]
async fn a_client_can_continue_with_another_proxy() {
    let (redis, server) = (Redis::start().await, server(ID).await);
    let (one, two) = (proxy(&server, &redis).await, proxy(&server, &redis).await);
    let answer = one.post(&[], &initialize()).await;
    assert_eq!(answer.headers["mcp-session-id"], ID);
    assert_eq!(list_tools(&two, ID).await.status, StatusCode::OK);
    drop(one);
    assert_eq!(list_tools(&two, ID).await.status, StatusCode::OK);
    let three = proxy(&server, &redis).await;
    assert_eq!(
        list_tools(&three, ID).await.status,
        StatusCode::OK,
        "one that was started later knows it, too"
    );

    let within = [("mcp-session-id", ID)];
    assert_eq!(three.send(Method::DELETE, "/mcp", &within, b"").await.status, StatusCode::OK);
    let before = server.requests().len();
    let ended = list_tools(&two, ID).await;
    assert_eq!((ended.status, ended.json()["error"]["code"].clone()), (StatusCode::NOT_FOUND, json!(-32001)));
    assert_eq!(server.requests().len(), before);
}

#[tokio::test]
async fn sessions_are_shared_behind_sentinels_and_in_a_cluster() {
    let (redis, cluster) = (Redis::start().await, RedisCluster::start().await);
    let sentinel = Sentinel::of(&redis).await;
    let sentinel = format!("redis+sentinel://{}/{}", sentinel.address(), Sentinel::PRIMARY);
    let nodes = cluster.addresses().map(|address| format!("redis+cluster://{address}"));
    for ([first, second], prefix) in [([&sentinel, &sentinel], ""), ([&nodes[0], &nodes[1]], "thv:{files}:")]
    {
        let server = server(ID).await;
        let (one, two) = (proxy_at(&server, first, prefix).await, proxy_at(&server, second, prefix).await);
        assert_eq!(one.post(&[], &initialize()).await.headers["mcp-session-id"], ID);
        assert_eq!(list_tools(&two, ID).await.status, StatusCode::OK, "{first}");
        let within = [("mcp-session-id", ID)];
        assert_eq!(two.send(Method::DELETE, "/mcp", &within, b"").await.status, StatusCode::OK);
        assert_eq!(list_tools(&one, ID).await.status, StatusCode::NOT_FOUND, "{first}");
    }
}

#[tokio::test]
async fn a_session_that_one_proxy_restored_is_known_to_the_other() {
    let starts = AtomicUsize::new(0);
    let lost = Arc::new(AtomicUsize::new(0));
    let count = lost.clone();
    let server = Server::start(move |request| match request.json()["method"].as_str() {
        Some("initialize") => {
            initialize_response(request, &format!("s-{}", starts.fetch_add(1, Ordering::Relaxed)))
        }
        Some("notifications/initialized") => status(202),
        method if request.header("mcp-session-id") == Some("s-0") => {
            count.fetch_add(usize::from(method != Some("ping")), Ordering::Relaxed);
            status(404)
        }
        _ => result(request, json!({"session": request.header("mcp-session-id")})),
    })
    .await;
    let redis = Redis::start().await;
    let (one, two) = (proxy(&server, &redis).await, proxy(&server, &redis).await);
    one.post(&[], &initialize()).await;
    assert_eq!(list_tools(&one, "s-0").await.json()["result"]["session"], "s-1");
    assert_eq!(list_tools(&two, "s-0").await.json()["result"]["session"], "s-1");
    assert_eq!(lost.load(Ordering::Relaxed), 1, "it was restored once");
}

#[tokio::test]
async fn an_idle_session_expires_and_a_used_one_does_not() {
    let (redis, server) = (Redis::start().await, server(ID).await);
    let fixture = proxy(&server, &redis).await;
    let mut connection = redis_connection(&redis).await;
    fixture.post(&[], &initialize()).await;
    let left = async |connection: &mut _| cmd("PTTL").arg(KEY).query_async::<i64>(connection).await.unwrap();
    assert!(left(&mut connection).await > 3_000_000);
    cmd("PEXPIRE").arg(KEY).arg(60_000).exec_async(&mut connection).await.unwrap();
    assert_eq!(list_tools(&fixture, ID).await.status, StatusCode::OK);
    assert!(left(&mut connection).await > 3_000_000, "it lives for an hour from now");
    cmd("PEXPIRE").arg(KEY).arg(1).exec_async(&mut connection).await.unwrap();
    eventually("it has expired", async || left(&mut connection).await < 0).await;
    assert_eq!(list_tools(&fixture, ID).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_made_up_id_is_no_session() {
    let (redis, server) = (Redis::start().await, server(ID).await);
    let fixture = proxy(&server, &redis).await;
    fixture.post(&[], &initialize()).await;
    // Something else in the same Redis.
    let mut connection = redis_connection(&redis).await;
    for key in ["other", "thv:proxy:session:other", "thv:proxy:session:"] {
        cmd("SET").arg(key).arg("{}").exec_async(&mut connection).await.unwrap();
    }
    let before = server.requests().len();
    let long = "x".repeat(1024);
    let other = ID.replace('0', "1");
    for id in ["other", "*", "..", "thv:proxy:session:other", KEY, &ID[1..], &other, &long, "a\tb", "{}"] {
        assert_eq!(list_tools(&fixture, id).await.status, StatusCode::NOT_FOUND, "{id}");
    }
    let twice = [("mcp-session-id", ID), ("mcp-session-id", ID)];
    assert_eq!(fixture.post(&twice, &call("tools/list", json!({}))).await.status, StatusCode::NOT_FOUND);
    assert_eq!(server.requests().len(), before, "no request without a session reaches the server");
    assert_eq!(list_tools(&fixture, ID).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_of_one_server_is_unknown_to_another_with_the_same_redis() {
    let (redis, one, two) = (Redis::start().await, server(ID).await, server("another").await);
    let (first, second) = (proxy(&one, &redis).await, proxy(&two, &redis).await);
    first.post(&[], &initialize()).await;
    let reached = (one.requests().len(), two.requests().len());
    assert_eq!(list_tools(&second, ID).await.status, StatusCode::NOT_FOUND);
    assert_eq!((one.requests().len(), two.requests().len()), reached);
}

#[tokio::test]
async fn a_session_in_redis_belongs_to_its_caller() {
    let (redis, server, provider) = (Redis::start().await, server(ID).await, IdentityProvider::start().await);
    let guarded = json!({
        "scaling_config": {"session_redis": {"address": redis.address()}},
        "middleware_configs": [{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}],
    });
    let (one, two) = (Fixture::with(&server, guarded.clone()).await, Fixture::with(&server, guarded).await);
    let bearer = |subject| format!("Bearer {}", provider.token(json!({"sub": subject})));
    let (alice, bob) = (bearer("alice"), bearer("bob"));
    assert_eq!(one.post(&[("authorization", &alice)], &initialize()).await.status, StatusCode::OK);
    for (who, expected) in [(&alice, StatusCode::OK), (&bob, StatusCode::NOT_FOUND)] {
        let within = [("authorization", who.as_str()), ("mcp-session-id", ID)];
        assert_eq!(two.post(&within, &call("tools/list", json!({}))).await.status, expected);
    }
    let mut connection = redis_connection(&redis).await;
    let record: String = cmd("GET").arg(KEY).query_async(&mut connection).await.unwrap();
    assert!(record.contains("skep_owner") && !record.contains("alice"), "{record}");
}

/// While the proxy restores a session, its id becomes another caller's: the session had ended, and the server used its id
/// again.
#[tokio::test]
async fn a_session_that_has_become_another_caller_s_is_not_used_to_restore_one() {
    let (redis, provider) = (Redis::start().await, IdentityProvider::start().await);
    let address = format!("redis://{}/", redis.address());
    let server = Server::start(move |request| match request.json()["method"].as_str() {
        Some("initialize") => initialize_response(request, ID),
        _ if request.header("mcp-session-id") == Some(ID) => {
            let mut redis = redis::Client::open(address.as_str()).unwrap().get_connection().unwrap();
            let record: String = cmd("GET").arg(KEY).query(&mut redis).unwrap();
            let mut record: Value = serde_json::from_str(&record).unwrap();
            record["metadata"]["skep_owner"] = json!("f".repeat(32));
            record["metadata"]["backend_sid"] = json!("of-another");
            cmd("SET").arg(KEY).arg(record.to_string()).exec(&mut redis).unwrap();
            status(404)
        }
        _ => result(request, json!({"secret": "of another"})),
    })
    .await;
    let guarded = json!({
        "scaling_config": {"session_redis": {"address": redis.address()}},
        "middleware_configs": [{"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}}],
    });
    let fixture = Fixture::with(&server, guarded).await;
    let alice = format!("Bearer {}", provider.token(json!({"sub": "alice"})));
    assert_eq!(fixture.post(&[("authorization", &alice)], &initialize()).await.status, StatusCode::OK);
    let within = [("authorization", alice.as_str()), ("mcp-session-id", ID)];
    let answer = fixture.post(&within, &call("tools/list", json!({}))).await;
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (StatusCode::NOT_FOUND, json!(-32001))
    );
    let requests = server.requests();
    assert!(
        requests.iter().all(|request| request.header("mcp-session-id") != Some("of-another")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn while_redis_is_unavailable_requests_in_sessions_are_rejected_and_afterwards_they_are_served() {
    let (mut redis, server) = (Redis::start().await, server(ID).await);
    let fixture = proxy(&server, &redis).await;
    fixture.post(&[], &initialize()).await;
    let is_unavailable = |answer: &Answer| {
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        let error = json!({"code": -32603, "message": "session store unavailable"});
        assert_eq!(answer.json(), json!({"jsonrpc": "2.0", "id": 7, "error": error}));
    };
    redis.kill();
    let before = server.requests().len();
    is_unavailable(&list_tools(&fixture, ID).await);
    is_unavailable(&list_tools(&fixture, ID).await);
    assert_eq!(server.requests().len(), before, "it is unknown whether the session exists");
    is_unavailable(&fixture.post(&[], &initialize()).await);
    let health = fixture.send(Method::GET, "/health", &[], b"").await;
    assert_eq!(health.status, StatusCode::OK, "a restart of the proxy would not help");
    redis.start_again().await;
    eventually("it is served again", async || list_tools(&fixture, ID).await.status == StatusCode::OK).await;

    redis.suspend();
    is_unavailable(&list_tools(&fixture, ID).await);
    redis.resume();
    eventually("it is served again", async || list_tools(&fixture, ID).await.status == StatusCode::OK).await;
}

#[tokio::test]
async fn a_restart_of_redis_loses_no_request() {
    let (mut redis, server) = (Redis::start().await, server(ID).await);
    let fixture = proxy(&server, &redis).await;
    fixture.post(&[], &initialize()).await;
    redis.kill();
    redis.start_again().await;
    assert_eq!(list_tools(&fixture, ID).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_session_that_toolhive_s_proxy_started_can_be_used() {
    let (redis, server) = (Redis::start().await, server(ID).await);
    let fixture = proxy(&server, &redis).await;
    let now = "2026-11-15T08:13:00.123456789Z";
    let metadata = json!({"backend_url": "http://192.0.2.1:80", "init_body": initialize()});
    let record = json!({"id": ID, "type": "mcp", "created_at": now, "updated_at": now, "metadata": metadata});
    let mut connection = redis_connection(&redis).await;
    cmd("SET").arg(KEY).arg(record.to_string()).exec_async(&mut connection).await.unwrap();
    assert_eq!(list_tools(&fixture, ID).await.status, StatusCode::OK);
}

#[tokio::test]
async fn sessions_are_stored_with_the_configured_prefix() {
    let (redis, server) = (Redis::start().await, server("no-uuid").await);
    let config = json!({"session_redis": {"address": redis.address(), "key_prefix": "mine:", "db": 5}});
    let fixture = Fixture::with(&server, json!({"scaling_config": config})).await;
    fixture.post(&[], &initialize()).await;
    assert_eq!(list_tools(&fixture, "no-uuid").await.status, StatusCode::OK);
    let mut connection = redis_connection(&redis).await;
    cmd("SELECT").arg(5).exec_async(&mut connection).await.unwrap();
    let keys: Vec<String> = cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert_eq!(keys.len(), 1);
    assert!(keys[0].starts_with("mine:") && keys[0].len() == "mine:".len() + 36, "{keys:?}");
    let record: String = cmd("GET").arg(&keys[0]).query_async(&mut connection).await.unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["metadata"]["init_body"], initialize());
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_redis_is_an_error_at_start_unless_the_server_is_a_stdio_server() {
    let stopped = Server::stopped();
    let unused = stopped.address.to_string();
    let proxy = |transport: &str| {
        let config = json!({
            "name": "files", "transport": transport, "target_port": 1, "cmd_args": ["cat"],
            "scaling_config": {"session_redis": {"address": unused}},
        });
        Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).unwrap()
    };
    let error = proxy("streamable-http").check().await.unwrap_err().to_string();
    let expected = format!("scaling_config.session_redis: the Redis at {unused} cannot be used: ");
    assert!(error.starts_with(&expected), "{error}");
    proxy("stdio").check().await.unwrap();
}

#[tokio::test]
async fn a_caller_that_starts_session_after_session_does_not_fill_the_redis_that_all_share() {
    use skep_gateway::{
        identity::Owner,
        limits,
        sessions::{Session, Sessions},
    };
    let redis = Redis::start().await;
    let config = SessionRedis { address: redis.address().to_owned(), ..SessionRedis::default() };
    let sessions = Sessions::new(std::time::Duration::from_secs(60), Some(&config), "files:80").unwrap();
    let of = |owner: &str, bytes: usize| Session {
        server_id: None,
        pod: None,
        initialize: Some(vec![b' '; bytes].into()),
        owner: Owner::from_text(&owner.repeat(32)),
    };
    let here = [127, 0, 0, 1].into();
    sessions.put("of another", of("b", 1), here).await.unwrap();
    let count = limits::SESSIONS_OF_A_CALLER + 200;
    let bytes = 64 << 10;
    for number in 0..count {
        sessions.put(&number.to_string(), of("a", bytes), here).await.unwrap();
    }
    let mut connection = redis_connection(&redis).await;
    let keys: usize = cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert!(keys <= limits::SESSIONS_OF_A_CALLER + 1, "{keys} sessions");
    assert!(keys > limits::SESSIONS_OF_A_CALLER / 2);
    assert!(sessions.get("of another").await.unwrap().is_some());
    assert!(sessions.get("0").await.unwrap().is_none(), "its own oldest made room");
    let mut stored = 0;
    for number in 0..count {
        let session = sessions.get(&number.to_string()).await.unwrap();
        stored += session.and_then(|session| session.initialize).map_or(0, |initialize| initialize.len());
    }
    assert!((1..=limits::SESSION_BYTES).contains(&stored), "{stored} bytes");
}
