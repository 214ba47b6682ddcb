//! Measures an operator against a bare client that writes the same objects, each on a control plane of its own.

mod bare;
mod operator;
mod report;
mod servers;
mod soak;
mod writes;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use skep_bench_harness::{busy, ended};
use skep_testkit::ControlPlane;

use operator::Operator;
use report::{Bare, Report};

/// How many requests are in flight at once: as many as `skep operator` has workers.
const AT_ONCE: usize = 8;

/// How many servers are created as a warm-up of the API server.
const WARM_UP: usize = 20;

/// Measure `skep operator` against a bare client that writes the same objects.
///
/// It starts a separate control plane for each of them, which only this machine can reach, and ends it. For each operator it takes
/// about 80 seconds and the time to create all servers twice, which may be 60 seconds and half a second per server at
/// most. It measures and does not judge: it fails only if something does not run.
#[derive(Parser)]
struct Args {
    /// The number of MCPServers.
    #[arg(short, long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    servers: u32,

    /// The skep program to measure. It should be a release build.
    #[arg(long, value_name = "FILE", default_value = "target/release/skep")]
    skep: PathBuf,

    /// The command line of another operator to measure beside it. It finds KUBECONFIG and WATCH_NAMESPACE in its
    /// environment, and gets --metrics-bind-address and --health-probe-bind-address added.
    #[arg(long, value_name = "COMMAND LINE", default_value = "")]
    operator: String,

    /// Instead, change servers and configurations for so many minutes, restart the API server every ten, and print once a
    /// minute what skep holds.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u32).range(1..=600))]
    soak: Option<u32>,
}

#[tokio::main]
async fn main() -> ExitCode {
    ended(run(Args::parse()).await)
}

async fn run(args: Args) -> Result<()> {
    ensure!(args.skep.is_file(), "{} does not exist: run `make build`", args.skep.display());
    let servers = usize::try_from(args.servers)?;
    let busy = busy(Duration::from_secs(2)).await?;
    if let Some(minutes) = args.soak {
        let operator = Operator::new("skep", format!("{} operator", args.skep.display()));
        return soak::run(&mut control_plane().await?, &operator, minutes).await;
    }

    // Before and after, because what else the machine does changes meanwhile.
    let before = measure_bare(servers).await?;
    let mut operators = vec![Operator::new("skep", format!("{} operator", args.skep.display()))];
    if !args.operator.trim().is_empty() {
        operators.push(Operator::new("other", args.operator));
    }
    let mut results = Vec::new();
    for operator in &operators {
        let plane = warm_control_plane(servers).await?;
        print_progress(&format!("{} reconciles {servers} servers", operator.name));
        let result = operator.measure(&plane, servers).await;
        // A long run that is interrupted has printed its results so far.
        if let Ok(figures) = &result {
            print_progress(&figures.to_string());
        }
        results.push((operator.name, result));
    }
    let after = measure_bare(servers).await?;

    let mut failure = None;
    let mut measured = Vec::new();
    for (name, result) in results {
        match result {
            Ok(figures) => measured.push((name, figures)),
            Err(error) => failure = Some(error.context(format!("{name} was not measured to the end"))),
        }
    }
    print!("{}", Report { servers, busy, bare: Bare { before, after }, operators: measured });
    failure.map_or(Ok(()), Err)
}

async fn measure_bare(servers: usize) -> Result<bare::Figures> {
    let plane = warm_control_plane(servers).await?;
    print_progress(&format!("The bare client creates {servers} servers"));
    let figures = bare::measure(&plane, servers).await?;
    print_progress(&figures.to_string());
    Ok(figures)
}

/// A control plane that has created a few servers. Each contender has a new one: an API server becomes slower with all that it
/// holds. For each new Service it lists the addresses of all others, also those in other namespaces.
async fn warm_control_plane(servers: usize) -> Result<ControlPlane> {
    let plane = control_plane().await?;
    bare::measure(&plane, WARM_UP.min(servers)).await?;
    Ok(plane)
}

async fn control_plane() -> Result<ControlPlane> {
    print_progress("Starting a control plane");
    ControlPlane::try_start().await.context("cannot start a control plane")
}

/// Prints the progress.
fn print_progress(text: &str) {
    eprintln!("==> {text}");
}

/// How long it may take until all servers are reconciled. Long enough for slow operators, but not forever.
fn patience(servers: usize) -> Duration {
    let servers = u32::try_from(servers).unwrap_or(u32::MAX);
    Duration::from_secs(60) + Duration::from_millis(500).saturating_mul(servers)
}
