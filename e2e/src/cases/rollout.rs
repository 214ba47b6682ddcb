//! A spec that changes.

use std::{thread, time::Duration};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Cluster, create_server, only, proxy_pods, ready, text, uid, url};
use crate::{
    call::{Calls, Load},
    manifests::{self, USERS},
    stopwatch::until,
};

/// How long clients call before and after a change.
const SOME_CALLS: Duration = Duration::from_secs(2);

/// The new server never gets ready, so its proxy does not either, and the old proxy stays beside it: then that restarts.
pub(super) fn an_older_proxy_does_not_undo_a_newer_one(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "rolls", "stdio")?;
    let old = only(proxy_pods(cluster, "rolls")?)?;
    let old = text(&old, "/metadata/name")?;
    let image = |image: &str| {
        let mut server = manifests::server("rolls", "stdio");
        server["spec"]["image"] = image.into();
        cluster.kubectl.apply(&[server])
    };
    let nowhere = "localhost/nowhere:e2e";
    image(nowhere)?;
    let runs = |image: &str| {
        let container = "/spec/template/spec/containers/0/image";
        let image = image.to_owned();
        move |live: &Value| live.pointer(container).is_some_and(|live| *live == image)
    };
    let set = ["statefulset", "rolls", "-n", USERS];
    cluster.kubectl.wait(&set, runs(nowhere))?;
    cluster.crash(old)?;
    until("the old proxy restarts and applies nothing", || {
        let log = cluster.kubectl.run(&["logs", old, "-n", USERS])?;
        Ok(log.contains("newer generation").then_some(()))
    })?;
    let pod = cluster.kubectl.get(&["pod", old, "-n", USERS])?;
    let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
    ensure!(*restarts == 1, "the old proxy restarted {restarts} times");
    ensure!(runs(nowhere)(&cluster.kubectl.get(&set)?), "the old proxy undid what the new one did");
    // The user sees the problem, and fixes it.
    let reported = |live: &Value| {
        live["status"]["message"].as_str().is_some_and(|message| message.contains("cannot be pulled"))
    };
    cluster.kubectl.wait(&["mcpserver", "rolls", "-n", USERS], reported)?;
    image(manifests::EVERYTHING)?;
    cluster.kubectl.wait(&set, runs(manifests::EVERYTHING))?;
    cluster.caller.echo_until_response(&url("rolls", "stdio"), "stdio")?.response_time().map(drop)
}

/// Proxy and server are replaced while clients call. A client that starts a session waits for the new server. A session in
/// memory ends with its proxy; its client gets one error, as the protocol specifies, and starts another. The one call that the
/// old server is handling when it ends may be lost: it is unknown whether it was executed.
pub(super) fn a_change_under_load_loses_no_request(cluster: &Cluster<'_>) -> Result<()> {
    let transport = "streamable-http";
    create_server(cluster, "busy", transport)?;
    let before = uid(cluster, "busy-0")?;
    let proxy = text(&only(proxy_pods(cluster, "busy")?)?, "/metadata/uid")?.to_owned();
    let load = cluster.caller.load(&url("busy", transport))?;
    thread::sleep(SOME_CALLS);
    let mut changed = manifests::server("busy", transport);
    changed["spec"]["env"] = json!([{"name": "PORT", "value": "3001"}, {"name": "CHANGED", "value": "yes"}]);
    cluster.kubectl.apply(&[changed])?;
    until("only the new server and the new proxy", || {
        let proxies = proxy_pods(cluster, "busy")?;
        let replaced = proxies.len() == 1 && proxies[0]["metadata"]["uid"] != *proxy && ready(&proxies[0]);
        let pod = cluster.kubectl.get(&["pod", "busy-0", "-n", USERS])?;
        Ok((replaced && pod["metadata"]["uid"] != before && ready(&pod)).then_some(()))
    })?;
    thread::sleep(SOME_CALLS);
    let Load { fresh, kept } = load.ended()?;
    println!("    {} calls in separate sessions, {} in one session", fresh.calls, kept.calls);
    ensure!(fresh.calls > 10 && kept.calls > 10, "there was no load: {fresh:?}, {kept:?}");
    // Starting a session can be repeated, and is.
    let starts = |failure: &&String| failure.contains("initialize: ");
    let lost: Vec<_> = fresh.failures.iter().filter(starts).collect();
    ensure!(lost.is_empty(), "sessions could not be started: {lost:?}");
    let cut = |failure: &String| failure.contains("the MCP server cannot be reached");
    for (who, Calls { failures, .. }) in [("separate sessions", fresh), ("one session", kept)] {
        ensure!(failures.len() <= 1 && failures.iter().all(cut), "calls in {who} were lost: {failures:?}");
    }
    Ok(())
}
