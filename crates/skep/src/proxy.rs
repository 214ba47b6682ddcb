//! `skep proxy`: the proxy in front of one server.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use anyhow::{Context, anyhow, bail};
use skep_config::env as names;
use skep_proxy::{
    Configured, Overrides, Proxy, REQUEST_TIMEOUT, Workers, limits, load, request_time,
    runtime::kubernetes::{Readiness, Reporter, Starting},
    search, serve,
};
use tokio::net::TcpListener;
use tracing::info;

use crate::{
    authorization_server::{Embedded, pod_extras},
    logs,
    signals::{IN_A_POD, drain, shutdown_signal},
    start_up::release_code_afterwards,
};

/// Run the proxy in front of one MCP server.
///
/// It is configured by a RunConfig file, which the operator writes: /etc/runconfig/runconfig.json,
/// /etc/toolhive/runconfig.json or ./runconfig.json, the first that exists. Unknown flags are ignored, so that a
/// Deployment of another version starts as well.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  skep proxy run ghcr.io/example/mcp:1\n  skep proxy run --config=runconfig.json -"
)]
pub(crate) struct Args {
    /// run [--k8s-pod-patch=JSON] [--config=FILE] [--debug] IMAGE
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "run IMAGE")]
    args: Vec<OsString>,
}

/// The command line of `run`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    image: String,
    pod_patch: Option<String>,
    config: Option<PathBuf>,
    debug: bool,
}

/// Runs it on a thread with the stack that policies may need.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let thread = thread::Builder::new().name("proxy".into()).stack_size(limits::STACK);
    let running = thread.spawn(|| run_proxy(args)).context("cannot start threads")?;
    running.join().unwrap_or_else(|_| Err(anyhow!("the proxy panicked")))
}

fn run_proxy(args: Args) -> anyhow::Result<()> {
    let args: Vec<String> = args.args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let run = parse_args(&args)?;
    let debug = logs::debug(run.debug);
    logs::init(debug);
    let overrides = Overrides {
        image: run.image,
        pod_patch: run.pod_patch,
        debug,
        env: env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
    };
    let places: Vec<&Path> = match &run.config {
        Some(file) => vec![file],
        None => search(),
    };
    let config = load(&places, &overrides)?;
    let workers = Workers::beside_this_thread().context("cannot start threads")?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let host = if config.host.is_empty() { "127.0.0.1" } else { &config.host };
        let listener = TcpListener::bind((host, config.port))
            .await
            .with_context(|| format!("cannot listen on {host}:{}", config.port))?;
        let shutdown = shutdown_signal()?;
        let time = request_time(overrides.env.get(REQUEST_TIMEOUT).map(String::as_str))?;
        let in_cluster = config.remote_url.is_empty() && in_a_cluster(&overrides.env);
        let server = in_cluster.then(|| Starting::new(&config));
        let issuer = Embedded::of(&config)?;
        let kind = if config.remote_url.is_empty() { "MCPServer" } else { "MCPRemoteProxy" };
        let extras = pod_extras(&overrides.env, kind, &config.name, issuer.as_ref());
        let configured = Configured { config: &config, extras };
        let proxy = match &server {
            Some(server) => Proxy::in_cluster(configured, server, time)?,
            None => Proxy::new(configured)?,
        };
        let reporter = overrides.env.contains_key(IN_A_POD).then(|| Reporter::new(&config, &overrides.env));
        let restarts = server.as_ref().map(Starting::readiness);
        info!(name = config.name, address = %listener.local_addr()?, "serving");
        release_code_afterwards();
        // It responds from here on, and requests wait for the server.
        let mut end: anyhow::Result<()> = Ok(());
        serve(listener, proxy.endpoint(), workers, async {
            tokio::select! {
                () = drain(shutdown, overrides.env.contains_key(IN_A_POD), || proxy.drain()) => {}
                Err(error) = check(&proxy, issuer.as_ref()) => end = Err(error),
                () = report(reporter, &proxy, restarts) => {}
                // Without its server, the proxy has no purpose.
                ended = run_server(server, &overrides.env) => end = ended,
            }
        })
        .await?;
        end
    })
}

/// Reports what the server offers, where there is an object to report it to, for ever.
async fn report(reporter: Option<Reporter>, proxy: &Proxy, restarts: Option<Readiness>) {
    if let Some(reporter) = reporter {
        reporter.run(proxy, restarts).await;
    }
    std::future::pending().await
}

/// Checks that what the proxy needs beside its server can be used.
async fn check(proxy: &Proxy, issuer: Option<&Arc<Embedded>>) -> anyhow::Result<()> {
    proxy.check().await?;
    match issuer {
        Some(issuer) => issuer.check().await,
        None => Ok(()),
    }
}

/// Runs a server in the cluster, and completes some time after it was deleted. Other servers do not end before the proxy.
async fn run_server(server: Option<Starting>, env: &BTreeMap<String, String>) -> anyhow::Result<()> {
    match server {
        Some(server) => {
            server.run(env).await?;
            // Usually its object was deleted, and the proxy is deleted next. A proxy that exits is restarted, and would create a
            // server without an owner.
            info!("the server was deleted");
            tokio::time::sleep(limits::DELETED_TIME).await;
            Ok(())
        }
        None => std::future::pending().await,
    }
}

/// Whether the proxy runs its server in a cluster: because it is configured to, or because it runs in a pod itself.
fn in_a_cluster(env: &BTreeMap<String, String>) -> bool {
    match env.get(names::RUNTIME).map(String::as_str) {
        Some(runtime) => runtime == names::KUBERNETES,
        None => env.contains_key(IN_A_POD),
    }
}

/// Parses the command line. An unknown flag is skipped together with the next word, unless that is a flag, too, so that the
/// value of a flag is not taken for the image.
fn parse_args(args: &[String]) -> anyhow::Result<Run> {
    let mut words = args.iter();
    match words.next().map(String::as_str) {
        Some("run") => {}
        other => {
            bail!("{:?} is not a command of skep proxy: use skep proxy run IMAGE", other.unwrap_or_default())
        }
    }
    let mut run = Run::default();
    let mut images = Vec::new();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        let Some(flag) =
            word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|flag| !flag.is_empty())
        else {
            images.push(word.clone());
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        match name {
            "debug" => run.debug = value.is_none_or(|value| value != "false"),
            "k8s-pod-patch" => {
                run.pod_patch = Some(value.or_else(|| words.next().cloned()).unwrap_or_default())
            }
            "config" => run.config = value.or_else(|| words.next().cloned()).map(Into::into),
            _ if value.is_none() && words.peek().is_some_and(|next| !next.starts_with('-')) => {
                words.next();
            }
            _ => {}
        }
    }
    // Everything after the image is ignored: the server's arguments are in the file.
    run.image = images.into_iter().next().context("name the image: skep proxy run IMAGE")?;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Run {
        parse_args(&line.split(' ').map(Into::into).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn the_operators_command_lines_are_understood() {
        let server = run(r#"run --k8s-pod-patch={"spec":{}} registry.example/mcp:1"#);
        assert_eq!(
            (server.image.as_str(), server.pod_patch.as_deref()),
            ("registry.example/mcp:1", Some(r#"{"spec":{}}"#))
        );
        assert_eq!(
            run("run --foreground=true placeholder-for-remote-proxy").image,
            "placeholder-for-remote-proxy"
        );
    }

    #[test]
    fn unknown_flags_are_skipped_with_their_values() {
        assert_eq!(run("run --new value image -x --other=1 ignored -- --also").image, "image");
        assert!(run("run --debug image").debug);
    }

    #[test]
    fn the_error_for_a_missing_image_shows_the_usage() {
        let error = |line: &str| {
            parse_args(&line.split(' ').map(Into::into).collect::<Vec<_>>()).unwrap_err().to_string()
        };
        assert_eq!(error("run --debug"), "name the image: skep proxy run IMAGE");
        assert!(error("start image").contains("use skep proxy run IMAGE"));
    }
}
