//! A virtual server in front of the members of a group.

use std::{thread, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Cluster, create_server, server_ready, url};
use crate::{
    call::Load,
    manifests::{self, USERS},
    stopwatch::until,
};

/// How long clients call before and after a change.
const SOME_CALLS: Duration = Duration::from_secs(2);
const TRANSPORT: &str = "streamable-http";

/// Members of three kinds are discovered: servers, a remote server behind a proxy, and one without. While clients call one of them,
/// another is added, one breaks and is repaired, and one is removed.
pub(super) fn a_virtual_server_follows_its_group_under_load(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "elsewhere", TRANSPORT)?;
    cluster.kubectl.apply(&[
        manifests::group("team"),
        manifests::member(manifests::server("stdio", "stdio"), "team"),
        manifests::member(manifests::server("http", TRANSPORT), "team"),
        manifests::member(manifests::remote("remote", &url("elsewhere", TRANSPORT)), "team"),
        manifests::secret("entry-key", &json!({"key": "secret"})),
        manifests::member(manifests::entry("entry", &url("elsewhere", TRANSPORT), "entry-key"), "team"),
        manifests::virtual_server("all", "team"),
    ])?;
    let address = address(cluster, "all", 4)?;
    see(cluster, &address, &["entry_echo", "http_echo", "remote_echo", "stdio_echo"], &[])?;

    let load = cluster.caller.load_tool(&address, "stdio_echo")?;
    thread::sleep(SOME_CALLS);
    let late = manifests::remote("late", &url("elsewhere", TRANSPORT));
    cluster.kubectl.apply(&[manifests::member(late, "team")])?;
    see(cluster, &address, &["late_echo"], &[])?;
    let image = |image: &str| {
        let mut server = manifests::member(manifests::server("http", TRANSPORT), "team");
        server["spec"]["image"] = image.into();
        cluster.kubectl.apply(&[server])
    };
    image("localhost/nowhere:e2e")?;
    backend(cluster, "all", "http", |status| status != "ready")?;
    see(cluster, &address, &["stdio_echo"], &["http_echo"])?;
    image(manifests::EVERYTHING)?;
    backend(cluster, "all", "http", |status| status == "ready")?;
    see(cluster, &address, &["http_echo"], &[])?;
    cluster.kubectl.run(&["delete", "mcpremoteproxy", "remote", "-n", USERS, "--wait=false"])?;
    see(cluster, &address, &["stdio_echo"], &["remote_echo"])?;
    thread::sleep(SOME_CALLS);
    no_call_is_lost(load.ended()?)
}

/// Sessions are in Redis, and each request may go to either replica, of which both are replaced.
pub(super) fn a_virtual_server_is_replaced_under_load(cluster: &Cluster<'_>) -> Result<()> {
    let redis = cluster.node.redis()?;
    let mut server = manifests::virtual_server("shared", "pair");
    server["spec"]["replicas"] = 2.into();
    server["spec"]["sessionAffinity"] = "None".into();
    server["spec"]["sessionStorage"] = json!({"provider": "redis", "address": redis});
    cluster.kubectl.apply(&[
        manifests::group("pair"),
        manifests::member(manifests::server("member", TRANSPORT), "pair"),
        server,
    ])?;
    server_ready(cluster, "member")?;
    let address = address(cluster, "shared", 1)?;
    let ready = |live: &Value| live["status"]["readyReplicas"] == 2;
    cluster.kubectl.wait(&["deployment", "shared", "-n", USERS], ready)?;
    let load = cluster.caller.load_tool(&address, "member_echo")?;
    thread::sleep(SOME_CALLS);
    cluster.kubectl.run(&["rollout", "restart", "deployment/shared", "-n", USERS])?;
    cluster.kubectl.run(&["rollout", "status", "deployment/shared", "-n", USERS, "--timeout=170s"])?;
    thread::sleep(SOME_CALLS);
    no_call_is_lost(load.ended()?)
}

/// A client sees the search alone, and by it finds and calls a composite tool, and a script that calls it.
pub(super) fn tools_are_searched_and_called_by_workflows_and_scripts(cluster: &Cluster<'_>) -> Result<()> {
    let echo =
        |id: &str, message: &str| json!({"id": id, "tool": "worker_echo", "arguments": {"message": message}});
    let mut last = echo("second", "{{.steps.first.output.text}}");
    last["dependsOn"] = json!(["first"]);
    let mut server = manifests::virtual_server("combined", "workers");
    server["spec"]["config"]["optimizer"] = json!({});
    server["spec"]["config"]["codeMode"] = json!({"enabled": true});
    server["spec"]["config"]["compositeTools"] = json!([{
        "name": "repeat", "description": "Repeats a greeting, one time after the other.",
        "parameters": {"type": "object", "properties": {"greeting": {"type": "string"}}, "required": ["greeting"]},
        "steps": [echo("first", "{{.params.greeting}}"), last],
    }]);
    cluster.kubectl.apply(&[
        manifests::group("workers"),
        manifests::member(manifests::server("worker", TRANSPORT), "workers"),
        server,
    ])?;
    let address = address(cluster, "combined", 1)?;
    see(cluster, &address, &["find_tool", "call_tool"], &["worker_echo", "repeat", "execute_tool_script"])?;
    let call = |tool: &str, input: &Value| cluster.caller.call(&address, tool, input);
    let found = call("find_tool", &json!({"tool_description": "greet somebody repeatedly"}))?;
    ensure!(found.contains("\"repeat\""), "the composite tool is not found: {found}");
    for (tool, parameters) in [
        ("repeat", json!({"greeting": "hello"})),
        ("execute_tool_script", json!({"script": "return repeat(greeting='hello')"})),
    ] {
        let result = call("call_tool", &json!({"tool_name": tool, "parameters": parameters}))?;
        ensure!(result.contains("Echo: Echo: hello"), "{tool}: {result}");
    }
    Ok(())
}

/// The address of a virtual server that reports this many backends as ready.
fn address(cluster: &Cluster<'_>, name: &str, backends: usize) -> Result<String> {
    let is_ready = |live: &Value| {
        let all = live["status"]["discoveredBackends"].as_array();
        let ready = all.into_iter().flatten().filter(|backend| backend["status"] == "ready");
        live["status"]["phase"] == "Ready" && ready.count() == backends
    };
    let live = cluster.kubectl.wait(&["virtualmcpserver", name, "-n", USERS], is_ready)?;
    let url = live["status"]["url"].as_str().context("it has no url")?;
    Ok(if url.ends_with("/mcp") { url.to_owned() } else { format!("{}/mcp", url.trim_end_matches('/')) })
}

/// Waits until the object reports this of a backend.
fn backend(cluster: &Cluster<'_>, name: &str, backend: &str, is: impl Fn(&Value) -> bool) -> Result<()> {
    let reported = |live: &Value| {
        let all = live["status"]["discoveredBackends"].as_array();
        all.into_iter().flatten().any(|one| one["name"] == backend && is(&one["status"]))
    };
    cluster.kubectl.wait(&["virtualmcpserver", name, "-n", USERS], reported).map(drop)
}

/// Waits until a new client sees these tools, and none of the others.
fn see(cluster: &Cluster<'_>, address: &str, present: &[&str], absent: &[&str]) -> Result<()> {
    until(&format!("{present:?} without {absent:?}"), || {
        let tools = cluster.caller.tools(address)?;
        let has = |tool: &&str| tools.iter().any(|seen| seen == tool);
        Ok((present.iter().all(has) && !absent.iter().any(has)).then_some(()))
    })
}

fn no_call_is_lost(load: Load) -> Result<()> {
    let Load { fresh, kept } = load;
    println!("    {} calls in separate sessions, {} in one session", fresh.calls, kept.calls);
    ensure!(fresh.calls > 10 && kept.calls > 10, "there was no load: {fresh:?}, {kept:?}");
    ensure!(fresh.failures.is_empty(), "calls in separate sessions were lost: {:?}", fresh.failures);
    ensure!(kept.failures.is_empty(), "calls in one session were lost: {:?}", kept.failures);
    Ok(())
}
