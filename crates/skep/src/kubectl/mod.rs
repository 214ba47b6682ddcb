//! `kubectl skep`: a plugin of kubectl, which finds this program under the name `kubectl-skep`.

mod administration;
mod call;
mod clients;
mod forward;
mod logs;
mod sessions;
mod status;
mod tools;

use std::process::ExitCode;

use clap::Subcommand;

use crate::{
    cluster::{Cluster, ClusterArgs},
    explain,
};

/// The name that kubectl looks for.
pub(crate) const PLUGIN: &str = "kubectl-skep";

/// Look at MCP servers in a cluster, and call their tools: a plugin of kubectl.
///
/// kubectl finds it as kubectl skep if this program is on the path under the name kubectl-skep.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ln -s \"$(command -v skep)\" ~/.local/bin/kubectl-skep\n  kubectl skep status -A\n  kubectl skep tools fetch\n  kubectl skep call fetch fetch_url --arguments '{\"url\": \"https://example.com\"}'"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Subcommand)]
enum Command {
    Status(status::Args),
    Tools(tools::Args),
    Call(call::Args),
    Logs(logs::Args),
    Sessions(sessions::Args),
    Clients(clients::Args),
    Explain(explain::LiveArgs),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = Cluster::connect(&args.cluster).await?;
        match &args.command {
            Command::Status(args) => status::run(&cluster, args).await,
            Command::Tools(args) => tools::run(&cluster, args).await,
            Command::Call(args) => call::run(&cluster, args).await,
            Command::Logs(args) => logs::run(&cluster, args).await,
            Command::Sessions(args) => sessions::run(&cluster, args).await,
            Command::Clients(args) => clients::run(&cluster, args).await,
            Command::Explain(args) => explain::run_live(&cluster, args).await,
        }
    })
}
