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

use super::{Cluster, create_server, url};
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
    let change = r#"{"spec": {"env": [{"name": "ADDED", "value": "1"}]}}"#;
    cluster.kubectl.run(&["patch", "mcpserver", "shown", "-n", USERS, "--type=merge", "--patch", change])?;
    until("the rollout is explained", || {
        let why = plugin(&["explain", "shown", "--why-pods"])?;
        let is_explained = why.contains("the spec of the MCPServer changed: generation 1 to 2")
            && why.contains("MCPServer shown was written by kubectl-patch at ");
        Ok(is_explained.then_some(()))
    })?;
    Ok(())
}

/// The chart installs the console. A user sees the servers that they may get, as they are, with the calls of their proxies,
/// and no others.
pub(super) fn the_console_shows_servers_to_those_who_may_get_them(cluster: &Cluster<'_>) -> Result<()> {
    cluster.helm.upgrade("skep", &["console.enabled=true"])?;
    create_server(cluster, "shown", TRANSPORT)?;
    let account = |name: &str| -> Result<String> {
        cluster.kubectl.run(&["create", "serviceaccount", name, "-n", USERS])?;
        let token = cluster.kubectl.run(&["create", "token", name, "-n", USERS])?;
        Ok(token.trim().to_owned())
    };
    let (viewer, other) = (account("viewer")?, account("stranger")?);
    cluster.kubectl.run(&[
        "create",
        "role",
        "viewer",
        "-n",
        USERS,
        "--verb=get",
        "--resource=mcpservers,mcpservers/calls",
    ])?;
    let subject = format!("--serviceaccount={USERS}:viewer");
    cluster.kubectl.run(&["create", "rolebinding", "viewer", "-n", USERS, "--role=viewer", &subject])?;
    let shown = until("the console shows the server", || {
        let objects = overview(&viewer)?;
        Ok(objects.into_iter().find(|object| object["name"] == "shown" && object["phase"] == "Ready"))
    })?;
    ensure!(shown["tools"].as_u64().is_some_and(|tools| tools > 0), "its tools are {}", shown["tools"]);
    ensure!(overview(&other)?.is_empty(), "a user without rights sees objects");
    // Calls are read from the proxy while a page is open.
    let (_page, _other_page) = (stream(&viewer)?, stream(&other)?);
    let path = format!("objects/MCPServer/{USERS}/shown");
    until("the console shows a call of the proxy", || {
        cluster.caller.echo(&url("shown", TRANSPORT), TRANSPORT)?;
        let calls = get(&viewer, &path)?["calls"].clone();
        let is_echo = |call: &Value| {
            call["method"] == "tools/call" && call["target"] == "echo" && call["status"] == 200
        };
        Ok(calls.as_array().is_some_and(|calls| calls.iter().any(is_echo)).then_some(()))
    })?;
    let shown = overview(&viewer)?.into_iter().find(|object| object["name"] == "shown").unwrap_or_default();
    ensure!(shown["traffic"]["perSecond"].as_f64().is_some_and(|calls| calls > 0.0), "{shown}");
    ensure!(get(&other, &path).is_err(), "a user without rights sees calls");
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
    Ok(get(token, "objects")?["objects"].as_array().cloned().unwrap_or_else(|| vec![json!(null)]))
}

/// What the console shows to the holder of this token at this path.
fn get(token: &str, path: &str) -> Result<Value> {
    let mut response = String::new();
    request(token, path)?.read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").context("no response")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
    Ok(serde_json::from_str(body)?)
}

/// The stream of an open page. It ends when it is dropped.
fn stream(token: &str) -> Result<TcpStream> {
    let mut stream = request(token, "events?calls=all")?;
    let mut begin = [0; 12];
    stream.read_exact(&mut begin)?;
    ensure!(&begin == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&begin));
    Ok(stream)
}

fn request(token: &str, path: &str) -> Result<TcpStream> {
    let host = format!("skep-console.{SYSTEM}.svc.cluster.local");
    let mut stream = TcpStream::connect((host.as_str(), 80)).context("cannot connect to the console")?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "GET /api/{path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )?;
    Ok(stream)
}
