//! What is killed comes back.

use anyhow::{Result, ensure};

use super::{Cluster, made, only, proxy_pods, text, uid, url};
use crate::manifests::USERS;

pub(super) fn a_proxy_that_is_killed_comes_back(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "killed", "stdio")?;
    let before = uid(cluster, "killed-0")?;
    let proxy = only(proxy_pods(cluster, "killed")?)?;
    let name = text(&proxy, "/metadata/name")?;
    cluster.kubectl.run(&["delete", "pod", name, "-n", USERS, "--grace-period=0", "--force"])?;
    cluster.caller.echo_until_answered(&url("killed", "stdio"), "stdio")?.answered()?;
    ensure!(uid(cluster, "killed-0")? == before, "the server was recreated with its proxy");
    Ok(())
}

pub(super) fn a_stdio_server_that_is_killed_is_attached_to_again(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "again", "stdio")?;
    let url = url("again", "stdio");
    let before = uid(cluster, "again-0")?;
    cluster.kubectl.run(&["delete", "pod", "again-0", "-n", USERS, "--grace-period=0", "--force"])?;
    cluster.caller.echo_until_answered(&url, "stdio")?.answered()?;
    ensure!(uid(cluster, "again-0")? != before, "the pod is the same");
    cluster.caller.echo(&url, "stdio")
}

/// The pod stays, and its container is started again.
pub(super) fn a_stdio_server_that_crashes_is_attached_to_again(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "crashes", "stdio")?;
    let url = url("crashes", "stdio");
    let before = uid(cluster, "crashes-0")?;
    cluster.crash("crashes-0")?;
    cluster.caller.echo_until_answered(&url, "stdio")?.answered()?;
    let pod = cluster.kubectl.get(&["pod", "crashes-0", "-n", USERS])?;
    ensure!(pod["metadata"]["uid"] == before, "the pod is another");
    let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
    ensure!(*restarts == 1, "the server restarted {restarts} times");
    cluster.caller.echo(&url, "stdio")
}

/// The node is emptied for maintenance, and filled again.
pub(super) fn a_drained_node_loses_nothing(cluster: &Cluster<'_>) -> Result<()> {
    made(cluster, "drained", "streamable-http")?;
    let before = uid(cluster, "drained-0")?;
    cluster.kubectl.run(&[
        "drain",
        "node",
        "--pod-selector=toolhive=true",
        "--delete-emptydir-data",
        "--timeout=120s",
    ])?;
    cluster.kubectl.run(&["uncordon", "node"])?;
    cluster.caller.echo_until_answered(&url("drained", "streamable-http"), "streamable-http")?.answered()?;
    ensure!(uid(cluster, "drained-0")? != before, "its pod stayed");
    Ok(())
}
