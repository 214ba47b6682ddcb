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
    joined::Joined,
    programs::{FIXTURE, HttpServer},
    proxied::Proxied,
};

/// The setup whose messages are its own.
const VIRTUAL: &str = "virtual server";

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
    run_through(suite, revision, proxy.await).await
}

/// In front of a remote server.
async fn over_remote(suite: &Suite, revision: &str) -> Findings {
    let server = fixture().await;
    let proxy = Proxied::new(
        |_| json!({"name": "fixture", "transport": "streamable-http", "remote_url": server.url}),
    );
    run_through(suite, revision, proxy.await).await
}

/// In front of a server that speaks over its standard input and output.
async fn over_stdio(suite: &Suite, revision: &str) -> Findings {
    let proxy = Proxied::new(|address| {
        // A stdio server receives no headers: the proxy checks the origin.
        let origin =
            json!({"type": "origin", "parameters": {"allowed_origins": [format!("http://{address}")]}});
        json!({
            "name": "fixture", "transport": "stdio", "cmd_args": [FIXTURE, "stdio"],
            "middleware_configs": [origin],
        })
    });
    run_through(suite, revision, proxy.await).await
}

/// Behind a virtual server that has no other backend, so that names stay as they are.
async fn over_virtual_server(suite: &Suite, revision: &str) -> Findings {
    let server = fixture().await;
    let aggregation = "{conflictResolution: priority, conflictResolutionConfig: {priorityOrder: [fixture]}}";
    let joined = Joined::new(aggregation, &[("fixture", &server.url, "streamable-http")]).await;
    let findings = suite.run(revision, &joined.url()).await;
    joined.stop().await;
    findings
}

async fn run_through(suite: &Suite, revision: &str, proxy: Proxied) -> Findings {
    let findings = suite.run(revision, &format!("http://{}/mcp", proxy.address)).await;
    proxy.stop().await;
    findings
}

/// Middlewares that parse every message, and allow everything.
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

/// The scenarios of a revision with the numbers of their checks, so that a suite that runs less fails the test.
const SCENARIOS: [(&str, &str); 2] = [
    ("2025-11-25", include_str!("2025-11-25.scenarios")),
    ("2026-07-28", include_str!("2026-07-28.scenarios")),
];

/// The server passes alone except for known failures, and the results through the proxy are the same except for known
/// differences.
async fn same_results_everywhere(revision: &str) {
    let suite = Suite::new();
    let alone = async {
        let server = fixture().await;
        suite.run(revision, &server.url).await
    };
    let (alone, http, with_policies, remote, stdio, joined) = tokio::join!(
        alone,
        over_http(&suite, revision, json!([])),
        over_http(&suite, revision, permissive()),
        over_remote(&suite, revision),
        over_stdio(&suite, revision),
        over_virtual_server(&suite, revision),
    );
    let (_, scenarios) = SCENARIOS.iter().find(|(of, _)| *of == revision).unwrap();
    assert_eq!(extent(&alone), *scenarios);
    let failed: BTreeSet<_> =
        alone.iter().filter(|(_, checks)| !passed(checks)).map(|(scenario, _)| scenario.as_str()).collect();
    let expected = ALONE.iter().filter(|(scenario, _)| alone.contains_key(*scenario));
    let expected =
        expected.inspect(|(scenario, reason)| println!("known to fail alone: {scenario}: {reason}"));
    assert_eq!(failed, expected.map(|(scenario, _)| *scenario).collect());

    let setups = [
        ("http", http),
        ("http with policies", with_policies),
        ("remote", remote),
        ("stdio", stdio),
        (VIRTUAL, joined),
    ];
    let differences: BTreeSet<_> =
        setups.iter().flat_map(|(setup, findings)| differences(setup, &alone, findings)).collect();
    let expected = KNOWN.iter().filter(|known| alone.contains_key(known.scenario)).flat_map(|known| {
        println!("known to differ: {}: {}: {}", known.setup, known.scenario, known.reason);
        known.checks.iter().map(|check| format!("{}: {}: {check}", known.setup, known.scenario))
    });
    assert_eq!(differences, expected.collect());
}

/// A line for each scenario.
fn extent(findings: &Findings) -> String {
    let line = |(scenario, checks): (&String, &Vec<Check>)| {
        let skipped = checks.iter().filter(|check| check.status == "SKIPPED").count();
        format!("{scenario}: {} checks, {skipped} skipped\n", checks.len())
    };
    findings.iter().map(line).collect()
}

fn passed(checks: &[Check]) -> bool {
    checks.iter().all(|check| ["SUCCESS", "INFO", "SKIPPED"].contains(&check.status.as_str()))
}

/// The names of the checks with different results.
fn differences(setup: &str, alone: &Findings, proxied: &Findings) -> BTreeSet<String> {
    assert_eq!(
        alone.keys().collect::<Vec<_>>(),
        proxied.keys().collect::<Vec<_>>(),
        "the same scenarios are run"
    );
    // A virtual server has its own words for what it does not have.
    let same = if setup == VIRTUAL { Check::has_same_status } else { Check::eq };
    // A check may occur several times.
    let count = |checks: &[Check], check: &Check| checks.iter().filter(|other| same(check, other)).count();
    let scenarios = alone.iter().zip(proxied.values());
    let differ = scenarios.flat_map(|((scenario, alone), proxied)| {
        let differs = move |check: &&Check| count(alone, check) != count(proxied, check);
        let missing = alone.iter().filter(differs);
        let added = proxied.iter().filter(differs);
        missing.chain(added).map(move |check| format!("{setup}: {scenario}: {}", check.name))
    });
    differ.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_to_2025_11_25_is_the_same_through_the_proxy() {
    same_results_everywhere("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_to_2026_07_28_is_the_same_through_the_proxy() {
    same_results_everywhere("2026-07-28").await;
}

#[test]
fn known_failures_and_differences_are_of_scenarios_that_run() {
    let known = ALONE.iter().map(|(scenario, _)| *scenario).chain(KNOWN.iter().map(|known| known.scenario));
    for scenario in known {
        let line = format!("{scenario}: ");
        let runs = |(_, lines): &(&str, &str)| lines.lines().any(|other| other.starts_with(&line));
        assert!(SCENARIOS.iter().any(runs), "{scenario} is run for no revision");
    }
}
