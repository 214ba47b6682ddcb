//! The number of proxies can be set from outside.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Cluster, create_server, proxy_pods, ready, url};
use crate::{
    manifests::{self, USERS},
    stopwatch::until,
};

const TRANSPORT: &str = "streamable-http";

pub(super) fn kubectl_scale_changes_the_replicas(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "wide", TRANSPORT)?;
    cluster.kubectl.run(&["scale", "mcpserver", "wide", "-n", USERS, "--replicas=2"])?;
    two_are_ready(cluster, "wide")?;
    let replicas = |live: &Value| live["status"]["replicas"] == 2 && live["status"]["readyReplicas"] == 2;
    cluster.kubectl.wait(&["mcpserver", "wide", "-n", USERS], replicas)?;
    cluster.caller.echo(&url("wide", TRANSPORT), TRANSPORT)
}

/// What an autoscaler sets stays, also when the operator reconciles the server again.
pub(super) fn an_autoscaler_changes_the_replicas(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "auto", TRANSPORT)?;
    cluster.kubectl.apply(&[manifests::autoscaler("auto", 2)])?;
    two_are_ready(cluster, "auto")?;
    let mut changed = manifests::server("auto", TRANSPORT);
    changed["spec"]["resourceOverrides"] =
        json!({"proxyDeployment": {"podTemplateMetadataOverrides": {"labels": {"changed": "yes"}}}});
    cluster.kubectl.apply(&[changed])?;
    let is_changed = |live: &Value| live["spec"]["template"]["metadata"]["labels"]["changed"] == "yes";
    cluster.kubectl.wait(&["deployment", "auto", "-n", USERS], is_changed)?;
    cluster.kubectl.run(&["rollout", "status", "deployment/auto", "-n", USERS, "--timeout=120s"])?;
    let live = cluster.kubectl.get(&["deployment", "auto", "-n", USERS])?;
    ensure!(live["spec"]["replicas"] == 2, "{} are desired", live["spec"]["replicas"]);
    cluster.kubectl.run(&["delete", "hpa", "auto", "-n", USERS]).map(drop)
}

fn two_are_ready(cluster: &Cluster<'_>, name: &str) -> Result<()> {
    until("two proxies", || {
        let pods = proxy_pods(cluster, name)?;
        Ok((pods.len() == 2 && pods.iter().all(ready)).then_some(()))
    })
}
