//! A real one-node Kubernetes on this machine, with the operator and the proxies in it, driven as a user would.
//!
//! The node has its own namespaces of the kernel for processes, mounts and the network: see [`outside`]. So nothing of
//! it is seen by, or sees, another cluster on the machine, and when its first process ends, the kernel ends all of it.

mod call;
mod cases;
mod helm;
mod kubectl;
mod manifests;
mod migration;
mod node;
mod nodes;
mod outside;
mod pki;
mod podman;
mod programs;
mod shell;
mod skep_run;
mod stopwatch;
mod timeline;

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;

/// Run the end-to-end cases. `make e2e` passes everything that is needed.
#[derive(Parser)]
#[command(name = "skep-e2e")]
struct Args {
    /// The folder of etcd, kubelet and so on: hack/programs --all.
    #[arg(long)]
    programs: PathBuf,
    /// The folder of containerd and so on: hack/programs --node.
    #[arg(long)]
    node_programs: PathBuf,
    /// The folder of nft and runc: hack/packages.
    #[arg(long)]
    packages: PathBuf,
    /// The folder of podman and what it calls: hack/packages --podman.
    #[arg(long)]
    podman: PathBuf,
    /// The folder of the SDK of MCP for JavaScript: hack/npm sdk.
    #[arg(long)]
    sdk: PathBuf,
    /// The folder of the packages that drive a browser: hack/npm browser.
    #[arg(long)]
    browser: PathBuf,
    /// The folder of Chromium: hack/packages --chromium.
    #[arg(long)]
    chromium: PathBuf,
    /// Where screenshots of the console are written, if they are wanted.
    #[arg(long)]
    screenshots: Option<PathBuf>,
    /// How many further servers the browser is shown, without pods.
    #[arg(long, default_value_t = 0)]
    servers: usize,
    /// The folder of image archives: hack/image.
    #[arg(long)]
    images: PathBuf,
    /// The program helm: hack/helm.
    #[arg(long)]
    helm: PathBuf,
    /// The program redis-server: hack/redis.
    #[arg(long)]
    redis: PathBuf,
    /// The sources of ToolHive, whose charts are installed first: make migration.
    #[arg(long, conflicts_with = "shell", conflicts_with = "only")]
    toolhive: Option<PathBuf>,
    /// A folder with what ToolHive's operator wrote, which is migrated instead, or on one more node.
    #[arg(long, conflicts_with = "shell", conflicts_with = "only", conflicts_with = "toolhive")]
    recording: Option<PathBuf>,
    /// Run the cases on this many nodes at the same time.
    #[arg(long, conflicts_with = "shell", conflicts_with = "only", conflicts_with = "toolhive")]
    nodes: Option<usize>,
    /// The folder of nodes that share the cases.
    #[arg(long, hide = true)]
    shared: Option<PathBuf>,
    /// Where the logs of the node's programs stay.
    #[arg(long)]
    logs: PathBuf,
    /// The folder of the node. The program creates and removes it, and starts itself again inside the namespaces.
    #[arg(long, hide = true)]
    inside: Option<PathBuf>,
    /// Start a shell beside the node instead of running cases: make node.
    #[arg(long, conflicts_with = "only")]
    shell: bool,
    /// Only the cases whose name has this.
    only: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.inside {
        Some(folder) if args.shell => shell::run(&args, folder),
        Some(folder) if args.toolhive.is_some() || args.recording.is_some() => migration::run(&args, folder),
        Some(folder) => cases::run(&args, folder),
        None => match args.nodes {
            Some(count) => nodes::run(&args, count),
            None => outside::run(&args),
        },
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
