//! How fast and how small the proxy is: direct, through skep, and through any other proxy, in one run.
//!
//! Every number is taken on one machine within minutes, so that ratios mean something; the absolute ones do not.

mod contender;
mod load;
mod server;
mod soak;
mod table;
mod watched;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use clap::Parser;
use skep_bench_harness::{Program, Running, ended};
use skep_testkit::IdentityProvider;

use contender::Contender;
use load::{Load, sessions};
use server::Server;
use table::{Row, Turn};
use watched::{Watchers, run_proxy};

/// Measure the proxy.
///
/// Two small MCP servers are called directly, through skep, and through every other proxy that is given, in turns. A
/// proxy is a command line in which {config} is replaced by its RunConfig file, and {target} and {port} by the server's port
/// and the port to listen on.
#[derive(Parser)]
struct Args {
    /// How many connections call at once. An overload is ten times as many.
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
    other: Vec<Program>,
    /// Measure nginx as well, which must be installed.
    #[arg(long)]
    nginx: bool,
    /// Measure as well a proxy that has the server as a remote one, with connections of another pool.
    #[arg(long)]
    remote: bool,
    /// Instead, send mixed load for so many minutes, and print once a minute what skep holds.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=600))]
    soak: Option<u64>,
    /// Measure as well a proxy that records calls for the console, without anyone who watches, and with this many who do. Every
    /// second one of them does not read what it gets.
    #[arg(long, value_name = "COUNT")]
    watchers: Option<usize>,
    /// Be a server: used by the program itself.
    #[arg(long, hide = true)]
    serve: Option<Server>,
    /// Be the proxy of this RunConfig, which records calls: used by the program itself.
    #[arg(long, hide = true, requires = "issuer")]
    proxy: Option<PathBuf>,
    /// The issuer of the tokens of those who watch that proxy.
    #[arg(long, hide = true)]
    issuer: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match (&args.proxy, &args.issuer) {
        (Some(config), Some(issuer)) => run_proxy(config, issuer),
        _ => runtime().and_then(|runtime| runtime.block_on(run(args))),
    };
    ended(result)
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

async fn run(args: Args) -> Result<()> {
    if let Some(server) = args.serve {
        return server.run().await;
    }
    if let Some(minutes) = args.soak {
        return soak::run(&args.skep, minutes).await;
    }
    let provider = IdentityProvider::start().await;
    let mut contenders =
        vec![Contender::plain("skep", &args.skep), Contender::checked("checked", &args.skep, &provider)];
    contenders.extend(args.nginx.then(Contender::nginx));
    contenders.extend(args.remote.then(|| Contender::remote("remote", &args.skep)));
    if let Some(watchers) = args.watchers {
        contenders.extend([Contender::recording(0, &provider)?, Contender::recording(watchers, &provider)?]);
    }
    contenders.extend(args.other.iter().map(|other| Contender::plain(&other.name, &other.command)));
    println!(
        "{} connections, ten times as many under overload; memory after {} sessions; checked: tokens, 100 policies with \
         1,000 entities, and a tool filter",
        args.connections, args.sessions
    );
    for server in Server::ALL {
        let rows = measured(&args, server, &contenders, &provider).await?;
        println!("\n{}\n\n{}", server.title(), table::table(&rows));
    }
    Ok(())
}

/// A proxy that is measured.
struct Proxy {
    name: String,
    running: Running,
    config: PathBuf,
    load: Load,
    idle: u64,
    turns: Vec<Turn>,
    _watchers: Watchers,
}

/// The turns of all contenders in front of one server.
async fn measured(
    args: &Args,
    server: Server,
    contenders: &[Contender],
    provider: &IdentityProvider,
) -> Result<Vec<Row>> {
    let (server, _) = Running::own(&["--serve", server.name()]).await?;
    let time = Duration::from_secs(args.seconds);
    let load = Load { connections: args.connections, time, authorization: None };
    load.warm_up().run(server.address).await?;
    let mut proxies = Vec::new();
    for contender in contenders {
        let Contender { program: Program { name, .. }, authorization, .. } = contender;
        let (running, config) = contender.start(server.address).await?;
        let load = Load { authorization: authorization.as_deref().map(Arc::from), ..load.clone() };
        let watchers = Watchers::attach(running.address, contender.watchers, provider).await?;
        let (name, turns) = (name.clone(), Vec::new());
        proxies.push(Proxy { name, running, config, load, idle: 0, turns, _watchers: watchers });
    }
    // Until they have released what only their start needed.
    tokio::time::sleep(Duration::from_secs(8)).await;
    for proxy in &mut proxies {
        proxy.idle = proxy.running.rss()?;
        proxy.load.warm_up().run(proxy.running.address).await.with_context(|| proxy.name.clone())?;
    }
    let mut direct = Vec::new();
    for _ in 0..args.turns {
        let measured = load.run(server.address).await?;
        let rate = measured.rate();
        direct.push(Turn::new(&measured, rate, rate, Duration::ZERO));
        // The first of them.
        let mut skep = None;
        for proxy in &mut proxies {
            let before = proxy.running.cpu()?;
            let measured = proxy.load.run(proxy.running.address).await.with_context(|| proxy.name.clone())?;
            let skep = *skep.get_or_insert(measured.rate());
            proxy.turns.push(Turn::new(&measured, rate, skep, proxy.running.cpu()? - before));
        }
    }
    let overload = load.overload().run(server.address).await?;
    let mut rows = vec![Row::direct(&direct, overload.at(0.99))];
    for proxy in proxies {
        let Proxy { name, running, config, load, idle, turns, _watchers } = proxy;
        let overload = load.overload().run(running.address).await.with_context(|| name.clone())?;
        sessions(running.address, args.sessions, &load).await?;
        rows.push(Row::proxied(name, &turns, overload.at(0.99), (idle, running.rss()?)));
        if let Some(folder) = config.parent() {
            std::fs::remove_dir_all(folder).ok();
        }
    }
    Ok(rows)
}
