//! Third-party clients and servers, with the proxy in between: each client gets the same results as without it.

use std::path::Path;

use futures::future::join_all;
use serde_json::{Value, json};
use similar_asserts::assert_eq;
use skep_testkit::repository;
use tokio::process::Command;

use crate::{
    joined::Joined,
    programs::{HttpServer, install},
    proxied::Proxied,
};

/// The transport of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    Streamable,
    /// The transport of 2024.
    Sse,
}

/// A client, by who wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// The TypeScript SDK before it was split in two.
    TypeScript1,
    /// The TypeScript SDK since.
    TypeScript2,
    Python,
    Rust,
}

const CLIENTS: [Client; 4] = [Client::TypeScript1, Client::TypeScript2, Client::Python, Client::Rust];

impl Client {
    /// The Rust SDK does not support the transport of 2024.
    fn has(self, front: Front) -> bool {
        front == Front::Streamable || self != Self::Rust
    }

    fn command(self, front: Front, url: &str, plan: &Value) -> Vec<String> {
        let front = match front {
            Front::Streamable => "streamable",
            Front::Sse => "sse",
        };
        let node = |major: &str| {
            let modules = path(&install("npm", "sdk"));
            vec!["node".to_owned(), script("client.mjs"), modules, major.to_owned(), front.to_owned()]
        };
        let mut command = match self {
            Self::TypeScript1 => node("1"),
            Self::TypeScript2 => node("2"),
            Self::Python => vec![python(), script("client.py"), front.to_owned()],
            Self::Rust => vec![env!("CARGO_BIN_EXE_skep-fixture-client").to_owned()],
        };
        command.extend([url.to_owned(), plan.to_string()]);
        command
    }

    /// The results of the client.
    async fn run(self, front: Front, url: &str, plan: &Value) -> Result<Value, String> {
        let command = self.command(front, url, plan);
        let ran = Command::new(&command[0]).args(&command[1..]).kill_on_drop(true).output().await.unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        if !ran.status.success() {
            return Err(stderr);
        }
        serde_json::from_slice(&ran.stdout).map_err(|error| format!("{error}: {stderr}"))
    }
}

/// A server, by who wrote it.
#[derive(Clone, Copy, Debug)]
enum Server {
    /// The reference server.
    Everything,
    /// By the Python SDK.
    Python,
    /// By FastMCP.
    FastMcp,
}

impl Server {
    fn over_stdio(self) -> Vec<String> {
        match self {
            Self::Everything => vec![everything(), "stdio".to_owned()],
            Self::Python => vec![python(), script("server_mcp.py"), "stdio".to_owned()],
            Self::FastMcp => vec![python(), script("server_fastmcp.py"), "stdio".to_owned()],
        }
    }

    /// The server, over HTTP.
    async fn over_http(self, front: Front) -> HttpServer {
        let (everythings, pythons) = match front {
            Front::Streamable => ("streamableHttp", "streamable-http"),
            Front::Sse => ("sse", "sse"),
        };
        let command = match self {
            Self::Everything => vec![
                "env".to_owned(),
                "PORT=0".to_owned(),
                format!("NODE_OPTIONS=--import {}", script("print_port.mjs")),
                everything(),
                everythings.to_owned(),
            ],
            Self::Python => vec![python(), script("server_mcp.py"), pythons.to_owned()],
            Self::FastMcp => vec![python(), script("server_fastmcp.py"), pythons.to_owned()],
        };
        HttpServer::start(&command).await
    }

    /// What a client is to do: list the tools, call one, follow another one, read, and get a prompt.
    fn plan(self) -> Value {
        let echo = json!({"name": "echo", "arguments": {"message": "<é\u{a0}\u{200d}😀>"}});
        match self {
            Self::Everything => json!({
                "echo": echo, "steps": 3,
                "slow": {"name": "trigger-long-running-operation", "arguments": {"duration": 0.1, "steps": 3}},
                "resource": "demo://resource/static/document/architecture.md",
                "prompt": {"name": "args-prompt", "arguments": {"city": "Paris"}},
            }),
            Self::Python | Self::FastMcp => json!({
                "echo": echo, "steps": 3,
                "slow": {"name": "slow", "arguments": {"steps": 3}},
                "resource": "note://hello",
                "prompt": {"name": "greet", "arguments": {"name": "Ada"}},
            }),
        }
    }
}

/// The results of all clients that support the transport: the first alone, when the server may still be starting, and the
/// others concurrently.
async fn results(front: Front, url: &str, plan: &Value) -> Vec<(Client, Value)> {
    let run = async |client: Client| {
        let result = client.run(front, url, plan).await;
        (client, result.unwrap_or_else(|error| panic!("{client:?} at {url}: {error}")))
    };
    let [first, others @ ..] = CLIENTS;
    let mut results = vec![run(first).await];
    results.extend(join_all(others.into_iter().filter(|client| client.has(front)).map(run)).await);
    results
}

/// Every client gets the server's own results, over every transport.
async fn same_results_on_every_transport(server: Server) {
    let plan = server.plan();
    let running = server.over_http(Front::Streamable).await;
    // The reference server prints its port, but not its path.
    let url = format!("http://127.0.0.1:{}/mcp", running.port());
    let direct = results(Front::Streamable, &url, &plan).await;
    for (client, seen) in &direct {
        let steps = seen["progress"].as_array().map(Vec::len);
        assert_eq!((steps, seen["read"].as_array().map(Vec::len)), (Some(3), Some(1)), "{client:?}");
    }
    let http = json!({
        "name": "s", "transport": "streamable-http", "target_host": "127.0.0.1", "target_port": running.port(),
    });
    let remote = json!({"name": "s", "transport": "streamable-http", "remote_url": url});
    let stdio = json!({"name": "s", "transport": "stdio", "cmd_args": server.over_stdio()});
    let mut sse = stdio.clone();
    sse["proxy_mode"] = "sse".into();
    let setups = [
        ("HTTP", http, Front::Streamable, "mcp"),
        ("remote", remote, Front::Streamable, "mcp"),
        ("stdio", stdio, Front::Streamable, "mcp"),
        ("stdio by HTTP+SSE", sse, Front::Sse, "sse"),
    ];
    let runs = setups.map(async |(setup, config, front, path)| {
        let proxy = Proxied::new(|_| config).await;
        for (client, mut through) in results(front, &format!("http://{}/{path}", proxy.address), &plan).await
        {
            let (_, expected) = direct.iter().find(|(other, _)| *other == client).unwrap();
            if setup.starts_with("stdio") {
                // Many servers adopt the protocol of the first client for their one stream.
                through["protocol"] = expected["protocol"].clone();
            }
            assert_eq!(&through, expected, "{client:?} by {setup}");
        }
        proxy.stop().await;
    });
    join_all(runs).await;
}

/// The same for a server with the HTTP+SSE transport of 2024.
async fn same_results_with_http_sse(server: Server) {
    let plan = server.plan();
    let running = server.over_http(Front::Sse).await;
    let url = format!("http://127.0.0.1:{}/sse", running.port());
    let direct = results(Front::Sse, &url, &plan).await;
    let own =
        json!({"name": "s", "transport": "sse", "target_host": "127.0.0.1", "target_port": running.port()});
    let remote = json!({"name": "s", "transport": "sse", "remote_url": url});
    for (setup, config) in [("HTTP+SSE", own), ("remote HTTP+SSE", remote)] {
        let proxy = Proxied::new(|_| config).await;
        let through = results(Front::Sse, &format!("http://{}/sse", proxy.address), &plan).await;
        for ((client, through), (_, expected)) in through.iter().zip(&direct) {
            assert_eq!(through, expected, "{client:?} by {setup}");
        }
        proxy.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_get_the_same_results_from_servers_of_2024_through_the_proxy() {
    for server in [Server::Everything, Server::Python, Server::FastMcp] {
        same_results_with_http_sse(server).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_get_the_same_results_from_the_reference_server_through_the_proxy() {
    same_results_on_every_transport(Server::Everything).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_get_the_same_results_from_a_python_server_through_the_proxy() {
    same_results_on_every_transport(Server::Python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_get_the_same_results_from_a_fastmcp_server_through_the_proxy() {
    same_results_on_every_transport(Server::FastMcp).await;
}

/// What a client is to do at a virtual server that has this server as a backend, under this name.
fn plan_at(server: Server, name: &str) -> Value {
    let mut plan = server.plan();
    for step in ["echo", "slow", "prompt"] {
        let original = plan[step]["name"].as_str().unwrap().to_owned();
        plan[step]["name"] = format!("{name}_{original}").into();
    }
    plan
}

/// All servers are backends of one virtual server, and all clients use all of them at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_get_the_same_results_from_all_servers_behind_one_virtual_server() {
    let setups = [
        ("everything", Server::Everything, Front::Streamable, "streamable-http", "mcp"),
        ("python", Server::Python, Front::Streamable, "streamable-http", "mcp"),
        ("fastmcp", Server::FastMcp, Front::Sse, "sse", "sse"),
    ];
    let running = setups.map(|(_, server, front, ..)| server.over_http(front));
    let running = join_all(running).await;
    let urls: Vec<_> = setups
        .iter()
        .zip(&running)
        .map(|((.., path), running)| format!("http://127.0.0.1:{}/{path}", running.port()))
        .collect();
    let backends: Vec<_> = setups
        .iter()
        .zip(&urls)
        .map(|((name, _, _, transport, _), url)| (*name, &**url, *transport))
        .collect();
    let aggregation = "{conflictResolution: prefix, conflictResolutionConfig: {prefixFormat: '{workload}_'}}";
    let joined = Joined::new(aggregation, &backends).await;
    let url = joined.url();
    let runs = setups.iter().map(async |(name, server, ..)| {
        let alone = server.over_http(Front::Streamable).await;
        let alone_url = format!("http://127.0.0.1:{}/mcp", alone.port());
        let direct = results(Front::Streamable, &alone_url, &server.plan()).await;
        for (client, through) in results(Front::Streamable, &url, &plan_at(*server, name)).await {
            let (_, direct) = direct.iter().find(|(other, _)| *other == client).unwrap();
            let tools = through["tools"].as_array().unwrap().iter().filter_map(Value::as_str);
            let own: Vec<_> = tools.filter_map(|tool| tool.strip_prefix(&format!("{name}_"))).collect();
            assert_eq!(json!(own), direct["tools"], "{client:?}: the tools of {name}");
            for step in ["echoed", "progress", "done", "messages", "read"] {
                assert_eq!(through[step], direct[step], "{client:?}: {step} of {name}");
            }
            let protocol = if client == Client::TypeScript1 { "2025-11-25" } else { "2026-07-28" };
            assert_eq!(through["protocol"], protocol, "{client:?}");
        }
    });
    join_all(runs).await;
    joined.stop().await;
}

/// The results of two clients of one stdio server, one after the other.
async fn one_after_the_other(server: Server, order: [Client; 2]) -> [Result<Value, String>; 2] {
    let stdio = json!({"name": "s", "transport": "stdio", "cmd_args": server.over_stdio()});
    let proxy = Proxied::new(|_| stdio).await;
    let url = format!("http://{}/mcp", proxy.address);
    let first = order[0].run(Front::Streamable, &url, &server.plan()).await;
    let second = order[1].run(Front::Streamable, &url, &server.plan()).await;
    proxy.stop().await;
    [first, second]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_client_of_a_stdio_server_determines_its_revision() {
    let (old, new) = (Client::TypeScript1, Client::Python);
    let (one, two, three, four) = tokio::join!(
        one_after_the_other(Server::Everything, [old, new]),
        one_after_the_other(Server::Everything, [new, old]),
        one_after_the_other(Server::Python, [old, new]),
        one_after_the_other(Server::Python, [new, old]),
    );
    // A server that supports no other revision is unaffected, and one that was initialized with a session keeps it.
    for seen in one.into_iter().chain(two).chain(three) {
        assert_eq!(seen.unwrap()["protocol"], "2025-11-25");
    }
    // The Python SDK keeps the revision of the first message on a stream, and there is only one.
    let [first, second] = four;
    assert_eq!(first.unwrap()["protocol"], "2026-07-28");
    let error = second.unwrap_err();
    assert!(error.contains("-32022"), "{error}");
}

fn everything() -> String {
    path(&install("npm", "server-everything"))
}

fn python() -> String {
    path(&install("pypi", "mcp"))
}

fn script(name: &str) -> String {
    path(&repository("crates/interop/tests/it/clients").join(name))
}

fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
