//! How fast and how small the proxy is: direct, through skep, and through any other proxy, in one run.
//!
//! Every number is taken on one machine within minutes, so that ratios mean something; the absolute ones do not.

mod load;
mod process;
mod server;
mod table;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;

use load::{Load, sessions};
use process::Running;
use server::Server;
use table::{Row, Turn};

/// Measure the proxy.
///
/// Two small MCP servers are called directly, through skep, and through every other proxy that is given, in turns. A
/// proxy is a command line in which {config} is replaced by its RunConfig file, and {target} and {port} by the server's port
/// and the port to listen on.
#[derive(Parser)]
struct Args {
    /// How many connections call at once.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How many turns each has. The median counts, because the load of the machine varies.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    turns: u32,
    /// How long a turn is, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How many sessions are started for the last measurement.
    #[arg(long, default_value_t = 30_000)]
    sessions: usize,
    /// The proxy to measure.
    #[arg(long, default_value = "target/release/skep proxy run --config={config} none")]
    skep: String,
    /// Another proxy to measure, as NAME=COMMAND. May be given more than once.
    #[arg(long)]
    other: Vec<String>,
    /// Be a server: used by the program itself.
    #[arg(long, hide = true)]
    serve: Option<Server>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(server) = args.serve {
        return server.run().await;
    }
    let others = args.other.iter().map(|other| other.split_once('=').context("write --other NAME=COMMAND"));
    let mut commands = vec![("skep", args.skep.as_str())];
    commands.extend(others.collect::<Result<Vec<_>>>()?);
    println!("{} connections; memory after {} sessions", args.connections, args.sessions);
    for server in Server::ALL {
        let rows = measured(&args, server, &commands).await?;
        println!("\n{}\n\n{}", server.title(), table::table(&rows));
    }
    Ok(())
}

/// A proxy that is measured.
struct Proxy {
    name: String,
    running: Running,
    config: PathBuf,
    idle: u64,
    turns: Vec<Turn>,
}

/// The turns of all contenders in front of one server.
async fn measured(args: &Args, server: Server, commands: &[(&str, &str)]) -> Result<Vec<Row>> {
    let server = Running::server(server).await?;
    let load = Load { connections: args.connections, time: Duration::from_secs(args.seconds) };
    // Warm up first.
    let warm_up = Load { time: Duration::from_secs(1), ..load };
    warm_up.run(server.address).await?;
    let mut proxies = Vec::new();
    for (name, command) in commands {
        let port = process::free_port()?;
        let config = config_file(server.address, port)?;
        let running = Running::proxy(command, &config, server.address, port)
            .await
            .with_context(|| format!("{name}: {command}"))?;
        let idle = running.rss()?;
        warm_up.run(running.address).await?;
        proxies.push(Proxy { name: (*name).into(), running, config, idle, turns: Vec::new() });
    }
    let mut direct = Vec::new();
    for _ in 0..args.turns {
        let measured = load.run(server.address).await?;
        let rate = measured.rate();
        direct.push(Turn::new(&measured, rate, Duration::ZERO));
        for proxy in &mut proxies {
            let before = proxy.running.cpu()?;
            let measured = load.run(proxy.running.address).await?;
            proxy.turns.push(Turn::new(&measured, rate, proxy.running.cpu()? - before));
        }
    }
    let mut rows = vec![Row::direct(direct)];
    for proxy in proxies {
        sessions(proxy.running.address, args.sessions, load.connections).await?;
        rows.push(Row::proxied(proxy.name, proxy.turns, proxy.idle, proxy.running.rss()?));
        std::fs::remove_file(proxy.config).ok();
    }
    Ok(rows)
}

/// What the operator writes for a server with nothing special.
fn config_file(server: SocketAddr, port: u16) -> Result<PathBuf> {
    let chain = ["bodylimit", "auth", "mcp-parser", "recovery"]
        .map(|type_| json!({"type": type_, "parameters": null}));
    let config = json!({
        "schema_version": "v0.1.0", "name": "bench", "transport": "streamable-http", "host": "127.0.0.1", "port": port,
        "target_host": "127.0.0.1", "target_port": server.port(), "middleware_configs": chain,
    });
    let path = std::env::temp_dir().join(format!("skep-bench-{port}.json"));
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}
