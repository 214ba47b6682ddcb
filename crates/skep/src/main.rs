//! The skep binary.

mod crds;
mod demo_server;
mod logs;
mod manifests;
mod operator;
mod output;
mod proxy;
mod render;
mod run;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{Parser, Subcommand};

/// What ToolHive's image of the proxy is started as.
const PROXY_RUNNER: &str = "thv-proxyrunner";

/// Runs MCP servers on Kubernetes.
#[derive(Parser)]
#[command(name = "skep", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Crds(crds::Args),
    DemoServer(demo_server::Args),
    Operator(operator::Args),
    Proxy(proxy::Args),
    Render(render::Args),
    Run(run::Args),
}

/// The command line. Called by the name of the proxy that a Deployment starts, it is that program.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let called = words.first().and_then(|path| Path::new(path).file_name());
    if called.is_some_and(|name| name == PROXY_RUNNER) {
        words.splice(..1, ["skep".into(), "proxy".into()]);
    }
    words
}

fn main() -> ExitCode {
    let result = match Cli::parse_from(words()).command {
        Command::Crds(args) => crds::run(&args),
        Command::DemoServer(_) => demo_server::run(),
        Command::Operator(args) => operator::run(args),
        Command::Proxy(args) => proxy::run(args),
        Command::Render(args) => render::run(&args),
        Command::Run(args) => run::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One sentence for people; where in the program it came from helps nobody who reads it.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
