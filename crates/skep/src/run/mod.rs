//! `skep run`: MCP servers from manifests on this machine, with no cluster.
//!
//! The objects are the operator's, and so is what is computed from them: the RunConfig of each proxy, and the variables
//! and files that its pod would have ([`plan`]). What differs is who runs the servers: processes of this machine, and a
//! proxy for each within this one ([`running`]).

mod client;
mod findings;
mod folder;
mod found;
mod plan;
mod prepare;
mod process;
mod running;
mod servers;
mod source;
mod table;
mod trial;

use std::{env, io, path::PathBuf, time::Duration};

use anyhow::{Context, bail, ensure};
use futures::future::select_all;
use kube::core::DynamicObject;
use skep_operator::{render::render, settings::Settings};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use self::{
    plan::{Planned, plan},
    servers::Servers,
    source::Source,
};
use crate::output::print;

/// Run MCPServers and MCPRemoteProxies from a file of manifests on this machine, with no cluster.
///
/// Each server runs as a process, by the command line in its annotation skep.dev/local-command, behind a proxy on
/// 127.0.0.1 that does what it would do in a cluster. References to other objects are looked up in the same file. When the
/// file changes, what has changed in it is started again. Ctrl-C ends everything.
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

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // What a server complains about is what its user looks for.
    let level = if args.verbose { "info" } else { "warn,server=info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let logs = tracing_subscriber::fmt().with_writer(io::stderr).with_ansi(false).without_time();
    logs.with_env_filter(filter).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(running(args));
    // Whatever still runs is killed with its task.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn running(args: &Args) -> anyhow::Result<()> {
    let mut source = Source::new(args.file.clone(), &args.packages, &args.args, &args.namespace)?;
    let text = source.news()?;
    let planned = planned(&source, text.as_deref()).await?;
    let place = place(&source);
    ensure!(
        !planned.is_empty(),
        "{place}there is nothing to run: no MCPServer and no MCPRemoteProxy is in it"
    );
    let mut end = Box::pin(asked_to_end()?);
    let mut servers = Servers::default();
    tell(&planned)?;
    let begun = tokio::select! {
        () = servers.become_(planned) => true,
        () = &mut end => false,
    };
    if !begun {
        return Ok(());
    }
    if servers.is_empty() {
        bail!("{place}{}", servers.problems().join("; "));
    }
    print("Ctrl-C ends everything. Waiting for the servers:\n")?;
    let mut told = false;
    for turn in 1u32.. {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = &mut end => break,
        }
        for row in servers.news() {
            print(&table::line(&row))?;
        }
        if !told && servers.settled() {
            print(&table::table(&servers.rows()))?;
            told = true;
        }
        if turn % READ == 0 {
            tokio::select! {
                reloaded = reload(&mut source, &mut servers) => told = told && !reloaded?,
                () = &mut end => break,
            }
        }
    }
    print("\nEnding.\n")?;
    tokio::select! {
        () = servers.end_all() => {}
        () = tokio::time::sleep(END) => {}
        // Somebody is in a hurry.
        () = asked_to_end()? => {}
    }
    Ok(())
}

/// Takes in a file that has changed. One that cannot be read or understood changes nothing.
async fn reload(source: &mut Source, servers: &mut Servers) -> anyhow::Result<bool> {
    // An editor may be about to put it back.
    let Ok(Some(text)) = source.news() else { return Ok(false) };
    match planned(source, Some(&text)).await {
        Ok(planned) => {
            print(&format!("{}it has changed\n", place(source)))?;
            tell(&planned)?;
            servers.become_(planned).await;
            for problem in servers.problems() {
                print(&format!("{problem}; what runs goes on as it is\n"))?;
            }
            Ok(true)
        }
        Err(error) => {
            print(&format!("{error:#}; what runs goes on as it is\n"))?;
            Ok(false)
        }
    }
}

async fn planned(source: &Source, text: Option<&str>) -> anyhow::Result<Vec<Planned>> {
    let objects: Vec<DynamicObject> = source.objects(text)?;
    let settings = Settings { proxy_host: "127.0.0.1".into(), ..Settings::default() };
    let rendered = render(objects.clone(), settings)
        .await
        .map_err(|error| anyhow::anyhow!("{}{error}", place(source)))?;
    let program = env::current_exe().context("cannot find the program itself")?;
    Ok(plan(&objects, &rendered, &program.to_string_lossy()))
}

fn place(source: &Source) -> String {
    source.file.as_ref().map(|file| format!("{}: ", file.display())).unwrap_or_default()
}

/// Says what is odd about objects.
fn tell(planned: &[Planned]) -> anyhow::Result<()> {
    for Planned { owner, findings, .. } in planned {
        for finding in findings {
            print(&format!("{owner}: {finding}\n"))?;
        }
    }
    Ok(())
}

/// Done when the process is asked to end.
fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let mut signals = signals.into_iter().collect::<io::Result<Vec<_>>>()?;
    Ok(async move {
        select_all(signals.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    })
}
