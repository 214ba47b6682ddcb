//! Metrics of rate limits, for a collector and for Prometheus.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use skep_testkit::{Redis, free_port};

use super::{Collector, middleware, scraping::scrape, server, telemetry, tool};
use crate::fixture::{Fixture, Server, call};

/// A proxy with a bucket for all calls, and a smaller one for those of one tool.
async fn limited_proxy(server: &Server, redis: &Redis, collector: &Collector) -> Fixture {
    let bucket = |tokens: u32| json!({"maxTokens": tokens, "refillPeriod": "1h"});
    let tools = json!([{"name": "read", "shared": bucket(1)}]);
    let limit = json!({
        "namespace": "ns", "server_name": "files", "redis_addr": redis.address(), "redis_db": 0,
        "config": {"shared": bucket(9), "tools": tools},
    });
    let page = json!({"enablePrometheusMetricsPath": true, "prometheusPort": free_port()});
    let mut chain: Value = middleware(telemetry(collector, page));
    chain.as_array_mut().unwrap().insert(2, json!({"type": "ratelimit", "parameters": limit}));
    Fixture::new(server, chain).await
}

fn labels(rest: &str) -> String {
    format!("{{namespace=\"ns\",server=\"files\"{rest}}}")
}

fn decided(decision: &str, operation: &str, times: u32) -> String {
    let rest = format!(",decision=\"{decision}\",scope=\"shared\",operation_type=\"{operation}\"");
    format!("toolhive_rate_limit_decisions_total{} {times}", labels(&rest))
}

fn latency(times: u32) -> String {
    format!("toolhive_rate_limit_check_latency_seconds_count{} {times}", labels(""))
}

/// The metrics of rate limits that Prometheus scrapes, without durations.
async fn metrics(fixture: &Fixture) -> BTreeSet<String> {
    let page = scrape(fixture).await;
    let lines = page.lines().filter(|line| line.starts_with("toolhive_rate_limit_"));
    lines.filter(|line| !line.contains("_bucket{") && !line.contains("_sum{")).map(Into::into).collect()
}

#[tokio::test]
async fn decisions_and_an_unavailable_redis_are_counted() {
    let (mut redis, server, collector) = (Redis::start().await, server().await, Collector::start().await);
    let fixture = limited_proxy(&server, &redis, &collector).await;
    for (name, status) in [("read", 200), ("read", 429), ("write", 200)] {
        assert_eq!(fixture.post(&[], &tool(name)).await.status, status, "{name}");
    }
    fixture.post(&[], &call("tools/list", json!({}))).await;
    let decisions =
        [decided("allowed", "server", 2), decided("allowed", "tool", 1), decided("rejected", "tool", 1)];
    assert_eq!(metrics(&fixture).await, decisions.iter().cloned().chain([latency(3)]).collect());

    redis.kill();
    assert_eq!(fixture.post(&[], &tool("read")).await.status, 200, "without Redis nothing is limited");
    let failures = [
        format!("toolhive_rate_limit_redis_errors_total{} 1", labels(",error_type=\"connection\"")),
        format!("toolhive_rate_limit_fail_open_total{} 1", labels("")),
    ];
    assert_eq!(metrics(&fixture).await, decisions.into_iter().chain(failures).chain([latency(4)]).collect());

    fixture.end().await;
    for (name, expected) in [
        ("decisions", &["allowed server shared 2", "allowed tool shared 1", "rejected tool shared 1"][..]),
        ("redis_errors", &["connection 1"]),
        ("fail_open", &[" 1"]),
        ("check_latency", &[" 4"]),
    ] {
        let points = collector.points(&format!("toolhive_rate_limit_{name}")).into_iter();
        let mut sent: Vec<String> = points
            .map(|mut point| {
                let about = ["namespace", "server"].map(|key| point.attributes.remove(key).unwrap());
                assert_eq!(about, ["ns", "files"]);
                let rest: Vec<String> = point.attributes.into_values().collect();
                format!("{} {}", rest.join(" "), point.count)
            })
            .collect();
        sent.sort();
        assert_eq!(sent, expected, "{name}");
    }
}
