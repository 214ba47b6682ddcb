//! Rate limits, counted in a real Redis.

use http::StatusCode;
use redis::{aio::MultiplexedConnection, cmd};
use serde_json::{Value, json};
use skep_config::RunConfig;
use skep_proxy::Proxy;
use skep_testkit::{IdentityProvider, Redis, RedisCluster, RedisNetwork, ReplyFault, Sentinel};

use crate::fixture::{Answer, Fixture, Server, call, eventually, redis_connection, result};

const SHARED: &str = "thv:rl:{ns:files}:shared";

fn bucket(tokens: u32, period: &str) -> Value {
    json!({"maxTokens": tokens, "refillPeriod": period})
}

fn limit(address: &str, config: Value) -> Value {
    let parameters = json!({
        "namespace": "ns", "server_name": "files", "config": config, "redis_addr": address, "redis_db": 0,
    });
    json!({"type": "ratelimit", "parameters": parameters})
}

async fn limited_proxy(server: &Server, redis: &Redis, config: Value) -> Fixture {
    limited_by(server, &redis.address(), config).await
}

async fn limited_by(server: &Server, redis: &str, config: Value) -> Fixture {
    Fixture::new(server, json!([limit(redis, config)])).await
}

async fn server() -> Server {
    Server::start(|request| result(request, json!({}))).await
}

async fn call_tool(fixture: &Fixture, tool: &str, headers: &[(&str, &str)]) -> Answer {
    fixture.post(headers, &call("tools/call", json!({"name": tool}))).await
}

/// The statuses of so many calls, one after the other.
async fn statuses(fixture: &Fixture, tool: &str, times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(call_tool(fixture, tool, &[]).await.status.as_u16());
    }
    statuses
}

/// Makes a bucket so many seconds older.
async fn age(redis: &mut MultiplexedConnection, key: &str, seconds: i64) {
    let mut command = cmd("HINCRBY");
    command.arg(key).arg("last_refill").arg(-seconds * 1_000_000);
    command.exec_async(redis).await.unwrap();
}

#[tokio::test]
async fn a_call_beyond_the_limit_is_rejected_with_the_time_to_retry() {
    let (redis, server) = (Redis::start().await, server().await);
    let fixture = limited_proxy(&server, &redis, json!({"shared": bucket(3, "1h")})).await;
    assert_eq!(statuses(&fixture, "read", 3).await, [200; 3]);
    let rejected = call_tool(&fixture, "read", &[]).await;
    assert_eq!(rejected.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(rejected.headers["retry-after"], "1200");
    let error = json!({"code": 429, "message": "Rate limit exceeded", "data": {"retryAfterSeconds": 1200}});
    assert_eq!(rejected.json(), json!({"jsonrpc": "2.0", "id": 7, "error": error}));
    assert_eq!(server.requests().len(), 3, "a rejected call does not reach the server");

    let list = fixture.post(&[], &call("tools/list", json!({}))).await;
    assert_eq!(list.status, StatusCode::OK, "only calls of tools are counted");
    // A notification counts as a call.
    let notification = json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "read"}});
    assert_eq!(fixture.post(&[], &notification.to_string()).await.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn limits_are_enforced_behind_sentinels_and_in_a_cluster() {
    let (redis, cluster, server) = (Redis::start().await, RedisCluster::start().await, server().await);
    let sentinel = Sentinel::of(&redis).await;
    let sentinel = format!("redis+sentinel://{}/{}", sentinel.address(), Sentinel::PRIMARY);
    let nodes = cluster.addresses().map(|address| format!("redis+cluster://{address}"));
    for [first, second] in [[&sentinel, &sentinel], [&nodes[0], &nodes[1]]] {
        let config = json!({"shared": bucket(2, "1h")});
        assert_eq!(statuses(&limited_by(&server, first, config.clone()).await, "read", 1).await, [200]);
        assert_eq!(
            statuses(&limited_by(&server, second, config).await, "read", 2).await,
            [200, 429],
            "{second}"
        );
    }
}

#[tokio::test]
async fn a_bucket_refills_with_time_up_to_its_capacity() {
    let (redis, server) = (Redis::start().await, server().await);
    let fixture = limited_proxy(&server, &redis, json!({"shared": bucket(3, "1h")})).await;
    let mut connection = redis_connection(&redis).await;
    assert_eq!(statuses(&fixture, "read", 4).await, [200, 200, 200, 429]);
    age(&mut connection, SHARED, 1200).await;
    assert_eq!(statuses(&fixture, "read", 2).await, [200, 429]);
    // Rejected calls do not delay the refill.
    age(&mut connection, SHARED, 600).await;
    assert_eq!(statuses(&fixture, "read", 2).await, [429, 429]);
    age(&mut connection, SHARED, 600).await;
    assert_eq!(statuses(&fixture, "read", 2).await, [200, 429]);
    age(&mut connection, SHARED, 10 * 3600).await;
    assert_eq!(statuses(&fixture, "read", 4).await, [200, 200, 200, 429]);
    let life: i64 = cmd("PTTL").arg(SHARED).query_async(&mut connection).await.unwrap();
    assert!((3_600_000..=7_200_000).contains(&life), "an unused bucket expires: {life}");
}

#[tokio::test]
async fn a_clock_that_is_set_back_neither_adds_nor_removes_tokens() {
    let (redis, server) = (Redis::start().await, server().await);
    let fixture = limited_proxy(&server, &redis, json!({"shared": bucket(2, "1h")})).await;
    let mut connection = redis_connection(&redis).await;
    assert_eq!(statuses(&fixture, "read", 1).await, [200]);
    age(&mut connection, SHARED, -10 * 3600).await;
    assert_eq!(statuses(&fixture, "read", 2).await, [200, 429]);
    age(&mut connection, SHARED, 1800).await;
    assert_eq!(statuses(&fixture, "read", 2).await, [200, 429], "the refill continues from the current time");
}

#[tokio::test]
async fn a_bucket_with_a_short_period_refills_by_itself() {
    let (redis, server) = (Redis::start().await, server().await);
    let fixture = limited_proxy(&server, &redis, json!({"shared": bucket(1, "200ms")})).await;
    for _ in 0..3 {
        eventually("there is a token", async || call_tool(&fixture, "read", &[]).await.status == 200).await;
    }
}

#[tokio::test]
async fn a_rejected_call_takes_no_token_from_any_bucket() {
    let (redis, server) = (Redis::start().await, server().await);
    let config =
        json!({"shared": bucket(5, "24h"), "tools": [{"name": "write", "shared": bucket(1, "24h")}]});
    let fixture = limited_proxy(&server, &redis, config).await;
    assert_eq!(statuses(&fixture, "write", 4).await, [200, 429, 429, 429]);
    assert_eq!(statuses(&fixture, "read", 5).await, [200, 200, 200, 200, 429]);
    assert_eq!(
        call_tool(&fixture, "write", &[]).await.headers["retry-after"],
        "17280",
        "the first one that is empty"
    );
}

#[tokio::test]
async fn each_caller_has_its_own_buckets() {
    let (redis, server, provider) = (Redis::start().await, server().await, IdentityProvider::start().await);
    let config = json!({
        "perUser": bucket(3, "24h"), "tools": [{"name": "write", "perUser": bucket(1, "24h")}],
    });
    let auth = json!({"type": "auth", "parameters": {"oidc_config": provider.oidc(json!({}))}});
    let fixture = Fixture::new(&server, json!([auth, limit(&redis.address(), config)])).await;
    // Some look as if they were a part of another's key.
    for user in ["ann", "write:ann", "ann:write", "{ann}", "shared", &"long".repeat(500)] {
        let token = format!("Bearer {}", provider.token(json!({"sub": user})));
        let headers = [("authorization", token.as_str())];
        let mut seen = Vec::new();
        for tool in ["write", "write", "read", "read", "read"] {
            seen.push(call_tool(&fixture, tool, &headers).await.status.as_u16());
        }
        assert_eq!(seen, [200, 429, 200, 200, 429], "{user}");
    }
    let keys: Vec<String> =
        cmd("KEYS").arg("*:user*").query_async(&mut redis_connection(&redis).await).await.unwrap();
    assert_eq!(keys.len(), 12, "{keys:?}");
    assert!(keys.iter().all(|key| key.starts_with("thv:rl:{ns:files}:user") && key.len() < 300), "{keys:?}");
}

#[tokio::test]
async fn proxies_share_a_limit_that_concurrent_calls_do_not_exceed() {
    let (redis, server) = (Redis::start().await, server().await);
    let config =
        json!({"shared": bucket(40, "24h"), "tools": [{"name": "write", "shared": bucket(25, "24h")}]});
    let one = limited_proxy(&server, &redis, config.clone()).await;
    let two = limited_proxy(&server, &redis, config).await;
    let all = (0..200).map(|number| call_tool(if number % 2 == 0 { &one } else { &two }, "write", &[]));
    let passed = futures::future::join_all(all).await.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((passed, server.requests().len()), (25, 25));
    let all = (0..50).map(|number| call_tool(if number % 2 == 0 { &one } else { &two }, "read", &[]));
    let passed = futures::future::join_all(all).await.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(passed, 15, "the rejected ones took no token");
}

#[tokio::test]
async fn while_redis_is_unavailable_calls_are_allowed_and_afterwards_they_are_counted_again() {
    let (mut redis, server) = (Redis::start().await, server().await);
    let fixture = limited_proxy(&server, &redis, json!({"shared": bucket(2, "24h")})).await;
    assert_eq!(statuses(&fixture, "read", 3).await, [200, 200, 429]);
    redis.kill();
    assert_eq!(statuses(&fixture, "read", 5).await, [200; 5]);
    // It has lost the script, and not the bucket.
    redis.start_again().await;
    eventually("it counts again", async || call_tool(&fixture, "read", &[]).await.status == 429).await;

    // One that does not respond is not waited for long.
    redis.suspend();
    assert_eq!(statuses(&fixture, "read", 3).await, [200; 3]);
    redis.resume();
    eventually("it counts again", async || call_tool(&fixture, "read", &[]).await.status == 429).await;
}

#[tokio::test]
async fn a_restart_of_redis_loses_no_call() {
    let (mut redis, server) = (Redis::start().await, server().await);
    let fixture = limited_proxy(&server, &redis, json!({"shared": bucket(2, "24h")})).await;
    assert_eq!(statuses(&fixture, "read", 1).await, [200]);
    redis.kill();
    redis.start_again().await;
    assert_eq!(statuses(&fixture, "read", 2).await, [200, 429], "it reconnects at once");
}

#[tokio::test]
async fn a_call_whose_reply_is_lost_takes_one_token() {
    let (redis, server) = (Redis::start().await, server().await);
    let network = RedisNetwork::before(&redis).await;
    let fixture = limited_by(&server, &network.address(), json!({"shared": bucket(4, "24h")})).await;
    for command in ["\r\nEVAL\r\n", "EVALSHA", "EVALSHA"] {
        network.fail(command, ReplyFault::Lost);
        assert_eq!(statuses(&fixture, "read", 1).await, [200]);
        assert!(network.has_failed());
    }
    assert_eq!(statuses(&fixture, "read", 2).await, [200, 429]);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_redis_is_an_error_at_start() {
    let stopped = Server::stopped();
    let unused = stopped.address.to_string();
    let config = json!({
        "name": "files", "transport": "streamable-http", "target_port": 1,
        "middleware_configs": [limit(&unused, json!({"shared": bucket(1, "1s")}))],
    });
    let proxy = Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).unwrap();
    let error = proxy.check().await.unwrap_err().to_string();
    let expected = format!("ratelimit.redis_addr: the Redis at {unused} cannot be used: ");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_limit_without_an_address_is_an_error_that_names_it() {
    let config = json!({
        "name": "files", "transport": "streamable-http", "target_port": 1,
        "middleware_configs": [limit("", json!({"shared": bucket(1, "1s")}))],
    });
    let error = Proxy::new(&RunConfig::parse(&config.to_string()).unwrap()).err().unwrap().to_string();
    assert!(error.starts_with("ratelimit.redis_addr: "), "{error}");
}

#[tokio::test]
async fn calls_that_policies_deny_use_up_no_limit_that_others_share() {
    let (redis, server) = (Redis::start().await, server().await);
    let policies = json!({"policies": ["permit(principal, action, resource == Tool::\"read\");"], "entities_json": "[]"});
    let fixture = Fixture::with(
        &server,
        json!({
            "authz_config": {"version": "1.0", "type": "cedarv1", "cedar": policies},
            "rate_limit_config": {"shared": bucket(2, "1h")}, "rate_limit_namespace": "ns",
            "scaling_config": {"session_redis": {"address": redis.address()}},
        }),
    )
    .await;
    assert_eq!(statuses(&fixture, "no-such-tool", 5).await, [403; 5]);
    assert_eq!(statuses(&fixture, "read", 3).await, [200, 200, 429]);
}
