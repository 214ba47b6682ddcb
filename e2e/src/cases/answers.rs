//! Every transport, from `kubectl apply` to the first response.

use std::time::{Instant, SystemTime};

use anyhow::{Context, Result, ensure};

use super::{Cluster, made, server_ready, url};
use crate::{
    manifests::{self, USERS},
    stopwatch::say,
};

pub(super) fn a_stdio_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    answers(cluster, "by-stdio", "stdio")
}

pub(super) fn an_sse_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    answers(cluster, "by-sse", "sse")
}

pub(super) fn a_streamable_http_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    answers(cluster, "by-http", "streamable-http")
}

/// Applies a server while a client already waits for it, and waits for the first response and for the status.
fn answers(cluster: &Cluster<'_>, name: &str, transport: &str) -> Result<()> {
    let url = url(name, transport);
    let calling = cluster.caller.echo_until_answered(&url, transport)?;
    let begin = SystemTime::now();
    cluster.kubectl.apply(&[manifests::server(name, transport)])?;
    let at = calling.answered()?;
    println!(
        "    {:5.1} s  from kubectl apply until the first answer",
        at.duration_since(begin)?.as_secs_f64()
    );
    let live = server_ready(cluster, name)?;
    ensure!(
        live["status"]["url"].as_str().is_some_and(|said| said.starts_with(&url)),
        "its url is {}",
        live["status"]["url"]
    );
    cluster.caller.echo_long(&url, transport)
}

pub(super) fn a_remote_server_answers(cluster: &Cluster<'_>) -> Result<()> {
    let begin = Instant::now();
    made(cluster, "there", "streamable-http")?;
    say(begin, "until the remote server responds");
    cluster.kubectl.apply(&[manifests::remote("remote", &url("there", "streamable-http"))])?;
    let live = cluster
        .kubectl
        .wait(&["mcpremoteproxy", "remote", "-n", USERS], |live| live["status"]["phase"] == "Ready")?;
    let url = live["status"]["url"].as_str().context("it has no url")?.to_owned();
    cluster.caller.echo_until_answered(&url, "streamable-http")?.answered().map(drop)
}
