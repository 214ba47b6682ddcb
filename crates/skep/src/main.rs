//! The skep binary.

mod crds;

use clap::{Parser, Subcommand};

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
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Crds(args) => crds::run(&args),
    }
}
