//! How many logins and refreshes an authorization server has in a second, and how much memory strangers can make it take:
//! that of a virtual server, and that of any other program, in one run.
//!
//! Limits hold for each address and each client. So there are many of both: each client is at an address of its own within
//! 127.0.0.0/8.

mod flow;
mod memory;
mod peer;
mod provider;
mod rates;
mod started;

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Parser;
use skep_bench_harness::{Program, ended};

/// Measure an authorization server.
///
/// A program is a command line in which {config} is replaced by its configuration file, beside which is
/// authserver-config.yaml, and {port} by the port to listen on.
#[derive(Parser)]
struct Args {
    /// How many logins or refreshes there are at once.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How many turns each has. The median counts, because the load of the machine varies.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    turns: u32,
    /// How long a turn is, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// How many clients register, before memory is measured.
    #[arg(long, default_value_t = 100_000)]
    clients: usize,
    /// How many logins begin and never end, before memory is measured again.
    #[arg(long, default_value_t = 100_000)]
    logins: usize,
    /// How long to wait before memory is measured once more, in seconds. Logins end after ten minutes.
    #[arg(long, default_value_t = 0)]
    rest: u64,
    /// The authorization server to measure.
    #[arg(
        long,
        default_value = "target/release/skep vmcp serve --config {config} --host 127.0.0.1 --port {port}"
    )]
    skep: String,
    /// Another program to measure, as NAME=COMMAND. May be given more than once.
    #[arg(long)]
    other: Vec<Program>,
    /// Be the identity provider: used by the program itself.
    #[arg(long, hide = true)]
    serve: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    ended(run(Args::parse()).await)
}

async fn run(args: Args) -> Result<()> {
    if args.serve {
        return provider::serve().await;
    }
    let programs = Program::skep_and(&args.other, &args.skep);
    println!("Logins and refreshes in a second, {} at once\n", args.connections);
    rates::print(&programs, args.connections, args.turns, Duration::from_secs(args.seconds)).await?;
    println!(
        "\nMemory in MB: {} clients register, then {} logins begin and never end\n",
        args.clients, args.logins
    );
    memory::print(&programs, args.clients, args.logins, Duration::from_secs(args.rest)).await
}
