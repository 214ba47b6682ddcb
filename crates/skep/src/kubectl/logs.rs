//! `kubectl skep logs`: the logs of the pods in front of a server.

use std::process::ExitCode;

use futures::{AsyncBufReadExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::LogParams};

use super::forward::pods;
use crate::{
    cluster::Cluster,
    output::{plain, print},
};

/// Show the log of the proxy, or of the virtual server.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The name of the server.
    name: String,

    /// Go on with what is logged from now on.
    #[arg(short, long)]
    follow: bool,

    /// How many of the last lines of each pod are shown.
    #[arg(long, default_value_t = 100)]
    tail: i64,
}

pub(super) async fn run(cluster: &Cluster, args: &Args) -> anyhow::Result<ExitCode> {
    let object = cluster.server(&args.name).await?;
    let pods = pods(cluster, &object).await?;
    let logs = pods.iter().map(|pod| print_log(cluster, args, pod, pods.len() > 1));
    futures::future::try_join_all(logs).await?;
    Ok(ExitCode::SUCCESS)
}

async fn print_log(cluster: &Cluster, args: &Args, pod: &Pod, is_named: bool) -> anyhow::Result<()> {
    let api: Api<Pod> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
    let params = LogParams { follow: args.follow, tail_lines: Some(args.tail), ..LogParams::default() };
    let name = pod.name_any();
    let mut lines = api.log_stream(&name, &params).await?.lines();
    while let Some(line) = lines.try_next().await? {
        let line = plain(&line);
        print(&if is_named { format!("{name}: {line}\n") } else { format!("{line}\n") })?;
    }
    Ok(())
}
