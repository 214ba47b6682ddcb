//! `skep vmcp`: the virtual MCP server.

mod init;

use std::{env, fs, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use clap::{Subcommand, value_parser};
use skep_api::vmcp::OutgoingAuth;
use skep_config::env as names;
use skep_vmcp::{Cluster, Extras, Listen, Settings, Workers, serve};
use tokio::net::TcpListener;
use tracing::info;

use init::Init;

use crate::{
    agent,
    authorization_server::{Embedded, pod_extras},
    logs,
    manifests::located,
    signals::{IN_A_POD, drain, shutdown_signal},
    start_up::release_code_afterwards,
};

/// Serve several MCP servers at one address.
///
/// It is configured by a file, which the operator writes for a VirtualMCPServer.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep vmcp serve --config vmcp.yaml\n  skep vmcp validate --config vmcp.yaml\n  skep vmcp init --group team --output vmcp.yaml"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Log details
    #[arg(long, global = true)]
    debug: bool,
    /// The configuration file
    #[arg(long, short, global = true, value_name = "FILE", overrides_with = "config")]
    config: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    Serve(Serve),
    /// Check a configuration file
    Validate,
    /// Write a configuration file for the members of a group
    Init(Init),
    /// Print the version
    Version,
}

#[derive(clap::Args)]
struct Serve {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on
    #[arg(long, default_value_t = 4483, value_parser = value_parser!(u16))]
    port: u16,
    /// Audit requests, also if the configuration has no audit section
    #[arg(long)]
    enable_audit: bool,
    /// How long a session lives without being used, such as 30m
    #[arg(long, value_name = "DURATION", default_value = "0")]
    session_ttl: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Version => {
            println!("{}", std::env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Validate => validate(&settings(args)?.0),
        Command::Init(options) => init::run(options, args.config.as_deref()),
        Command::Serve(options) => {
            let life = session_life(&options.session_ttl)?;
            let (settings, server) = settings(args)?;
            logs::init(logs::debug(args.debug));
            let listen =
                Listen { host: options.host.clone(), session_life: life, audits: options.enable_audit };
            let settings = with_session_secret(with_pages(settings, server.as_ref())?)?;
            serve_until_stopped(settings, server.as_ref(), &listen, options.port)
        }
    }
}

fn serve_until_stopped(
    settings: Settings,
    authorization_server: Option<&Arc<Embedded>>,
    listen: &Listen,
    port: u16,
) -> anyhow::Result<()> {
    let workers = Workers::beside_this_thread().context("cannot start threads")?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let host = &*listen.host;
        let listener = TcpListener::bind((host, port))
            .await
            .with_context(|| format!("cannot listen on {host}:{port}"))?;
        let shutdown = shutdown_signal()?;
        if let Some(server) = authorization_server {
            server.check().await?;
        }
        let cluster = cluster(settings.is_discovered())?;
        let server = settings.server(listen, cluster)?;
        server.check().await?;
        info!(address = %listener.local_addr()?, "serving");
        release_code_afterwards();
        let in_a_pod = env::var_os(IN_A_POD).is_some();
        let stop = drain(shutdown, in_a_pod, || server.drain());
        Ok(serve(listener, server.endpoint(), workers, stop).await?)
    })
}

/// The settings with the pages for the console of the cluster and for administrators, in a pod that the operator has
/// started.
fn with_pages(settings: Settings, server: Option<&Arc<Embedded>>) -> anyhow::Result<Settings> {
    let Ok(name) = env::var(names::VMCP_NAME) else { return Ok(settings) };
    let variables = env::vars_os();
    let variables =
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let extras = pod_extras(&variables.collect(), "VirtualMCPServer", &name, server);
    Ok(settings.with_extras(extras)?)
}

/// The settings with the secret that all replicas have, if there is one.
fn with_session_secret(settings: Settings) -> anyhow::Result<Settings> {
    match env::var(names::VMCP_SESSION_KEY) {
        Ok(secret) if !secret.is_empty() => Ok(settings.with_session_secret(&secret)?),
        _ => Ok(settings),
    }
}

/// The cluster that the process runs in, if the operator has started it.
fn cluster(is_needed: bool) -> anyhow::Result<Option<Cluster>> {
    let name = env::var(names::VMCP_NAME).ok();
    if !is_needed && name.is_none() {
        return Ok(None);
    }
    let needs = "outgoingAuth.source: discovered needs a cluster";
    let mut config = kube::Config::incluster().context(needs)?;
    config.headers.push(agent::VMCP);
    let namespace =
        env::var(names::VMCP_NAMESPACE).with_context(|| format!("{needs}: set {}", names::VMCP_NAMESPACE))?;
    Ok(Some(Cluster { client: kube::Client::try_from(config)?, namespace, name }))
}

/// The settings in the file that the command line names, and the authorization server that is configured beside it.
fn settings(args: &Args) -> anyhow::Result<(Settings, Option<Arc<Embedded>>)> {
    let Some(file) = &args.config else { bail!("no configuration file: name one with --config") };
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let settings = Settings::parse(&text).map_err(|errors| located(file, &text, &errors));
    match (settings, Embedded::beside(file)) {
        (Ok(settings), Ok(Some(server))) => {
            let extras = Extras { authorization_server: Some(server.clone()), ..Extras::default() };
            Ok((settings.with_extras(extras)?, Some(server)))
        }
        (Ok(settings), Ok(None)) => Ok((settings, None)),
        (settings, server) => {
            let errors = [settings.err(), server.err()].into_iter().flatten().flatten();
            bail!("invalid configuration:\n{}", errors.collect::<Vec<_>>().join("\n"))
        }
    }
}

fn validate(settings: &Settings) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async { settings.check() })?;
    let config = settings.config();
    println!("name: {}", config.name.as_deref().unwrap_or_default());
    println!("group: {}", config.group_ref.as_deref().unwrap_or_default());
    println!("backends: {}", config.backends.len());
    println!("incoming: {}", config.incoming_auth.as_ref().map(|auth| &*auth.type_).unwrap_or_default());
    println!("outgoing: {}", config.outgoing_auth.as_ref().map(outgoing).unwrap_or_default());
    let aggregation = config.aggregation.as_ref();
    let strategy = aggregation.and_then(|aggregation| aggregation.conflict_resolution).unwrap_or_default();
    println!("conflict resolution: {}", strategy.as_str());
    println!("composite tools: {}", config.composite_tools.len());
    for warning in settings.warnings() {
        println!("warning: {warning}");
    }
    Ok(())
}

/// How the server authenticates to its backends.
fn outgoing(auth: &OutgoingAuth) -> String {
    let strategies = match (auth.backends.len(), &auth.default) {
        (0, None) => "no strategies".to_owned(),
        (0, Some(_)) => "default only".to_owned(),
        (1, _) => "1 backend with a strategy".to_owned(),
        (count, _) => format!("{count} backends with a strategy"),
    };
    format!("{}, {strategies}", auth.source)
}

/// How long sessions live. Zero is the default.
fn session_life(text: &str) -> anyhow::Result<Option<Duration>> {
    if text.starts_with('-') {
        bail!("--session-ttl: {text} is negative");
    }
    let life =
        skep_config::duration::parse(text).map_err(|error| anyhow::anyhow!("--session-ttl: {error}"))?;
    Ok((!life.is_zero()).then_some(life))
}
