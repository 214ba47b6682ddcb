//! `skep console`: the servers of a cluster in the browser.

use std::{env, net::SocketAddr, sync::Arc};

use anyhow::Context;
use kube::{Client, Config};
use skep_console::{Access, CallLogs, ClusterAccess, Console, LocalAccess, Objects, Workers, follow, serve};
use tokio::net::TcpListener;
use tracing::info;

use crate::{
    logs,
    signals::{IN_A_POD, shutdown_signal},
};

/// Show the servers of a cluster in the browser.
///
/// On your machine, it shows what your kubeconfig lets you see, on 127.0.0.1, at an address with a token that it prints. In a pod,
/// each user signs in with their own Kubernetes token, and sees what the API server lets them get. skep run has its own console.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  skep console\n  skep console --namespaces team-a --port 9000")]
pub(crate) struct Args {
    /// The namespaces to show, separated by commas. Default: all.
    #[arg(long, env = "WATCH_NAMESPACE", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// The port to listen on. Default: a free one, or 8080 in a pod.
    #[arg(long)]
    port: Option<u16>,
}

/// The port in a pod.
const PORT: u16 = 8080;

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    logs::init(logs::debug(false));
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve_console(args))
}

async fn serve_console(args: Args) -> anyhow::Result<()> {
    let config = Config::infer().await.context("no cluster: run it in one, or set KUBECONFIG")?;
    let shutdown = shutdown_signal()?;
    let (listener, access) = if env::var_os(IN_A_POD).is_some() {
        let address = SocketAddr::from(([0, 0, 0, 0], args.port.unwrap_or(PORT)));
        (listen(address).await?, Access::Cluster(Box::new(ClusterAccess::new(&config))))
    } else {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], args.port.unwrap_or(0)))).await?;
        let address = listener.local_addr()?;
        let access = LocalAccess::new(address.port()).context("the system has no random numbers")?;
        println!("Console: http://{address}/{}", access.fragment());
        (listener, Access::Local(access))
    };
    let namespaces = args.namespaces.into_iter().filter(|name| !name.is_empty()).collect();
    let objects = Arc::new(Objects::default());
    tokio::spawn(follow(Client::try_from(config)?, namespaces, objects.clone()));
    let console = Arc::new(Console::new(objects, Arc::new(CallLogs::default()), access)?);
    info!(address = %listener.local_addr()?, "serving");
    Ok(serve(listener, console, Workers::default(), shutdown).await?)
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}
