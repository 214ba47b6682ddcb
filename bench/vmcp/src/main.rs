//! How fast and how small the virtual server is: beside calling a backend directly, and beside any other program, in one
//! run.
//!
//! Every number is taken on one machine within minutes, so that ratios mean something; the absolute ones do not.

mod backends;
mod calls;
mod memory;
mod setup;
mod starts;

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Parser;
use skep_bench_harness::{Program, ended};

use setup::Setup;

/// Measure the virtual server.
///
/// A program is a command line in which {config} is replaced by its configuration file, and {port} by the port to listen on.
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
    /// How many sessions are started, and never ended.
    #[arg(long, default_value_t = 10_000)]
    sessions: usize,
    /// How long to wait before memory is measured again, in seconds.
    #[arg(long, default_value_t = 0)]
    rest: u64,
    /// The virtual server to measure.
    #[arg(
        long,
        default_value = "target/release/skep vmcp serve --config {config} --host 127.0.0.1 --port {port}"
    )]
    skep: String,
    /// Another program to measure, as NAME=COMMAND. May be given more than once.
    #[arg(long)]
    other: Vec<Program>,
    /// Be this many backends: used by the program itself.
    #[arg(long, hide = true)]
    serve: Option<usize>,
    /// The last of them is slow.
    #[arg(long, hide = true)]
    slow: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    ended(run(Args::parse()).await)
}

async fn run(args: Args) -> Result<()> {
    if let Some(count) = args.serve {
        return backends::serve(count, args.slow).await;
    }
    let programs = Program::skep_and(&args.other, &args.skep);
    println!("Calls, by {} connections in sessions of their own\n", args.connections);
    let time = Duration::from_secs(args.seconds);
    calls::print(&programs, args.connections, args.turns, time).await?;
    println!("\nStarting: the medians of {} sessions\n", starts::SESSIONS);
    starts::print(&programs).await?;
    println!("\nMemory in MB, with {} sessions that are never ended\n", args.sessions);
    memory::print(&programs, args.sessions, Duration::from_secs(args.rest)).await?;
    Ok(())
}

/// All setups that are measured.
const SETUPS: [Setup; 3] = [
    Setup { title: "1 backend", backends: 1, slow: false },
    Setup { title: "20 backends", backends: 20, slow: false },
    Setup { title: "20, one slow", backends: 20, slow: true },
];
