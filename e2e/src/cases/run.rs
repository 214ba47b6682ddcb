//! `skep run` with a real container engine.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{call::Caller, manifests, podman::Podman, skep_run::SkepRun, stopwatch::until};

const STDIO: &str = "by-stdio";
const HTTP: &str = "by-http";
/// The transport of clients for both.
const TRANSPORT: &str = "streamable-http";

/// Prints what a server sees in its container: its user, a variable, a file, a writable folder with a program, and no other.
const LOOK: &str = r#"
const fs = require('fs');
const settings = fs.readFileSync('/etc/settings/a.toml', 'utf8');
fs.writeFileSync('/scratch/file', settings);
fs.writeFileSync('/scratch/program', '#!/usr/bin/node\nconsole.log("runs")', {mode: 0o755});
const program = require('child_process').execFileSync('/scratch/program').toString().trim();
let beside = 'written';
try { fs.writeFileSync('/file', settings); } catch (error) { beside = error.code; }
console.log(JSON.stringify([process.getuid(), process.env.PLAIN, settings, program, beside]));
"#;

/// A server of each transport, and the Secret with a file of the first.
fn servers() -> [Value; 3] {
    let mut stdio = manifests::server(STDIO, "stdio");
    stdio["spec"]["env"] = json!([{"name": "PLAIN", "value": "seen"}]);
    stdio["spec"]["podTemplateSpec"]["spec"] = json!({
        "containers": [{"name": "mcp", "volumeMounts": [
            {"name": "settings", "mountPath": "/etc/settings"}, {"name": "scratch", "mountPath": "/scratch"},
        ]}],
        "volumes": [{"name": "settings", "secret": {"secretName": "settings"}}, {"name": "scratch", "emptyDir": {}}],
    });
    let settings = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "settings", "namespace": manifests::USERS},
        "stringData": {"a.toml": "x = 1"},
    });
    [stdio, settings, manifests::server(HTTP, TRANSPORT)]
}

pub(super) fn skep_run_runs_images_with_podman(podman: &Podman<'_>) -> Result<()> {
    let mut run = SkepRun::start(podman, &servers())?;
    let caller = Caller::new(podman.args, podman.entrance())?;
    for server in [STDIO, HTTP] {
        caller.echo_long(&run.url(server)?, TRANSPORT)?;
    }
    let seen = podman.run(["exec", &container(podman, STDIO)?, "/usr/bin/node", "-e", LOOK])?;
    ensure!(seen == r#"[1000,"seen","x = 1","runs","EROFS"]"#, "it sees {seen}");
    let http = container(podman, HTTP)?;
    let address = podman.run([
        "exec",
        &http,
        "/usr/bin/node",
        "-p",
        "process.env.MCP_HOST + ':' + process.env.MCP_PORT",
    ])?;
    ensure!(address == "0.0.0.0:3001", "it should listen on {address}");
    let published = podman.run(["port", &http])?;
    ensure!(published.starts_with("3001/tcp -> 127.0.0.1:"), "it is published as {published}");
    // A killed container is replaced.
    podman.run(["kill", &container(podman, STDIO)?, &http])?;
    for server in [STDIO, HTTP] {
        caller.echo_until_response(&run.url(server)?, TRANSPORT)?.response_time()?;
    }
    ended(podman, run)
}

pub(super) fn podman_keeps_nothing_of_a_killed_skep_run(podman: &Podman<'_>) -> Result<()> {
    let [stdio, settings, http] = servers();
    let mut killed = SkepRun::start(podman, &[stdio.clone(), settings.clone(), http])?;
    killed.url(HTTP)?;
    let left = running(podman, &mut killed, 2)?;
    killed.end(Signal::KILL)?;
    ensure!(podman.containers()?.len() == 2, "its containers were removed");
    let mut next = SkepRun::start(podman, &[stdio, settings])?;
    next.expect_line("Removed containers of an earlier skep run: 2")?;
    let now = running(podman, &mut next, 1)?;
    ensure!(!left.contains(&now[0]), "{} is left", now[0]);
    ended(podman, next)
}

/// All containers, once the stdio server has the one for clients. It had another one before, for listing its tools.
fn running(podman: &Podman<'_>, run: &mut SkepRun, count: usize) -> Result<Vec<String>> {
    run.url(STDIO)?;
    until("the containers", || {
        container(podman, STDIO)?;
        let all = podman.containers()?;
        ensure!(all.len() == count, "there are {all:?}");
        Ok(Some(all))
    })
}

/// Interrupts it, and checks that it leaves nothing.
fn ended(podman: &Podman<'_>, mut run: SkepRun) -> Result<()> {
    let status = run.end(Signal::INT)?;
    ensure!(status.success(), "it ended, {status}:\n{}", run.output());
    let left = podman.containers()?;
    ensure!(left.is_empty(), "these containers are left: {left:?}");
    let left = run.files()?;
    ensure!(left.is_empty(), "these files are left: {left:?}");
    Ok(())
}

/// The running container of a server.
fn container(podman: &Podman<'_>, server: &str) -> Result<String> {
    let name = format!("name=skep-run-{server}-");
    let ids = podman.run(["ps", "--quiet", "--filter", &name])?;
    ensure!(ids.lines().count() == 1, "the containers of {server} are {ids:?}");
    Ok(ids)
}
