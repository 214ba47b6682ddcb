//! `kubectl skep`: a plugin of kubectl, which finds this program under the name `kubectl-skep`.

mod call;
mod forward;
mod logs;
mod status;
mod tools;

use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Subcommand;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DynamicObject},
    config::{KubeConfigOptions, Kubeconfig},
};
use skep_api::kinds::{MCPRemoteProxy, MCPServer, VirtualMCPServer};

use crate::explain;

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

/// Which cluster, as for kubectl.
#[derive(clap::Args)]
struct ClusterArgs {
    /// The namespace. Default: that of the context.
    #[arg(short, long, global = true)]
    namespace: Option<String>,

    /// The context of the kubeconfig.
    #[arg(long, global = true)]
    context: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    Status(status::Args),
    Tools(tools::Args),
    Call(call::Args),
    Logs(logs::Args),
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
            Command::Explain(args) => explain::run_live(&cluster, args).await,
        }
    })
}

/// A cluster, and a namespace in it.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Cluster {
    /// The cluster of the kubeconfig, and this namespace or that of its context.
    pub(crate) async fn of_kubeconfig(namespace: Option<&str>) -> anyhow::Result<Self> {
        Self::connect(&ClusterArgs { namespace: namespace.map(str::to_owned), context: None }).await
    }

    async fn connect(args: &ClusterArgs) -> anyhow::Result<Self> {
        let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
        let no_cluster = "no cluster: set KUBECONFIG, or name another --context";
        let config = match Kubeconfig::read() {
            Ok(kubeconfig) => {
                Config::from_custom_kubeconfig(kubeconfig, &options).await.context(no_cluster)?
            }
            Err(_) => Config::infer().await.context(no_cluster)?,
        };
        let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Self { client: Client::try_from(config)?, namespace })
    }

    /// The server of this name, of whatever kind. `KIND/NAME` names one of several.
    pub(crate) async fn server(&self, name: &str) -> anyhow::Result<DynamicObject> {
        let (kind, name) = match name.split_once('/') {
            Some((kind, name)) => (Some(kind.to_lowercase()), name),
            None => (None, name),
        };
        let mut found = Vec::new();
        for resource in servers() {
            let is_meant =
                |kind: &String| [resource.kind.to_lowercase(), resource.plural.clone()].contains(kind);
            if kind.as_ref().is_none_or(is_meant) {
                let api: Api<DynamicObject> =
                    Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
                found.extend(api.get_opt(name).await?.map(|mut object| {
                    object.types.get_or_insert_with(Default::default).kind = resource.kind.clone();
                    object
                }));
            }
        }
        let namespace = &self.namespace;
        match <[DynamicObject; 1]>::try_from(found) {
            Ok([server]) => Ok(server),
            Err(found) if found.is_empty() => {
                bail!("there is no MCP server {name} in the namespace {namespace}: see kubectl skep status")
            }
            Err(found) => {
                let named = |object| format!("{}/{name}", kind_of(object).to_lowercase());
                let names: Vec<String> = found.iter().map(named).collect();
                bail!("{name} is the name of several servers: write {}", names.join(" or "))
            }
        }
    }
}

/// The kinds that clients can connect to.
fn servers() -> [ApiResource; 3] {
    [
        ApiResource::erase::<MCPServer>(&()),
        ApiResource::erase::<MCPRemoteProxy>(&()),
        ApiResource::erase::<VirtualMCPServer>(&()),
    ]
}

pub(crate) fn kind_of(object: &DynamicObject) -> &str {
    object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default()
}

/// The kind and name of an object, for messages.
fn title(object: &DynamicObject) -> String {
    format!("{} {}", kind_of(object), object.name_any())
}
