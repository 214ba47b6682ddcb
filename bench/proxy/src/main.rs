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
use table::Row;

/// Measure the proxy.
///
/// A small MCP server is called directly, through skep, and through every other proxy that is given. A proxy is a
/// command line in which {config} stands for its RunConfig file, and {target} and {port} for the server's port and
/// the port to listen on.
#[derive(Parser)]
struct Args {
    /// How many connections call at once.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How long each is measured, in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How many sessions are begun for the last measure.
    #[arg(long, default_value_t = 30_000)]
    sessions: usize,
    /// The proxy to measure.
    #[arg(long, default_value = "target/release/skep proxy run --config={config} none")]
    skep: String,
    /// Another proxy to measure, as NAME=COMMAND. May be given more than once.
    #[arg(long)]
    other: Vec<String>,
    /// The server, alone: used by the program itself.
    #[arg(long, hide = true)]
    serve: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if args.serve {
        return server::run().await;
    }
    let server = Running::server().await?;
    let load = Load { connections: args.connections, time: Duration::from_secs(args.seconds) };
    // The first seconds of a process are not like the others.
    Load { time: Duration::from_secs(1), ..load }.run(server.address).await?;
    let direct = load.run(server.address).await?;
    let mut rows = vec![Row::direct(&direct)];
    let others = args.other.iter().map(|other| other.split_once('=').context("write --other NAME=COMMAND"));
    let mut proxies = vec![("skep", args.skep.as_str())];
    proxies.extend(others.collect::<Result<Vec<_>>>()?);
    for (name, command) in proxies {
        rows.push(measured(name, command, server.address, load, args.sessions, direct.rate()).await?);
    }
    print!("{}", table::table(&rows, args.connections, args.sessions));
    Ok(())
}

async fn measured(
    name: &str,
    command: &str,
    server: SocketAddr,
    load: Load,
    count: usize,
    direct: f64,
) -> Result<Row> {
    let port = process::free_port()?;
    let config = config_file(server, port)?;
    let proxy =
        Running::proxy(command, &config, server, port).await.with_context(|| format!("{name}: {command}"))?;
    let idle = proxy.rss()?;
    Load { time: Duration::from_secs(1), ..load }.run(proxy.address).await?;
    let before = proxy.cpu()?;
    let measured = load.run(proxy.address).await?;
    let cpu = proxy.cpu()? - before;
    sessions(proxy.address, count, load.connections).await?;
    let crowded = proxy.rss()?;
    std::fs::remove_file(config).ok();
    Ok(Row::proxied(name, &measured, direct, idle, crowded, cpu))
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
