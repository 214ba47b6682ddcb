//! `skep run`: MCP servers from manifests on this machine, without a cluster.
//!
//! The operator's own code computes the RunConfig of each proxy, and the variables and files that its pod would have
//! ([`plan`]). Only the runtime differs: servers are processes of this machine or containers of its engine ([`engine`]), and
//! each has a proxy within this process ([`running`]).

mod attachment;
mod client;
mod config_sources;
mod discovery;
mod engine;
mod folder;
mod image;
mod lifecycle;
mod local;
mod logs;
mod plan;
mod prepare;
mod process;
mod reachability;
mod running;
mod screen;
mod servers;
mod source;
mod table;
mod warnings;

use std::{env, io, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail, ensure};
use futures::future::select_all;
use skep_operator::{render::render, settings::Settings};
use tokio::signal::unix::{SignalKind, signal};

use self::{
    plan::{Machine, Planned, left_out, plan},
    screen::Screen,
    servers::Servers,
    source::Source,
    table::{Row, Table},
};

/// Run MCPServers and MCPRemoteProxies from a file of manifests on this machine, without a cluster.
///
/// Each server runs as a process, with the command line in its annotation skep.dev/local-command, or in a container of Docker
/// or Podman, behind a proxy on 127.0.0.1 that does the same as in a cluster. References to other objects are resolved within
/// the file. When the file changes, the servers that changed are restarted. Ctrl-C stops everything.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep run -f examples/quickstart.yaml\n  skep run npx://@modelcontextprotocol/server-everything\n  skep run uvx://mcp-server-time -- --local-timezone=Europe/Zurich"
)]
pub(crate) struct Args {
    /// The file, with one or more YAML documents.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Packages to run as servers: npx://PACKAGE or uvx://PACKAGE.
    #[arg(value_name = "PACKAGE")]
    packages: Vec<String>,

    /// Arguments for the package.
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,

    /// The namespace of objects without one.
    #[arg(short, long, default_value = "default")]
    namespace: String,

    /// Log more about the proxies. The standard error of servers is always logged.
    #[arg(short, long)]
    verbose: bool,
}

/// How often states are polled.
const LOOK: Duration = Duration::from_millis(200);
/// How often the file is read, in polls.
const READ: u32 = 5;
/// The timeout of a graceful shutdown.
const END: Duration = Duration::from_secs(10);
/// How long the line for clients waits for slow servers once one is ready, in polls.
const ENOUGH: u32 = 25;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let screen = Screen::new();
    logs::init(args.verbose, &screen);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run_servers(args, screen));
    // Processes that still run are killed with their tasks.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn run_servers(args: &Args, screen: Screen) -> anyhow::Result<()> {
    let mut source = Source::new(args.file.clone(), &args.packages, &args.args, &args.namespace)?;
    let text = source.news()?;
    let machine = machine()?;
    let planned = load_plan(&source, text.as_deref(), &machine).await?;
    ensure!(
        !planned.servers.is_empty(),
        "{}nothing to run: it has no MCPServer and no MCPRemoteProxy",
        source.place()
    );
    let mut end = Box::pin(shutdown_signal()?);
    folder::remove_leftovers();
    let mut session = Session { source, machine, screen, servers: Servers::default() };
    let result = tokio::select! {
        result = session.run(planned) => result,
        () = &mut end => {
            // The terminal may be closed.
            session.screen.wait_for("");
            session.screen.print("\nStopping. Press Ctrl-C again to stop at once.\n").ok();
            Ok(())
        }
    };
    tokio::select! {
        () = session.servers.end_all() => {}
        () = tokio::time::sleep(END) => {}
        // A second signal.
        () = shutdown_signal()? => {}
    }
    session.servers.remove_containers().await;
    result
}

/// The running servers, and where they come from.
struct Session {
    source: Source,
    machine: Machine,
    screen: Screen,
    servers: Servers,
}

impl Session {
    /// Runs the servers, and prints their states.
    async fn run(&mut self, planned: Plan) -> anyhow::Result<()> {
        self.apply(planned).await?;
        if self.servers.is_empty() {
            bail!("{}", self.servers.problems().join("; "));
        }
        loop {
            let rows = self.servers.rows();
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            self.screen.print(&format!("Starting {}. Press Ctrl-C to stop.\n\n", names.join(", ")))?;
            let table = Table::new(&rows, self.screen.width());
            self.screen.print(&table.head())?;
            self.watch(&table).await?;
        }
    }

    /// Adds rows to the table until the file changes.
    async fn watch(&mut self, table: &Table) -> anyhow::Result<()> {
        let (mut printed, mut enough) = (false, 0);
        for turn in 1u32.. {
            tokio::time::sleep(LOOK).await;
            for row in self.servers.news() {
                self.screen.print(&table.row(&row))?;
            }
            let pending = self.servers.pending();
            self.screen.wait_for(&waiting(&pending, LOOK * turn));
            enough = if pending.len() < self.servers.rows().len() { enough + 1 } else { 0 };
            if !printed && (pending.is_empty() || enough >= ENOUGH) {
                self.screen.print(&table::for_clients(&self.servers.rows()))?;
                printed = true;
            }
            if turn % READ == 0 && self.reload().await? {
                break;
            }
        }
        Ok(())
    }

    /// Reloads the file if it changed. An unreadable or invalid file changes nothing.
    async fn reload(&mut self) -> anyhow::Result<bool> {
        // An editor may be replacing it.
        let Ok(Some(text)) = self.source.news() else { return Ok(false) };
        match load_plan(&self.source, Some(&text), &self.machine).await {
            Ok(planned) => {
                self.screen.print(&format!("\n{}changed, reloading\n", self.source.place()))?;
                self.apply(planned).await?;
                Ok(true)
            }
            Err(error) => {
                self.screen.print(&format!("{error:#}; running servers are not changed\n"))?;
                Ok(false)
            }
        }
    }

    /// Applies a plan, and prints warnings about its objects.
    async fn apply(&mut self, Plan { servers: planned, left_out }: Plan) -> anyhow::Result<()> {
        for line in left_out {
            self.screen.print(&format!("{line}\n"))?;
        }
        for Planned { owner, warnings, .. } in &planned {
            for warning in warnings {
                self.screen.print(&format!("{owner}: {warning}\n"))?;
            }
        }
        let engines = self.machine.engines.as_deref().unwrap_or_default();
        self.servers.apply(planned, engines).await;
        let leftovers = std::mem::take(&mut self.servers.leftovers);
        if leftovers > 0 {
            self.screen.print(&format!("Removed containers of an earlier skep run: {leftovers}\n"))?;
        }
        Ok(())
    }
}

/// The line that shows what is waited for.
fn waiting(pending: &[Row], time: Duration) -> String {
    let names: Vec<&str> = pending.iter().map(|row| row.name.as_str()).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("Waiting for {} ({} s)", names.join(", "), time.as_secs())
    }
}

fn machine() -> anyhow::Result<Machine> {
    let program = env::current_exe().context("cannot find the program itself")?;
    let engines = engine::sockets(|name| env::var(name).ok());
    Ok(Machine { program: program.to_string_lossy().into_owned(), engines })
}

/// The servers of a file.
struct Plan {
    servers: Vec<Planned>,
    /// Messages about objects that do not run here.
    left_out: Vec<String>,
}

async fn load_plan(source: &Source, text: Option<&str>, machine: &Machine) -> anyhow::Result<Plan> {
    let manifests = Arc::new(source.manifests(text)?);
    let settings = Settings { proxy_host: "127.0.0.1".into(), ..Settings::default() };
    let rendered = render(manifests.objects.clone(), settings)
        .await
        .map_err(|error| anyhow::anyhow!("{}{error}", manifests.place_of(&error)))?;
    Ok(Plan { servers: plan(&manifests, &rendered, machine), left_out: left_out(&rendered) })
}

/// Completes when the process gets a signal to terminate.
fn shutdown_signal() -> io::Result<impl Future<Output = ()>> {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let mut signals = signals.into_iter().collect::<io::Result<Vec<_>>>()?;
    Ok(async move {
        select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    })
}
