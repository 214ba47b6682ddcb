//! `skep run`: MCP servers from manifests on this machine, with no cluster.
//!
//! The objects are the operator's, and so is what is computed from them: the RunConfig of each proxy, and the variables
//! and files that its pod would have ([`plan`]). What differs is who runs the servers: processes of this machine, or
//! containers of its engine ([`engine`]), and a proxy for each within this one ([`running`]).

mod attachment;
mod client;
mod engine;
mod findings;
mod folder;
mod found;
mod image;
mod life;
mod logs;
mod place;
mod plan;
mod prepare;
mod process;
mod reach;
mod running;
mod screen;
mod servers;
mod source;
mod table;
mod trial;

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

/// Run MCPServers and MCPRemoteProxies from a file of manifests on this machine, with no cluster.
///
/// Each server runs as a process, by the command line in its annotation skep.dev/local-command, or in a container where
/// Docker or Podman is there, behind a proxy on 127.0.0.1 that does what it would do in a cluster. References to other
/// objects are looked up in the same file. When the file changes, what has changed in it is started again. Ctrl-C ends
/// everything.
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

    /// The namespace of objects that name none.
    #[arg(short, long, default_value = "default")]
    namespace: String,

    /// Log more of what the proxies do. What servers write to their standard error is always logged.
    #[arg(short, long)]
    verbose: bool,
}

/// How often it is looked for news.
const LOOK: Duration = Duration::from_millis(200);
/// How often the file is read, in looks.
const READ: u32 = 5;
/// How long the end may take before it is made short.
const END: Duration = Duration::from_secs(10);
/// How long a line for clients waits for servers that take their time, once one of them is there, in looks.
const ENOUGH: u32 = 25;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let screen = Screen::new();
    logs::init(args.verbose, &screen);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(running(args, screen));
    // Whatever still runs is killed with its task.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn running(args: &Args, screen: Screen) -> anyhow::Result<()> {
    let mut source = Source::new(args.file.clone(), &args.packages, &args.args, &args.namespace)?;
    let text = source.news()?;
    let machine = machine()?;
    let planned = planned(&source, text.as_deref(), &machine).await?;
    ensure!(
        !planned.servers.is_empty(),
        "{}there is nothing to run: no MCPServer and no MCPRemoteProxy is in it",
        source.place()
    );
    let mut end = Box::pin(asked_to_end()?);
    folder::remove_leftovers();
    let mut session = Session { source, machine, screen, servers: Servers::default() };
    let lived = tokio::select! {
        lived = session.live(planned) => lived,
        () = &mut end => {
            // A terminal that was closed cannot be told.
            session.screen.wait_for("");
            session.screen.print("\nEnding. Ctrl-C once more ends it at once.\n").ok();
            Ok(())
        }
    };
    tokio::select! {
        () = session.servers.end_all() => {}
        () = tokio::time::sleep(END) => {}
        // Somebody is in a hurry.
        () = asked_to_end()? => {}
    }
    session.servers.remove_containers().await;
    lived
}

/// Everything between the beginning and the end.
struct Session {
    source: Source,
    machine: Machine,
    screen: Screen,
    servers: Servers,
}

impl Session {
    /// Runs the servers, and tells how they are.
    async fn live(&mut self, planned: Plan) -> anyhow::Result<()> {
        self.turn_into(planned).await?;
        if self.servers.is_empty() {
            bail!("{}", self.servers.problems().join("; "));
        }
        loop {
            let rows = self.servers.rows();
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            self.screen.print(&format!("Starting {}. Ctrl-C ends everything.\n\n", names.join(", ")))?;
            let table = Table::new(&rows, self.screen.width());
            self.screen.print(&table.head())?;
            self.watch(&table).await?;
        }
    }

    /// Adds to the table until the file changes.
    async fn watch(&mut self, table: &Table) -> anyhow::Result<()> {
        let (mut told, mut enough) = (false, 0);
        for turn in 1u32.. {
            tokio::time::sleep(LOOK).await;
            for row in self.servers.news() {
                self.screen.print(&table.row(&row))?;
            }
            let pending = self.servers.pending();
            self.screen.wait_for(&waiting(&pending, LOOK * turn));
            enough = if pending.len() < self.servers.rows().len() { enough + 1 } else { 0 };
            if !told && (pending.is_empty() || enough >= ENOUGH) {
                self.screen.print(&table::for_clients(&self.servers.rows()))?;
                told = true;
            }
            if turn % READ == 0 && self.reload().await? {
                break;
            }
        }
        Ok(())
    }

    /// Takes in a file that has changed. One that cannot be read or understood changes nothing.
    async fn reload(&mut self) -> anyhow::Result<bool> {
        // An editor may be about to put it back.
        let Ok(Some(text)) = self.source.news() else { return Ok(false) };
        match planned(&self.source, Some(&text), &self.machine).await {
            Ok(planned) => {
                self.screen.print(&format!("\n{}it has changed\n", self.source.place()))?;
                self.turn_into(planned).await?;
                Ok(true)
            }
            Err(error) => {
                self.screen.print(&format!("{error:#}; what runs goes on as it is\n"))?;
                Ok(false)
            }
        }
    }

    /// Makes what runs what is planned, and says what is odd about objects.
    async fn turn_into(&mut self, Plan { servers: planned, left_out }: Plan) -> anyhow::Result<()> {
        for line in left_out {
            self.screen.print(&format!("{line}\n"))?;
        }
        for Planned { owner, findings, .. } in &planned {
            for finding in findings {
                self.screen.print(&format!("{owner}: {finding}\n"))?;
            }
        }
        let engines = self.machine.engines.as_deref().unwrap_or_default();
        self.servers.become_(planned, engines).await;
        let leftovers = std::mem::take(&mut self.servers.leftovers);
        if leftovers > 0 {
            self.screen.print(&format!(
                "Containers removed that a skep run before has left behind: {leftovers}\n"
            ))?;
        }
        Ok(())
    }
}

/// A line for people who wait.
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

/// What a file asks for.
struct Plan {
    servers: Vec<Planned>,
    /// What is said of objects that do not run here.
    left_out: Vec<String>,
}

async fn planned(source: &Source, text: Option<&str>, machine: &Machine) -> anyhow::Result<Plan> {
    let manifests = Arc::new(source.manifests(text)?);
    let settings = Settings { proxy_host: "127.0.0.1".into(), ..Settings::default() };
    let rendered = render(manifests.objects.clone(), settings)
        .await
        .map_err(|error| anyhow::anyhow!("{}{error}", manifests.place_of(&error)))?;
    Ok(Plan { servers: plan(&manifests, &rendered, machine), left_out: left_out(&rendered) })
}

/// Done when the process is asked to end.
fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let mut signals = signals.into_iter().collect::<io::Result<Vec<_>>>()?;
    Ok(async move {
        select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    })
}
