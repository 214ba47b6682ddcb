//! Killed pods and containers are replaced.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Cluster, create_server, only, proxy_pods, text, uid, url};
use crate::manifests::{self, USERS};

pub(super) fn a_killed_proxy_is_replaced(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "killed", "stdio")?;
    let before = uid(cluster, "killed-0")?;
    let proxy = only(proxy_pods(cluster, "killed")?)?;
    let name = text(&proxy, "/metadata/name")?;
    cluster.kubectl.run(&["delete", "pod", name, "-n", USERS, "--grace-period=0", "--force"])?;
    cluster.caller.echo_until_response(&url("killed", "stdio"), "stdio")?.response_time()?;
    ensure!(uid(cluster, "killed-0")? == before, "the server was recreated with its proxy");
    Ok(())
}

pub(super) fn the_proxy_attaches_to_a_recreated_stdio_server(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "again", "stdio")?;
    let url = url("again", "stdio");
    let before = uid(cluster, "again-0")?;
    cluster.kubectl.run(&["delete", "pod", "again-0", "-n", USERS, "--grace-period=0", "--force"])?;
    cluster.caller.echo_until_response(&url, "stdio")?.response_time()?;
    ensure!(uid(cluster, "again-0")? != before, "the pod is the same");
    cluster.caller.echo(&url, "stdio")
}

/// The pod stays, and its container is started again.
pub(super) fn the_proxy_attaches_to_a_restarted_stdio_server(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "crashes", "stdio")?;
    let url = url("crashes", "stdio");
    let before = uid(cluster, "crashes-0")?;
    cluster.crash("crashes-0")?;
    cluster.caller.echo_until_response(&url, "stdio")?.response_time()?;
    let pod = cluster.kubectl.get(&["pod", "crashes-0", "-n", USERS])?;
    ensure!(pod["metadata"]["uid"] == before, "the pod is another");
    let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
    ensure!(*restarts == 1, "the server restarted {restarts} times");
    cluster.caller.echo(&url, "stdio")
}

/// The user reads the reason in the status, and fixes it.
pub(super) fn a_proxy_that_cannot_start_reports_the_reason(cluster: &Cluster<'_>) -> Result<()> {
    let mut server = manifests::server("broken", "stdio");
    let variable = json!({"name": "TOOLHIVE_PROXY_REQUEST_TIMEOUT", "value": "soon"});
    server["spec"]["resourceOverrides"] = json!({"proxyDeployment": {"env": [variable]}});
    cluster.kubectl.apply(&[server])?;
    let object = ["mcpserver", "broken", "-n", USERS];
    cluster.kubectl.wait(&object, |live| {
        let message = live["status"]["message"].as_str().unwrap_or_default();
        message.contains("a container ended with exit code 1: TOOLHIVE_PROXY_REQUEST_TIMEOUT: ")
    })?;
    create_server(cluster, "broken", "stdio").map(drop)
}

/// The node is drained for maintenance, and uncordoned.
pub(super) fn a_drained_node_loses_nothing(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "drained", "streamable-http")?;
    let before = uid(cluster, "drained-0")?;
    cluster.kubectl.run(&[
        "drain",
        "node",
        "--pod-selector=toolhive=true",
        "--delete-emptydir-data",
        "--timeout=120s",
    ])?;
    cluster.kubectl.run(&["uncordon", "node"])?;
    cluster
        .caller
        .echo_until_response(&url("drained", "streamable-http"), "streamable-http")?
        .response_time()?;
    ensure!(uid(cluster, "drained-0")? != before, "its pod stayed");
    Ok(())
}
