//! The cluster of the kubeconfig, and the servers in it.

use anyhow::{Context, bail};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{ApiResource, DynamicObject},
    config::{KubeConfigOptions, Kubeconfig},
};
use skep_api::kinds::{MCPRemoteProxy, MCPServer, VirtualMCPServer};

use crate::agent;

/// Which cluster, as for kubectl.
#[derive(clap::Args)]
pub(crate) struct ClusterArgs {
    /// The namespace. Default: that of the context.
    #[arg(short, long, global = true)]
    namespace: Option<String>,

    /// The context of the kubeconfig.
    #[arg(long, global = true)]
    context: Option<String>,
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

    pub(crate) async fn connect(args: &ClusterArgs) -> anyhow::Result<Self> {
        let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
        let no_cluster = "no cluster: set KUBECONFIG, or name another --context";
        let mut config = match Kubeconfig::read() {
            Ok(kubeconfig) => {
                Config::from_custom_kubeconfig(kubeconfig, &options).await.context(no_cluster)?
            }
            Err(_) => Config::infer().await.context(no_cluster)?,
        };
        let namespace = args.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        config.headers.push(agent::USER);
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
pub(crate) fn servers() -> [ApiResource; 3] {
    [
        ApiResource::erase::<MCPServer>(&()),
        ApiResource::erase::<MCPRemoteProxy>(&()),
        ApiResource::erase::<VirtualMCPServer>(&()),
    ]
}

/// The kind of an object.
pub(crate) fn kind_of(object: &DynamicObject) -> &str {
    object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default()
}

/// The kind and name of an object, for messages.
pub(crate) fn title(object: &DynamicObject) -> String {
    format!("{} {}", kind_of(object), object.name_any())
}
