//! The servers of files of manifests, as their proxies would see them.

use std::{collections::BTreeMap, env, path::PathBuf};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use skep_config::{RunConfig, objects, paths};
use skep_operator::{
    render::{Rendered, render},
    settings::Settings,
};

use crate::{
    kubectl::{Cluster, kind_of},
    manifests::{ManifestFiles, Manifests, in_spec},
};

/// A server, with the configuration of its proxy.
pub(crate) struct Subject {
    kind: &'static str,
    namespace: String,
    name: String,
    pub(crate) config: RunConfig,
}

/// The MCPServers and MCPRemoteProxies of these files. A mistake in one of them is an error.
pub(crate) fn subjects(files: &[PathBuf], namespace: &str) -> anyhow::Result<Vec<Subject>> {
    let mut files = ManifestFiles::new(files);
    let manifests = Manifests::of(&files.read()?, namespace)?;
    let settings = Settings::from_env(&env::vars().collect::<BTreeMap<_, _>>());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let rendered = runtime
        .block_on(render(manifests.objects.clone(), settings))
        .map_err(|error| anyhow::anyhow!("{}{error}", manifests.place_of(&error)))?;
    let servers = rendered.iter().filter(|rendered| is_server(rendered.target.kind.kind));
    let subjects: Vec<Subject> =
        servers.map(|rendered| subject(rendered, &manifests)).collect::<Result<_, _>>()?;
    ensure!(!subjects.is_empty(), "{}there is no MCPServer and no MCPRemoteProxy", files.place());
    Ok(subjects)
}

fn is_server(kind: &str) -> bool {
    matches!(kind, "MCPServer" | "MCPRemoteProxy")
}

fn subject(rendered: &Rendered, manifests: &Manifests) -> anyhow::Result<Subject> {
    let Rendered { owner, target, children, .. } = rendered;
    let children = match children {
        Ok(children) => children,
        Err(problems) => {
            let place = |field| manifests.place(target.kind.kind, &target.namespace, &target.name, &field);
            let mistakes = problems
                .iter()
                .map(|problem| format!("{}{owner}: {problem}", place(in_spec(&problem.field))));
            bail!("{}", mistakes.collect::<Vec<_>>().join("\n"));
        }
    };
    let name = objects::run_config(&target.name);
    let config = children.iter().find(|child| child.kind.kind == "ConfigMap" && child.name == name);
    let text = config.and_then(|child| child.body()["data"][paths::RUN_CONFIG_FILE].as_str());
    let config =
        RunConfig::parse(text.unwrap_or_default()).with_context(|| format!("{owner} has no RunConfig"))?;
    Ok(Subject {
        kind: target.kind.kind,
        namespace: target.namespace.to_string(),
        name: target.name.to_string(),
        config,
    })
}

impl Subject {
    /// A server of a cluster, with the RunConfig that its proxy runs with.
    pub(super) async fn live(cluster: &Cluster, name: &str) -> anyhow::Result<Self> {
        let object = cluster.server(name).await?;
        let (kind, name) = (kind_of(&object), object.name_any());
        let kinds = ["MCPServer", "MCPRemoteProxy"];
        let Some(kind) = kinds.into_iter().find(|known| *known == kind) else {
            bail!("{kind} {name}: only an MCPServer or an MCPRemoteProxy can be explained");
        };
        let configs: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        let config = configs.get_opt(&objects::run_config(&name)).await?;
        let text = config.and_then(|config| config.data?.remove(paths::RUN_CONFIG_FILE));
        let text =
            text.with_context(|| format!("{kind} {name} has no RunConfig yet: see kubectl skep status"))?;
        let config = RunConfig::parse(&text).with_context(|| format!("the RunConfig of {kind} {name}"))?;
        Ok(Self { kind, namespace: cluster.namespace.clone(), name, config })
    }

    /// The only one, or that of this name, which may have its kind or its namespace before it.
    pub(crate) fn select<'a>(subjects: &'a [Self], name: Option<&str>) -> anyhow::Result<&'a Self> {
        let is_meant = |subject: &&Self| match name {
            None => true,
            Some(name) => {
                let namespaced = format!("{}/{}", subject.namespace, subject.name);
                let of_kind = format!("{}/{}", subject.kind.to_lowercase(), subject.name);
                [&subject.name, &namespaced, &of_kind].iter().any(|known| *known == name)
            }
        };
        let meant: Vec<&Self> = subjects.iter().filter(is_meant).collect();
        let names = || subjects.iter().map(Self::name).collect::<Vec<_>>().join(", ");
        match (meant.as_slice(), name) {
            ([only], _) => Ok(only),
            ([], _) => bail!("there is no server {}; there are {}", name.unwrap_or_default(), names()),
            (_, None) => bail!("name one of the servers with --server: {}", names()),
            (_, Some(name)) => {
                bail!("{name} is the name of several; write NAMESPACE/NAME or KIND/NAME: {}", names())
            }
        }
    }

    /// Its kind, its namespace and its name.
    pub(crate) fn name(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// Where its proxy sends requests. An address may have credentials and a query, which may be secret.
    pub(crate) fn destination(&self) -> String {
        if self.config.remote_url.is_empty() {
            return format!("the server {} by {}", self.name, self.config.transport.as_str());
        }
        let url = self.config.remote_url.split(['?', '#']).next().unwrap_or_default();
        match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
            Some((scheme, rest)) => format!("{scheme}://{rest}"),
            None => url.to_owned(),
        }
    }
}
