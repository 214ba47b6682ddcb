//! `skep run`: MCP servers from manifests on this machine, without a cluster.
//!
//! The operator's own code computes the RunConfig of each proxy, and the variables and files that its pod would have
//! ([`plan`]). Only the runtime differs: servers are processes of this machine or containers of its engine ([`engine`]), and
//! each has a proxy within this process ([`running`]).

mod args;
mod attachment;
mod auth_server;
mod commands;
mod config_sources;
mod console;
mod detach;
mod discovery;
mod engine;
mod expansion;
mod folder;
mod image;
mod lifecycle;
mod listing;
mod logs;
mod machine;
mod plan;
mod prepare;
mod process;
mod reachability;
mod record;
mod running;
mod runs;
mod screen;
mod servers;
mod session;
mod source;
mod state;
mod table;
mod target;
mod variables;
mod virtual_server;
mod warnings;

use std::time::Duration;

use anyhow::Context;
use rustix::process::setsid;

use self::{
    console::RunConsole, machine::Machine, runs::RunFolder, screen::Screen, session::Session, source::Source,
};
use crate::signals::ShutdownSignals;

pub(crate) use self::{
    args::Args,
    commands::{LogsArgs, LsArgs, RmArgs, StopArgs, logs as print_logs, ls, rm, running_servers, stop},
    state::clients_file,
};

/// The timeout of a graceful shutdown.
const END: Duration = Duration::from_secs(10);
/// The timeout of the removal of containers after that. What is left is removed by the next run.
const REMOVAL: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.detach && args.background.is_none() {
        return detach::detach(args);
    }
    if args.background.is_some() {
        // The terminal is not its own any more.
        setsid().ok();
    }
    let screen = Screen::new(args.output);
    logs::init(args.verbose, &screen);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run_servers(args, screen));
    // Processes that still run are killed with their tasks.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// The folder of this run. Without one, a run in the foreground is not listed.
fn run_folder(args: &Args) -> anyhow::Result<Option<RunFolder>> {
    match &args.background {
        Some(name) => {
            RunFolder::resume(name, &args.sources()).map(Some).context("cannot run in the background")
        }
        None => Ok(RunFolder::take(&args.run_name(), &args.sources()).ok()),
    }
}

async fn run_servers(args: &Args, screen: Screen) -> anyhow::Result<()> {
    let mut source = Source::new(&args.files, args.targets()?, &args.namespace)?;
    let texts = source.first()?;
    let machine = Machine::new()?;
    let planned = session::load_plan(&source, &texts, &machine).await?;
    let mut signals = ShutdownSignals::with_hangup()?;
    folder::remove_leftovers();
    let console = match args.no_console {
        true => None,
        false => Some(RunConsole::start(args.console_port, &args.run_name())?),
    };
    let folder = match &console {
        Some(console) => run_folder(args)?.map(|folder| folder.with_console(&console.url)),
        None => run_folder(args)?,
    };
    let mut session = Session::new(source, machine, screen, folder, console);
    let result = tokio::select! {
        result = session.run(planned) => result,
        () = signals.next() => {
            // The terminal may be closed.
            session.screen.wait_for("");
            session.screen.print("\nStopping. Press Ctrl-C again to stop at once.\n").ok();
            Ok(())
        }
    };
    // Each further signal skips a step: the container engine may not respond.
    tokio::select! {
        () = session.end() => {}
        () = tokio::time::sleep(END) => {}
        () = signals.next() => {}
    }
    let are_removed = tokio::select! {
        () = session.servers.remove_containers() => true,
        () = tokio::time::sleep(REMOVAL) => false,
        () = signals.next() => false,
    };
    if !are_removed {
        let message =
            "The container engine does not respond. The next skep run removes containers that are left.\n";
        session.screen.print(message).ok();
    }
    result
}
