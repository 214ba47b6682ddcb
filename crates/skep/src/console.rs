//! `skep console`: the servers of a cluster in the browser.

use std::{env, net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, anyhow, ensure};
use kube::{Client, Config};
use skep_config::env::CALLS_READER;
use skep_console::{
    Access, Account, CallLogs, ClusterAccess, Console, Links, LocalAccess, Login, LoginSettings, Objects,
    Workers, follow, follow_calls, serve,
};
use tokio::net::TcpListener;
use tracing::info;

use crate::{
    agent, logs,
    signals::{IN_A_POD, shutdown_signal},
    start_up::release_code_afterwards,
};

/// Show the servers of a cluster in the browser.
///
/// On your machine, it shows what your kubeconfig lets you see, on 127.0.0.1, at an address with a token that it prints. In a pod,
/// each user signs in with their own Kubernetes token, or logs in at an OpenID provider that the API server trusts, and sees what the
/// API server lets them get. skep run has its own console.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  skep console\n  skep console --namespaces team-a --port 9000")]
pub(crate) struct Args {
    /// The namespaces to show, separated by commas. Default: all.
    #[arg(long, env = "WATCH_NAMESPACE", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// The port to listen on. Default: a free one, or 8080 in a pod.
    #[arg(long)]
    port: Option<u16>,

    #[command(flatten)]
    login: LoginArgs,
}

/// Where users log in.
#[derive(clap::Args)]
struct LoginArgs {
    /// In a pod: the issuer of an OpenID provider where users log in. The API server must accept its ID tokens.
    #[arg(long, value_name = "URL", requires_all = ["oidc_client_id", "public_url"])]
    oidc_issuer: Option<String>,

    /// The client id of the console at the provider. Its secret, if it has one, is in SKEP_CONSOLE_OIDC_CLIENT_SECRET.
    #[arg(long, value_name = "ID", requires = "oidc_issuer")]
    oidc_client_id: Option<String>,

    /// The scopes to request, separated by commas.
    #[arg(
        long,
        value_name = "SCOPES",
        value_delimiter = ',',
        default_value = "openid,email",
        requires = "oidc_issuer"
    )]
    oidc_scopes: Vec<String>,

    /// A file with the certificate authorities of the provider. Default: those of the system.
    #[arg(long, value_name = "FILE", requires = "oidc_issuer")]
    oidc_ca_file: Option<PathBuf>,

    /// The address at which browsers reach the console. The provider sends them back to its path /login/callback.
    #[arg(long, value_name = "URL", requires = "oidc_issuer")]
    public_url: Option<String>,
}

/// The variable with the secret of the console at the provider.
const CLIENT_SECRET: &str = "SKEP_CONSOLE_OIDC_CLIENT_SECRET";

/// The variable with links to dashboards, logs and traces, as a JSON list of {title, url}.
const LINKS: &str = "SKEP_CONSOLE_LINKS";

/// The variable with the ServiceAccount of the console, if it administers sessions of users:
/// `system:serviceaccount:NAMESPACE:NAME`.
const SESSIONS_ADMINISTRATOR: &str = "SKEP_SESSIONS_ADMINISTRATOR";

/// The port in a pod.
const PORT: u16 = 8080;

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    logs::init(logs::debug(false));
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve_console(args))
}

async fn serve_console(args: Args) -> anyhow::Result<()> {
    let mut config = Config::infer().await.context("no cluster: run it in one, or set KUBECONFIG")?;
    config.headers.push(agent::CONSOLE);
    let shutdown = shutdown_signal()?;
    let (listener, access) = if env::var_os(IN_A_POD).is_some() {
        let address = SocketAddr::from(([0, 0, 0, 0], args.port.unwrap_or(PORT)));
        let access = ClusterAccess::new(&config);
        let access = match login(args.login)? {
            Some(login) => access.with_login(login),
            None => access,
        };
        (listen(address).await?, Access::Cluster(Box::new(access)))
    } else {
        ensure!(args.login.oidc_issuer.is_none(), "--oidc-issuer is for a console in a pod");
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], args.port.unwrap_or(0)))).await?;
        let address = listener.local_addr()?;
        let access = LocalAccess::new(address.port()).context("the system has no random numbers")?;
        println!("Console: http://{address}/{}", access.fragment());
        (listener, Access::Local(access))
    };
    let namespaces: Vec<String> = args.namespaces.into_iter().filter(|name| !name.is_empty()).collect();
    let (objects, calls) = (Arc::new(Objects::default()), Arc::new(CallLogs::default()));
    let client = Client::try_from(config)?;
    if let Some(account) = account(CALLS_READER)? {
        tokio::spawn(follow_calls(
            client.clone(),
            namespaces.clone(),
            account,
            objects.clone(),
            calls.clone(),
        ));
    }
    tokio::spawn(follow(client.clone(), namespaces, objects.clone()));
    let console = Console::new(objects, calls, access)?.with_services(client.clone()).with_links(links()?);
    let console = Arc::new(match account(SESSIONS_ADMINISTRATOR)? {
        Some(account) => console.with_administration(client, account)?,
        None => console,
    });
    info!(address = %listener.local_addr()?, "serving");
    release_code_afterwards();
    Ok(serve(listener, console, Workers::default(), shutdown).await?)
}

/// Logins at the provider of the command line.
fn login(args: LoginArgs) -> anyhow::Result<Option<Login>> {
    let Some(issuer) = args.oidc_issuer else { return Ok(None) };
    let settings = LoginSettings {
        issuer,
        client_id: args.oidc_client_id.unwrap_or_default(),
        client_secret: env::var(CLIENT_SECRET).unwrap_or_default(),
        scopes: args.oidc_scopes,
        authorities: args.oidc_ca_file,
        ..LoginSettings::default()
    };
    Login::new(settings, &args.public_url.unwrap_or_default())
        .map(Some)
        .map_err(|error| anyhow!("--oidc-issuer: {error}"))
}

/// The ServiceAccount in a variable, if it is set.
fn account(variable: &str) -> anyhow::Result<Option<Account>> {
    let Ok(subject) = env::var(variable) else { return Ok(None) };
    let account = Account::of_subject(&subject);
    account.with_context(|| format!("{variable} must be system:serviceaccount:NAMESPACE:NAME")).map(Some)
}

/// The links that the chart configures.
fn links() -> anyhow::Result<Links> {
    let Ok(text) = env::var(LINKS) else { return Ok(Links::default()) };
    Links::parse(&text).map_err(|error| anyhow!("{LINKS}: {error}"))
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}
