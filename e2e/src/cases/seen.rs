//! What people see of servers: the plugin of kubectl, and the console.

use std::{
    env,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::symlink,
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Cluster, create_server};
use crate::{
    manifests::{SYSTEM, USERS},
    stopwatch::until,
};

const TRANSPORT: &str = "streamable-http";

/// kubectl finds the program by its name, which shows servers, calls a tool through the API server, and explains it.
pub(super) fn the_plugin_of_kubectl_shows_and_calls_a_server(cluster: &Cluster<'_>) -> Result<()> {
    create_server(cluster, "shown", TRANSPORT)?;
    let folder = cluster.kubectl.kubeconfig.with_extension("plugins");
    std::fs::create_dir_all(&folder)?;
    symlink(env::current_exe()?.with_file_name("skep"), folder.join("kubectl-skep"))?;
    let plugin = |args: &[&str]| -> Result<String> {
        let output = Command::new(&cluster.kubectl.program)
            .arg("skep")
            .args(args)
            .args(["-n", USERS])
            .env("PATH", &folder)
            .env("KUBECONFIG", &cluster.kubectl.kubeconfig)
            .output()
            .context("cannot start kubectl")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl skep {args:?}: {}", error.trim());
        Ok(String::from_utf8(output.stdout)?)
    };
    let status = plugin(&["status"])?;
    let row = status.lines().find(|line| line.contains(" shown ")).with_context(|| status.clone())?;
    ensure!(row.contains("MCPServer") && row.contains("Ready"), "{row}");
    let tools = plugin(&["tools", "shown"])?;
    ensure!(tools.lines().any(|line| line.starts_with("echo ")), "{tools}");
    let answer = plugin(&["call", "shown", "echo", "--arguments", r#"{"message": "by the plugin"}"#])?;
    ensure!(answer == "Echo: by the plugin\n", "{answer}");
    let explained = plugin(&["explain", "shown", "--tool", "echo"])?;
    ensure!(explained.contains("allowed; it is sent to the server shown"), "{explained}");
    ensure!(!plugin(&["logs", "shown", "--tail", "5"])?.is_empty(), "it logs nothing");
    Ok(())
}

/// The chart installs the console. A user sees the servers that they may get, as they are, and no others.
pub(super) fn the_console_shows_servers_to_those_who_may_get_them(cluster: &Cluster<'_>) -> Result<()> {
    cluster.helm.upgrade("skep", &["console.enabled=true"])?;
    create_server(cluster, "shown", TRANSPORT)?;
    let account = |name: &str| -> Result<String> {
        cluster.kubectl.run(&["create", "serviceaccount", name, "-n", USERS])?;
        let token = cluster.kubectl.run(&["create", "token", name, "-n", USERS])?;
        Ok(token.trim().to_owned())
    };
    let (viewer, other) = (account("viewer")?, account("stranger")?);
    cluster.kubectl.run(&["create", "role", "viewer", "-n", USERS, "--verb=get", "--resource=mcpservers"])?;
    let subject = format!("--serviceaccount={USERS}:viewer");
    cluster.kubectl.run(&["create", "rolebinding", "viewer", "-n", USERS, "--role=viewer", &subject])?;
    let shown = until("the console shows the server", || {
        let objects = overview(&viewer)?;
        Ok(objects.into_iter().find(|object| object["name"] == "shown" && object["phase"] == "Ready"))
    })?;
    ensure!(shown["tools"].as_u64().is_some_and(|tools| tools > 0), "its tools are {}", shown["tools"]);
    ensure!(overview(&other)?.is_empty(), "a user without rights sees objects");
    // What happens to it appears within seconds.
    cluster.kubectl.run(&["delete", "mcpserver", "shown", "-n", USERS, "--wait"])?;
    until("the console no longer shows the server", || Ok(overview(&viewer)?.is_empty().then_some(())))?;
    for kind in ["rolebinding/viewer", "role/viewer", "serviceaccount/viewer", "serviceaccount/stranger"] {
        cluster.kubectl.run(&["delete", kind, "-n", USERS])?;
    }
    cluster.helm.upgrade("skep", &["console.enabled=false"])
}

/// The objects that the console shows to the holder of this token.
fn overview(token: &str) -> Result<Vec<Value>> {
    let host = format!("skep-console.{SYSTEM}.svc.cluster.local");
    let mut stream = TcpStream::connect((host.as_str(), 80)).context("cannot connect to the console")?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "GET /api/objects HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").context("no response")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
    let overview: Value = serde_json::from_str(body)?;
    Ok(overview["objects"].as_array().cloned().unwrap_or_else(|| vec![json!(null)]))
}
