//! The operator itself: its upgrade, and its removal.

use std::{thread, time::Duration};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{Cluster, create_server, everything, url};
use crate::{
    call::Load,
    manifests::{SYSTEM, USERS},
    stopwatch::until,
};

/// Another operator takes over under load: no pod of a server changes, and no call is lost, in any session.
pub(super) fn an_operator_upgrade_interrupts_nothing(cluster: &Cluster<'_>) -> Result<()> {
    let transport = "streamable-http";
    create_server(cluster, "kept", transport)?;
    let pods = || -> Result<Vec<Value>> {
        let pods = cluster.kubectl.list(&["pods", "-n", USERS, "-l", "toolhive=true"])?;
        Ok(pods.into_iter().map(|pod| pod["metadata"]["uid"].clone()).collect())
    };
    let before = pods()?;
    let image = skep_operator::settings::DEFAULT_PROXY_IMAGE;
    let next = format!("{image}-next");
    cluster.node.ctr(&["images", "tag", image, &next])?;
    let load = cluster.caller.load(&url("kept", transport))?;
    cluster.helm.upgrade(
        "skep",
        &[&format!("operator.image={next}"), &format!("operator.toolhiveRunnerImage={image}")],
    )?;
    let operator = cluster.kubectl.list(&["pods", "-n", SYSTEM])?;
    ensure!(
        operator.iter().any(|pod| pod["spec"]["containers"][0]["image"] == next),
        "the operator is the old one"
    );
    // Long enough for it to reconcile everything.
    thread::sleep(Duration::from_secs(3));
    let Load { fresh, kept } = load.ended()?;
    ensure!(fresh.failures.is_empty() && kept.failures.is_empty(), "calls were lost: {fresh:?}, {kept:?}");
    ensure!(pods()? == before, "pods of servers changed");
    Ok(())
}

/// Objects of users are deleted first, then the operator, then the CRDs.
pub(super) fn an_uninstall_leaves_nothing(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "last", "stdio")?;
    cluster.kubectl.run(&["delete", "mcpservers,mcpremoteproxies", "--all", "-n", USERS, "--wait"])?;
    until("the servers are deleted", || {
        let pods = cluster.kubectl.list(&["pods", "-n", USERS])?;
        Ok(pods.is_empty().then_some(()))
    })?;
    cluster.helm.uninstall("skep")?;
    cluster.helm.uninstall("skep-crds")?;
    cluster.kubectl.run(&["delete", "namespace", SYSTEM, "--wait"])?;
    let kinds = "customresourcedefinitions,clusterroles,clusterrolebindings,namespaces";
    let ours = |one: &Value| {
        let name = one["metadata"]["name"].as_str().unwrap_or_default();
        ["skep", "toolhive"].iter().any(|word| name.contains(word)).then(|| name.to_owned())
    };
    until("nothing of it is left in the cluster", || {
        let left: Vec<String> = cluster.kubectl.list(&[kinds])?.iter().filter_map(ours).collect();
        ensure!(left.is_empty(), "there are {left:?}");
        Ok(Some(()))
    })?;
    let left = everything(cluster)?;
    ensure!(left == cluster.before, "there were {:?}, and there are {left:?}", cluster.before);
    Ok(())
}
