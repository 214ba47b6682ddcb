//! The console in a browser.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::Cluster;
use crate::{
    manifests::{self, SYSTEM, USERS},
    node::USER_MACHINE,
    programs::repository,
};

/// A user walks through all pages, and sees servers that are created, broken, corrected and deleted within a second; a tool is
/// tried, and a virtual server shows which tool comes from which backend. What they may not get is on no page.
pub(super) fn a_browser_shows_servers_as_they_are(cluster: &Cluster<'_>) -> Result<()> {
    cluster.helm.upgrade("skep", &["console.enabled=true"])?;
    let mut theirs = manifests::group("theirs");
    theirs["metadata"]["namespace"] = json!(SYSTEM);
    cluster.kubectl.apply(&[manifests::group("mine"), theirs])?;
    let token = |name: &str| -> Result<String> {
        cluster.kubectl.run(&["create", "serviceaccount", name, "-n", USERS])?;
        Ok(cluster.kubectl.run(&["create", "token", name, "-n", USERS])?.trim().to_owned())
    };
    let (viewer, stranger) = (token("browser")?, token("stranger")?);
    let resources = "--resource=mcpservers,mcpservers/calls,mcpgroups,virtualmcpservers";
    cluster.kubectl.run(&["create", "role", "browser", "-n", USERS, "--verb=get", resources])?;
    let subject = format!("--serviceaccount={USERS}:browser");
    cluster.kubectl.run(&["create", "rolebinding", "browser", "-n", USERS, "--role=browser", &subject])?;

    let good = manifests::member(manifests::server("seen", "streamable-http"), "mine");
    let mut broken = good.clone();
    broken["spec"]["args"] = json!(["sse"]);
    let options = json!({
        "kubectl": [cluster.kubectl.program, "--kubeconfig", cluster.kubectl.kubeconfig],
        "system": SYSTEM, "users": USERS, "viewer": viewer, "stranger": stranger,
        "server": {"good": good, "broken": broken}, "joined": manifests::virtual_server("joined", "mine"),
        "screenshots": cluster.browser.screenshots,
        "many": {"count": cluster.browser.servers, "server": manifests::server_without_pods("one-of-many")},
    });
    let script = repository("e2e/console.mjs")?;
    let status = Command::new("nsenter")
        .args([&format!("--net={USER_MACHINE}"), "node"])
        .arg(script)
        .arg(options.to_string())
        .env("SKEP_BROWSER_MODULES", cluster.browser.modules)
        .env("SKEP_CHROMIUM", cluster.browser.chromium.join("chromium"))
        .status()
        .context("cannot start node")?;
    ensure!(status.success(), "the browser has failed, see above");

    cluster.kubectl.run(&["delete", "mcpgroup", "theirs", "-n", SYSTEM])?;
    for what in ["rolebinding/browser", "role/browser", "serviceaccount/browser", "serviceaccount/stranger"] {
        cluster.kubectl.run(&["delete", what, "-n", USERS])?;
    }
    cluster.helm.upgrade("skep", &["console.enabled=false"])
}
