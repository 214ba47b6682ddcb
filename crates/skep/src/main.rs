//! The skep binary.

mod crds;
mod operator;
mod output;
mod render;

use std::process::ExitCode;

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
    Operator(operator::Args),
    Render(render::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Crds(args) => crds::run(&args),
        Command::Operator(args) => operator::run(args),
        Command::Render(args) => render::run(&args),
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
