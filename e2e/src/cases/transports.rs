//! Every transport, from `kubectl apply` to the first response.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Cluster, create_server, server_ready, url};
use crate::{
    manifests::{self, USERS},
    stopwatch::print_elapsed,
    timeline::Timeline,
};

/// The first response must come within this time, even on a machine that has other work. It usually takes two seconds.
const FIRST_RESPONSE: Duration = Duration::from_secs(15);

pub(super) fn a_stdio_server_responds(cluster: &Cluster<'_>) -> Result<()> {
    first_response(cluster, "by-stdio", "stdio")
}

pub(super) fn an_sse_server_responds(cluster: &Cluster<'_>) -> Result<()> {
    first_response(cluster, "by-sse", "sse")
}

pub(super) fn a_streamable_http_server_responds(cluster: &Cluster<'_>) -> Result<()> {
    first_response(cluster, "by-http", "streamable-http")
}

/// Applies a server while a client already waits for it, and waits for the first response and for the status.
fn first_response(cluster: &Cluster<'_>, name: &str, transport: &str) -> Result<()> {
    let url = url(name, transport);
    let timeline = Timeline::start(cluster.kubectl, name)?;
    let calling = cluster.caller.echo_until_response(&url, transport)?;
    let begin = SystemTime::now();
    cluster.kubectl.apply(&[manifests::server(name, transport)])?;
    let at = calling.response_time()?;
    let time = at.duration_since(begin)?;
    println!("    {:5.1} s  from kubectl apply until the first response", time.as_secs_f64());
    timeline.print(begin, at);
    ensure!(time < FIRST_RESPONSE, "the first response came after more than {} s", FIRST_RESPONSE.as_secs());
    let live = server_ready(cluster, name)?;
    ensure!(
        live["status"]["url"].as_str().is_some_and(|live| live.starts_with(&url)),
        "its url is {}",
        live["status"]["url"]
    );
    ensure!(has_tools(&live), "its tools are {}", live["status"]["server"]);
    cluster.caller.echo_long(&url, transport)
}

/// Whether the proxy has reported the tools of the server, which the tests of the reference server call.
fn has_tools(live: &Value) -> bool {
    let tools = live["status"]["server"]["tools"].as_array();
    tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == "echo"))
}

/// It listens, and is no MCP server of the transport that its object names, until that is corrected. Then some servers that are
/// unusual.
pub(super) fn a_server_that_does_not_speak_mcp_is_not_ready(cluster: &Cluster<'_>) -> Result<()> {
    let mut server = manifests::server("silent", "streamable-http");
    server["spec"]["args"] = json!(["sse"]);
    cluster.kubectl.apply(&[server])?;
    let object = ["mcpserver", "silent", "-n", USERS];
    let live = cluster.kubectl.wait(&object, |live| live["status"]["phase"] == "Failed")?;
    let message = live["status"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("does not respond as an MCP server"), "the message is {message:?}");
    cluster.kubectl.apply(&[manifests::server("silent", "streamable-http")])?;
    let live = server_ready(cluster, "silent")?;
    ensure!(has_tools(&live), "its tools are {}", live["status"]["server"]);
    let count = live["status"]["server"]["toolCount"].to_string();
    let printed = printed_tools(cluster, "silent")?;
    ensure!(printed == count && count != "0", "kubectl prints {printed} tools of {count}");
    odd_servers(cluster)
}

/// The number of tools that `kubectl get` prints.
fn printed_tools(cluster: &Cluster<'_>, name: &str) -> Result<String> {
    let table = cluster.kubectl.run(&["get", "mcpserver", name, "-n", USERS])?;
    let mut lines = table.lines();
    let (head, row) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    // Columns are aligned, and a cell may be empty.
    let start = head.find("TOOLS").with_context(|| format!("kubectl prints no column TOOLS: {table}"))?;
    let cell = row.get(start..).unwrap_or_default();
    Ok(cell.split_whitespace().next().unwrap_or_default().to_owned())
}

/// A server that is slow, one that never answers, one that needs a credential, some of one revision only, and one with 5,000
/// tools: the status has the truth about each.
fn odd_servers(cluster: &Cluster<'_>) -> Result<()> {
    // Its kind, its transport, the reason of its condition, and the tools and revision in its status.
    let rows = [
        ("slow", "stdio", "Initialized", json!(2), json!(["2025-11-25"])),
        ("silent", "streamable-http", "NoResponse", Value::Null, Value::Null),
        ("old", "stdio", "Initialized", json!(2), json!(["2024-11-05"])),
        ("guarded", "streamable-http", "CredentialRequired", Value::Null, Value::Null),
        ("newest", "streamable-http", "Initialized", json!(3), json!(["2026-07-28"])),
        ("many", "streamable-http", "Initialized", json!(5000), json!(["2025-11-25"])),
    ];
    let servers: Vec<Value> =
        rows.iter().map(|(kind, transport, ..)| manifests::odd_server(kind, transport)).collect();
    cluster.kubectl.apply(&servers)?;
    for (kind, _, reason, tools, revisions) in rows {
        let name = format!("odd-{kind}");
        let live = cluster.kubectl.wait(&["mcpserver", &name, "-n", USERS], |live| {
            let conditions = live["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let initialized = conditions.find(|one| one["type"] == "MCPInitialized");
            initialized.is_some_and(|one| one["reason"] == reason)
        })?;
        let server = &live["status"]["server"];
        ensure!(
            (&server["toolCount"], &server["protocolVersions"]) == (&tools, &revisions),
            "the status of {name} is {}",
            live["status"]
        );
        if tools != Value::Null {
            let printed = printed_tools(cluster, &name)?;
            let expected = tools.to_string();
            ensure!(printed == expected, "kubectl prints {printed} of {expected} tools of {name}");
        }
    }
    Ok(())
}

pub(super) fn a_remote_server_responds(cluster: &Cluster<'_>) -> Result<()> {
    let begin = Instant::now();
    create_server(cluster, "there", "streamable-http")?;
    print_elapsed(begin, "until the remote server responds");
    cluster.kubectl.apply(&[manifests::remote("remote", &url("there", "streamable-http"))])?;
    let live = cluster
        .kubectl
        .wait(&["mcpremoteproxy", "remote", "-n", USERS], |live| live["status"]["phase"] == "Ready")?;
    ensure!(has_tools(&live), "its tools are {}", live["status"]["server"]);
    let url = live["status"]["url"].as_str().context("it has no url")?.to_owned();
    cluster.caller.echo_until_response(&url, "streamable-http")?.response_time().map(drop)
}
