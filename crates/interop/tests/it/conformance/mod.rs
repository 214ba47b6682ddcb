//! The results of the official conformance suite for a server, which must be the same through the proxy.

mod known;
mod suite;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use similar_asserts::assert_eq;

use self::{
    known::{ALONE, KNOWN},
    suite::{Check, Findings, Suite},
};
use crate::{
    programs::{FIXTURE, HttpServer},
    proxied::Proxied,
};

async fn fixture() -> HttpServer {
    HttpServer::start(&[FIXTURE.into(), "http".into()]).await
}

/// In front of a server that speaks HTTP.
async fn over_http(suite: &Suite, revision: &str, middleware: Value) -> Findings {
    let server = fixture().await;
    let proxy = Proxied::new(|_| {
        json!({
            "name": "fixture", "transport": "streamable-http", "host": "127.0.0.1",
            "target_host": "127.0.0.1", "target_port": server.port(), "middleware_configs": middleware,
        })
    });
    through(suite, revision, proxy.await).await
}

/// In front of a remote server.
async fn remotely(suite: &Suite, revision: &str) -> Findings {
    let server = fixture().await;
    let proxy = Proxied::new(
        |_| json!({"name": "fixture", "transport": "streamable-http", "remote_url": server.url}),
    );
    through(suite, revision, proxy.await).await
}

/// In front of a server that speaks over its standard input and output.
async fn over_stdio(suite: &Suite, revision: &str) -> Findings {
    let proxy = Proxied::new(|address| {
        // Such a server sees no headers: which pages may call is for the proxy to know.
        let origin =
            json!({"type": "origin", "parameters": {"allowed_origins": [format!("http://{address}")]}});
        json!({
            "name": "fixture", "transport": "stdio", "cmd_args": [FIXTURE, "stdio"],
            "middleware_configs": [origin],
        })
    });
    through(suite, revision, proxy.await).await
}

async fn through(suite: &Suite, revision: &str, proxy: Proxied) -> Findings {
    let findings = suite.run(revision, &format!("http://{}/mcp", proxy.address)).await;
    proxy.stop().await;
    findings
}

/// Layers that look into every message, and let everything pass.
fn permissive() -> Value {
    let permit = "permit(principal, action, resource);";
    let policies = json!({
        "version": "1.0", "type": "cedarv1", "cedar": {"policies": [permit], "entities_json": "[]"},
    });
    json!([
        {"type": "auth", "parameters": {}},
        {"type": "authorization", "parameters": {"config_data": policies}},
    ])
}

/// What is found alone is passed but for what is known, and through the proxy it is the same but for what is known.
async fn the_same_everywhere(revision: &str) {
    let suite = Suite::new();
    let alone = async {
        let server = fixture().await;
        suite.run(revision, &server.url).await
    };
    let (alone, http, judged, remote, stdio) = tokio::join!(
        alone,
        over_http(&suite, revision, json!([])),
        over_http(&suite, revision, permissive()),
        remotely(&suite, revision),
        over_stdio(&suite, revision),
    );
    let failed: BTreeSet<_> =
        alone.iter().filter(|(_, checks)| !passed(checks)).map(|(scenario, _)| scenario.as_str()).collect();
    let expected = ALONE.iter().filter(|(scenario, _)| alone.contains_key(*scenario));
    let expected =
        expected.inspect(|(scenario, reason)| println!("known to fail alone: {scenario}: {reason}"));
    assert_eq!(failed, expected.map(|(scenario, _)| *scenario).collect());

    let ways = [("http", http), ("http with policies", judged), ("remote", remote), ("stdio", stdio)];
    let differences: BTreeSet<_> =
        ways.iter().flat_map(|(way, found)| differences(way, &alone, found)).collect();
    let expected = KNOWN.iter().filter(|known| alone.contains_key(known.scenario)).flat_map(|known| {
        println!("known to differ: {}: {}: {}", known.way, known.scenario, known.reason);
        known.checks.iter().map(|check| format!("{}: {}: {check}", known.way, known.scenario))
    });
    assert_eq!(differences, expected.collect());
}

fn passed(checks: &[Check]) -> bool {
    checks.iter().all(|check| ["SUCCESS", "INFO", "SKIPPED"].contains(&check.status.as_str()))
}

/// The checks that do not end alike, by their names.
fn differences(way: &str, alone: &Findings, found: &Findings) -> BTreeSet<String> {
    assert_eq!(
        alone.keys().collect::<Vec<_>>(),
        found.keys().collect::<Vec<_>>(),
        "the same scenarios are run"
    );
    let scenarios = alone.iter().zip(found.values());
    let differ = scenarios.flat_map(|((scenario, alone), found)| {
        let missing = alone.iter().filter(|check| !found.contains(check));
        let added = found.iter().filter(|check| !alone.contains(check));
        missing.chain(added).map(move |check| format!("{way}: {scenario}: {}", check.name))
    });
    differ.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_2025_11_25_asks_of_servers_is_met_through_the_proxy_as_without_it() {
    the_same_everywhere("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_2026_07_28_asks_of_servers_is_met_through_the_proxy_as_without_it() {
    the_same_everywhere("2026-07-28").await;
}
