//! `skep operator`: the controllers.

use std::{
    env,
    ffi::OsString,
    net::{SocketAddr, UdpSocket},
};

use anyhow::Context;
use kube::Config;
use skep_config::sha256;
use skep_operator::{
    run::{self, Election, Options},
    settings::Settings,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::{logs, start_up::release_code_afterwards};

const EXAMPLES: &str = "\
Examples:
  skep operator
  skep operator --namespaces team-a,team-b --workers 4
  skep operator --observe";

/// The environment variables that are read. docs/operations.md lists them, too.
const ENVIRONMENT: &str = "\
Environment:
  WATCH_NAMESPACE                           same as --namespaces
  SKEP_OBSERVE                              true: same as --observe
  TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR  true: same as --migrate-storage-versions
  POD_NAMESPACE                             the namespace of the Lease of --leader-elect
  TOOLHIVE_RUNNER_IMAGE                     the image of proxies
  SKEP_QUICK_PROXIES                        true: that image starts at once, so readiness probes start at once
  SKEP_TAKEOVER_ROLLOUTS                    true: pods of another operator are replaced where they differ
  VMCP_IMAGE                                the image of virtual MCP servers
  TOOLHIVE_REGISTRY_API_IMAGE               the image of registry servers
  TOOLHIVE_PROXY_HOST                       the address that proxies listen on
  TOOLHIVE_DEFAULT_IMAGE_PULL_SECRETS       pull Secrets for every image, separated by commas
  TOOLHIVE_DEFAULT_REDIS_ADDR               the Redis of servers that configure none
  TOOLHIVE_DEFAULT_REDIS_SECRET_NAME        the Secret with its password
  TOOLHIVE_DEFAULT_REDIS_SECRET_KEY         the key in that Secret, default redis-password
  SKEP_CALLS_READER                         who may read the calls of proxies: system:serviceaccount:NAMESPACE:NAME
  OPERATOR_OPENSHIFT                        whether this is OpenShift; detected by default
  UNSTRUCTURED_LOGS                         true: plain-text log instead of JSON
  RUST_LOG                                  the log filter, default info
";

/// Run the operator, which creates and updates MCP servers according to their custom resources.
///
/// It connects to the cluster that it runs in, or to the one of your kubeconfig. Settings for all objects come from
/// environment variables, with the names of ToolHive's chart where they exist; --help lists them.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{ENVIRONMENT}\n{EXAMPLES}"))]
pub(crate) struct Args {
    /// The namespaces to watch, separated by commas. Default: all.
    #[arg(long, env = "WATCH_NAMESPACE", value_delimiter = ',')]
    namespaces: Vec<String>,

    /// How many objects are reconciled at the same time.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,

    /// Address of the metrics endpoint for Prometheus.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", value_parser = address)]
    metrics_bind_address: SocketAddr,

    /// Address for health probes: /healthz and /readyz.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081", value_parser = address)]
    health_probe_bind_address: SocketAddr,

    /// Elect a leader among several replicas, through a Lease in POD_NAMESPACE. Only the leader writes.
    #[arg(long)]
    leader_elect: bool,

    /// Rewrite stored objects in the storage version of their CRD, and reduce the CRD's storedVersions to it, so that an
    /// older version can be removed. This needs cluster-wide permissions. TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR=true
    /// does the same.
    #[arg(long)]
    migrate_storage_versions: bool,

    /// Write nothing: report by logs and metrics what would be written, beside the active operator. It acquires no Lease
    /// and migrates nothing. It needs the operator's permissions, because it sends each write as a dry run
    /// (dryRun=All). SKEP_OBSERVE=true does the same.
    #[arg(long)]
    observe: bool,
}

/// The Lease for leader election: the one that ToolHive's operator uses, so that the two never write at the same time. An
/// operator for some namespaces has its own.
const LEASE: &str = "toolhive-operator-leader-election";

/// The variable that ToolHive's chart sets.
const MIGRATE: &str = "TOOLHIVE_ENABLE_STORAGE_VERSION_MIGRATOR";

/// The variable that turns --observe on, for charts that cannot add flags.
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
        release_code_afterwards();
        Ok(run::run(config, options, stopped).await?)
    })
}

fn options(args: Args, config: &Config) -> Options {
    let namespaces: Vec<String> =
        args.namespaces.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    let election = args.leader_elect.then(|| Election {
        namespace: env::var("POD_NAMESPACE").unwrap_or_else(|_| config.default_namespace.clone()),
        lease: lease(&namespaces),
        identity: identity(),
    });
    Options {
        namespaces,
        workers: args.workers.into(),
        election,
        metrics: args.metrics_bind_address,
        health: args.health_probe_bind_address,
        migrate: args.migrate_storage_versions,
        unready_after: Options::UNREADY_AFTER,
        observe: args.observe,
        settings: Settings::from_env(&env::vars().collect()),
    }
}

/// The name of the Lease. Operators for different namespaces do not wait for each other.
fn lease(namespaces: &[String]) -> String {
    if namespaces.is_empty() {
        return LEASE.into();
    }
    let mut sorted = namespaces.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    format!("{LEASE}-{:.10}", sha256(&sorted.join(",")))
}

/// A boolean variable, parsed as Go's strconv.ParseBool does. Any other value is an error.
fn switch(name: &str, value: Option<OsString>) -> anyhow::Result<bool> {
    let Some(value) = value else { return Ok(false) };
    match value.to_string_lossy().as_ref() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => anyhow::bail!("{name} is {other:?}: set it to true or false, or leave it out"),
    }
}

/// The host name of a pod is unique; the process id distinguishes two processes on one host.
fn identity() -> String {
    let host = env::var("HOSTNAME").unwrap_or_else(|_| "skep".into());
    format!("{host}-{}", std::process::id())
}

/// An address in Go's syntax, where a port alone means all addresses.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = if text.starts_with(':') { format!("{}{text}", unspecified()) } else { text.to_owned() };
    full.parse().map_err(|_| "write host:port, or :port for all addresses".to_owned())
}

/// The unspecified address: IPv6, which accepts IPv4 connections as well, if the machine has it.
fn unspecified() -> &'static str {
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
    fn operators_for_different_namespaces_do_not_share_a_lease() {
        let name =
            |namespaces: &[&str]| lease(&namespaces.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(name(&[]), "toolhive-operator-leader-election");
        assert_eq!(name(&["a", "b"]), name(&["b", "a", "b"]));
        assert_eq!(
            [name(&["a"]), name(&["b"]), name(&["a", "b"]), name(&[])]
                .iter()
                .collect::<std::collections::BTreeSet<_>>()
                .len(),
            4
        );
    }

    #[test]
    fn a_boolean_variable_is_true_false_or_absent() {
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
