//! `skep vmcp init`: a first configuration for the members of a group.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use serde_json::json;
use skep_api::vmcp::Backend;
use skep_vmcp::{Cluster, backends_of_group};

use crate::{agent, output::print};

/// The output that is no file.
const STDOUT: &str = "-";

#[derive(clap::Args)]
pub(super) struct Init {
    /// The group whose members become backends
    #[arg(long, short)]
    group: String,
    /// The namespace of the group. Default: that of the context
    #[arg(long, short)]
    namespace: Option<String>,
    /// The file to write. Without one, or with -, the configuration is printed
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the configuration. `--config` is another name of `--output`.
pub(super) fn run(options: &Init, config: Option<&Path>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let backends = runtime.block_on(backends(options))?;
    let text = configuration(&options.group, &backends);
    let output = options.output.as_deref().or(config);
    match output.filter(|path| !path.as_os_str().is_empty() && *path != Path::new(STDOUT)) {
        Some(path) => write(path, &text).with_context(|| format!("cannot write {}", path.display())),
        None => print(&text),
    }
}

async fn backends(options: &Init) -> anyhow::Result<Vec<Backend>> {
    // The error includes its causes.
    let config = kube::Config::infer().await;
    let mut config = config.map_err(|error| anyhow!("no cluster: set KUBECONFIG: {error}"))?;
    config.headers.push(agent::USER);
    let namespace = options.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let cluster = Cluster { client: kube::Client::try_from(config)?, namespace, name: None };
    let failed = || format!("cannot list the members of group {}", options.group);
    backends_of_group(&cluster, &options.group).await.with_context(failed)
}

/// The configuration, as a person would begin it. JSON texts are also those of YAML.
fn configuration(group: &str, backends: &[Backend]) -> String {
    let list: String = backends
        .iter()
        .map(|Backend { name, url, transport, .. }| {
            let (name, url, transport) = (json!(name), json!(url), transport.as_str());
            format!("\n  - name: {name}\n    url: {url}\n    transport: {transport}")
        })
        .collect();
    let list = if list.is_empty() { " []" } else { &list };
    let (name, group) = (json!(format!("{group}-vmcp")), json!(group));
    format!(
        r#"# Check it with `skep vmcp validate --config FILE`, and run it with `skep vmcp serve --config FILE`.
name: {name}
groupRef: {group}
# How clients authenticate: anonymous, local, or oidc with an issuer and an audience.
incomingAuth:
  type: anonymous
# How this server authenticates to backends: a strategy under default, or for each under backends.
outgoingAuth:
  source: inline
# How names that several backends have become unique: prefix, priority or manual.
aggregation:
  conflictResolution: prefix
  conflictResolutionConfig:
    prefixFormat: "{{workload}}_"
backends:{list}
"#
    )
}

/// Writes a file at once, which only its owner can read: secrets may be added to it.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".skep-new");
    let new = path.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use skep_vmcp::Settings;

    use super::*;

    #[test]
    fn what_is_written_is_a_valid_configuration_also_for_a_group_without_members() {
        let backend = |name: &str, transport| Backend {
            name: name.into(),
            url: format!("http://{name}.team.svc:8080/mcp"),
            transport,
            ..Backend::default()
        };
        use skep_api::vmcp::BackendTransport::{Sse, StreamableHttp};
        for backends in [vec![], vec![backend("a", StreamableHttp), backend("b", Sse)]] {
            let text = configuration("team", &backends);
            let settings = Settings::parse(&text).unwrap_or_else(|errors| panic!("{errors:?}: {text}"));
            let config = settings.config();
            assert_eq!(
                (config.name.as_deref(), config.group_ref.as_deref()),
                (Some("team-vmcp"), Some("team"))
            );
            assert_eq!(config.backends, backends);
        }
    }
}
