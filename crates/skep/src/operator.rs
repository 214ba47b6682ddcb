//! `skep operator`: the controllers.

use std::{
    env,
    ffi::OsString,
    net::{SocketAddr, UdpSocket},
};

use anyhow::Context;
use kube::Config;
use skep_operator::{
    run::{self, Election, Options},
    settings::Settings,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::logs;

const EXAMPLES: &str = "\
Examples:
  skep operator
  skep operator --namespaces team-a,team-b --workers 4
  skep operator --observe";

/// The variables that are read, as docs/operations.md has them.
const ENVIRONMENT: &str = "\
Environment:
  WATCH_NAMESPACE                           as --namespaces
  SKEP_OBSERVE                              true: as --observe
  TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR  true: as --migrate-storage-versions
  POD_NAMESPACE                             the namespace of the Lease of --leader-elect
  TOOLHIVE_RUNNER_IMAGE                     the image of proxies
  SKEP_QUICK_PROXIES                        true: that image starts at once, so ask it at once whether it is ready
  VMCP_IMAGE                                the image of virtual MCP servers
  TOOLHIVE_REGISTRY_API_IMAGE               the image of registry servers
  TOOLHIVE_PROXY_HOST                       the address that proxies listen on
  TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS       Secrets for pulling every image, separated by commas
  TOOLHIVE_DEFAULT_REDIS_ADDR               the Redis of servers that name none
  TOOLHIVE_DEFAULT_REDIS_SECRET_NAME        the Secret with its password
  TOOLHIVE_DEFAULT_REDIS_SECRET_KEY         the key in that Secret: redis-password
  OPERATOR_OPENSHIFT                        whether this is OpenShift; without it, the API server is asked
  UNSTRUCTURED_LOGS                         true: a log for people instead of JSON
  RUST_LOG                                  what is logged: info
";

/// Run the operator: turn custom resources into running MCP servers.
///
/// It talks to the cluster that it runs in, or to the one of your kubeconfig. What holds for all objects comes from
/// environment variables, by the names that ToolHive's chart sets where it has them; --help lists them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{ENVIRONMENT}\n{EXAMPLES}"))]
pub(crate) struct Args {
    /// The namespaces to work in, separated by commas. Without it, all of them.
    #[arg(long, env = "WATCH_NAMESPACE", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// How many objects are worked on at once.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,

    /// Where Prometheus collects metrics.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", value_parser = address)]
    metrics_bind_address: SocketAddr,

    /// Where the kubelet asks how it goes: /healthz and /readyz.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", value_parser = address)]
    health_probe_bind_address: SocketAddr,

    /// Let several replicas agree on one that writes, by a Lease in POD_NAMESPACE.
    #[arg(long)]
    leader_elect: bool,

    /// Let the API server store every object anew in the version that its CRD stores by now, and cut the CRD's
    /// storedVersions down to it, so that an older version can be dropped. It needs rights in the whole cluster.
    /// TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR=true does the same.
    #[arg(long)]
    migrate_storage_versions: bool,

    /// Write nothing: tell by logs and metrics what would be written, beside the operator that is in charge. It takes no
    /// Lease and migrates nothing. It must be allowed what the operator is, because it asks the API server to try each
    /// write (dryRun=All). SKEP_OBSERVE=true does the same.
    #[arg(long)]
    observe: bool,
}

/// The Lease that replicas agree by: the one that the incumbent uses, so that the two never write at once.
const LEASE: &str = "toolhive-operator-leader-election";

/// The variable that charts for this API set.
const MIGRATE: &str = "TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR";

/// The variable with which a chart for the operator can have it observe.
const OBSERVE: &str = "SKEP_OBSERVE";

pub(crate) fn run(mut args: Args) -> anyhow::Result<()> {
    args.observe |= switch(OBSERVE, env::var_os(OBSERVE))?;
    args.migrate_storage_versions |= switch(MIGRATE, env::var_os(MIGRATE))?;
    logs::init_operator();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let config = Config::infer().await.context("no cluster: run it in one, or set KUBECONFIG")?;
        let (stop, stopped) = watch::channel(false);
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.send_replace(true);
        });
        let options = options(args, &config);
        Ok(run::run(config, options, stopped).await?)
    })
}

fn options(args: Args, config: &Config) -> Options {
    let election = args.leader_elect.then(|| Election {
        namespace: env::var("POD_NAMESPACE").unwrap_or_else(|_| config.default_namespace.clone()),
        lease: LEASE.into(),
        identity: identity(),
    });
    Options {
        namespaces: args
            .namespaces
            .iter()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        workers: args.workers.into(),
        election,
        metrics: args.metrics_bind_address,
        health: args.health_probe_bind_address,
        migrate: args.migrate_storage_versions,
        observe: args.observe,
        settings: Settings::from_env(&env::vars().collect()),
    }
}

/// A variable that turns something on, as Go programs read it. One that is there must say yes or no.
fn switch(name: &str, value: Option<OsString>) -> anyhow::Result<bool> {
    let Some(value) = value else { return Ok(false) };
    match value.to_string_lossy().as_ref() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => anyhow::bail!("{name} is {other:?}: set it to true or false, or leave it out"),
    }
}

/// A pod's host name is its own; the process tells two apart that share one.
fn identity() -> String {
    let host = env::var("HOSTNAME").unwrap_or_else(|_| "skep".into());
    format!("{host}-{}", std::process::id())
}

/// An address as Go programs take it, where a port alone means every address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') { format!("{}{text}", everywhere()) } else { text.to_owned() };
    full.parse().map_err(|_| "write host:port, or :port for all addresses".to_owned())
}

/// The host that stands for all addresses: of IPv6, which takes connections of IPv4 as well, where the machine has it.
fn everywhere() -> &'static str {
    if UdpSocket::bind("[::]:0").is_ok() { "[::]" } else { "0.0.0.0" }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_port_alone_is_reached_by_every_family_of_addresses_that_the_machine_has() {
        let listener = TcpListener::bind(address(":0").unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "::1"] {
            if UdpSocket::bind((host, 0)).is_ok() {
                TcpStream::connect((host, port)).unwrap_or_else(|error| panic!("{host}: {error}"));
            }
        }
        assert_eq!(address("127.0.0.1:80").unwrap(), ([127, 0, 0, 1], 80).into());
        assert_eq!(address("[::1]:80").unwrap().to_string(), "[::1]:80");
        assert!(address("80").is_err());
    }

    #[test]
    fn a_switch_says_yes_or_no_or_is_not_there() {
        let read = |value: Option<&str>| switch("SWITCH", value.map(Into::into));
        assert!(!read(None).unwrap());
        assert!(["1", "t", "T", "true", "TRUE", "True"].into_iter().all(|yes| read(Some(yes)).unwrap()));
        assert!(!["0", "f", "F", "false", "FALSE", "False"].into_iter().any(|no| read(Some(no)).unwrap()));
        for wrong in ["", " ", "yes", "tRUE", "true "] {
            let message = read(Some(wrong)).unwrap_err().to_string();
            assert_eq!(message, format!("SWITCH is {wrong:?}: set it to true or false, or leave it out"));
        }
    }
}
