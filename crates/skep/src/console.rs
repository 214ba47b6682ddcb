//! `skep console`: the servers of a cluster in the browser.

use std::{env, net::SocketAddr, sync::Arc};

use anyhow::{Context, anyhow};
use kube::{Client, Config};
use skep_config::env::CALLS_READER;
use skep_console::{
    Access, Account, CallLogs, ClusterAccess, Console, Links, LocalAccess, Objects, Workers, follow,
    follow_calls, serve,
};
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

/// The variable with links to dashboards, logs and traces, as a JSON list of {title, url}.
const LINKS: &str = "SKEP_CONSOLE_LINKS";

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
    let namespaces: Vec<String> = args.namespaces.into_iter().filter(|name| !name.is_empty()).collect();
    let (objects, calls) = (Arc::new(Objects::default()), Arc::new(CallLogs::default()));
    let client = Client::try_from(config)?;
    if let Some(account) = calls_reader()? {
        tokio::spawn(follow_calls(
            client.clone(),
            namespaces.clone(),
            account,
            objects.clone(),
            calls.clone(),
        ));
    }
    tokio::spawn(follow(client.clone(), namespaces, objects.clone()));
    let console = Console::new(objects, calls, access)?.with_services(client).with_links(links()?);
    let console = Arc::new(console);
    info!(address = %listener.local_addr()?, "serving");
    Ok(serve(listener, console, Workers::default(), shutdown).await?)
}

/// The ServiceAccount of the console, if proxies let it read their calls.
fn calls_reader() -> anyhow::Result<Option<Account>> {
    let Ok(subject) = env::var(CALLS_READER) else { return Ok(None) };
    let account = Account::of_subject(&subject);
    account.with_context(|| format!("{CALLS_READER} must be system:serviceaccount:NAMESPACE:NAME")).map(Some)
}

/// The links that the chart configures.
fn links() -> anyhow::Result<Links> {
    let Ok(text) = env::var(LINKS) else { return Ok(Links::default()) };
    Links::parse(&text).map_err(|error| anyhow!("{LINKS}: {error}"))
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}
