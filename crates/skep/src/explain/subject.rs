//! The servers of files of manifests, as their proxies would see them.

use std::{collections::BTreeMap, env, path::PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use serde_json::Value;
use skep_api::conditions::PolicyWarning;
use skep_config::{RunConfig, field::joined, objects, paths};
use skep_operator::{
    render::{Rendered, render},
    settings::Settings,
};
use skep_proxy::{Caller, Explanation, Outcome, explain_request, listed_tools};
use skep_vmcp::{Destination, Offer};

use super::offers::{self, Tools};
use crate::{
    cluster::{Cluster, kind_of},
    manifests::{ManifestFiles, Manifests, in_spec},
};

/// A server, with its configuration.
pub(crate) struct Subject {
    kind: &'static str,
    namespace: String,
    name: String,
    configured: Configured,
}

/// The configuration of a server.
enum Configured {
    /// Of a proxy.
    Proxy(Box<RunConfig>),
    /// Of a virtual server, with its backends.
    Virtual(Box<skep_vmcp::Settings>, Vec<Offer>),
}

/// What becomes of a request.
pub(crate) struct Explained {
    /// What each step decides, up to the first that rejects it.
    pub(crate) steps: Vec<Explanation>,
    /// Where it goes, if nothing rejects it.
    pub(crate) destination: Option<Target>,
}

impl Explained {
    /// Whether only a running server knows if it is allowed.
    pub(crate) fn is_undecided(&self) -> bool {
        self.steps.iter().any(|step| step.outcome == Outcome::Undecided)
    }
}

/// Where a request goes.
pub(crate) enum Target {
    /// To the server behind a proxy, in words.
    Server(String),
    /// On from a virtual server.
    Routed(Destination),
}

/// The kinds that can be explained.
const KINDS: [&str; 3] = ["MCPServer", "MCPRemoteProxy", "VirtualMCPServer"];

/// The servers of these files. A mistake in one of them is an error.
pub(crate) fn subjects(files: &[PathBuf], namespace: &str) -> anyhow::Result<Vec<Subject>> {
    let mut files = ManifestFiles::new(files);
    let manifests = Manifests::of(&files.read()?, namespace)?;
    let settings = Settings::from_env(&env::vars().collect::<BTreeMap<_, _>>());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let rendered = runtime
        .block_on(render(manifests.objects.clone(), settings))
        .map_err(|error| anyhow::anyhow!("{}{error}", manifests.place_of(&error)))?;
    let servers = rendered.iter().filter(|rendered| is_server(rendered.target.kind.kind));
    let servers = servers.inspect(|rendered| warn(&rendered.owner, &rendered.status));
    let subjects: Vec<Subject> =
        servers.map(|rendered| subject(rendered, &manifests)).collect::<Result<_, _>>()?;
    ensure!(
        !subjects.is_empty(),
        "{}there is no MCPServer, MCPRemoteProxy or VirtualMCPServer",
        files.place()
    );
    Ok(subjects)
}

/// Says which policies are likely mistakes, by the conditions in a status.
fn warn(owner: &str, status: &Value) {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let is_warning =
        |condition: &&Value| condition["type"] == PolicyWarning::TYPE && condition["status"] == "True";
    for condition in conditions.filter(is_warning) {
        eprintln!("warning: {owner}: {}", condition["message"].as_str().unwrap_or_default());
    }
}

fn is_server(kind: &str) -> bool {
    KINDS.contains(&kind)
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
    let data = |map: String| {
        let found = children.iter().find(|child| child.kind.kind == "ConfigMap" && child.name == map);
        found.map(|child| child.body()["data"].clone()).unwrap_or_default()
    };
    let (namespace, name) = (target.namespace.to_string(), target.name.to_string());
    let configured = if target.kind.kind == "VirtualMCPServer" {
        let data = data(objects::vmcp_config(&name));
        let settings = virtual_settings(data[paths::VMCP_CONFIG_FILE].as_str().unwrap_or_default())
            .with_context(|| owner.to_string())?;
        let objects =
            manifests.objects.iter().filter(|object| object.namespace().as_ref() == Some(&namespace));
        let offers = offers::of(&settings, objects);
        Configured::Virtual(Box::new(settings), offers)
    } else {
        let data = data(objects::run_config(&name));
        let config = RunConfig::parse(data[paths::RUN_CONFIG_FILE].as_str().unwrap_or_default());
        Configured::Proxy(Box::new(config.with_context(|| format!("{owner} has no RunConfig"))?))
    };
    Ok(Subject { kind: target.kind.kind, namespace, name, configured })
}

fn virtual_settings(text: &str) -> anyhow::Result<skep_vmcp::Settings> {
    skep_vmcp::Settings::parse(text).map_err(|errors| anyhow!("its configuration: {}", joined(&errors)))
}

impl Subject {
    /// A server of a cluster, with the configuration that its pods run with.
    pub(super) async fn live(cluster: &Cluster, name: &str) -> anyhow::Result<Self> {
        let object = cluster.server(name).await?;
        let (kind, name) = (kind_of(&object), object.name_any());
        let Some(kind) = KINDS.into_iter().find(|known| *known == kind) else {
            bail!("{kind} {name} cannot be explained");
        };
        warn(&format!("{kind} {name}"), &object.data["status"]);
        let is_virtual = kind == "VirtualMCPServer";
        let (map, file) = match is_virtual {
            true => (objects::vmcp_config(&name), paths::VMCP_CONFIG_FILE),
            false => (objects::run_config(&name), paths::RUN_CONFIG_FILE),
        };
        let configs: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        let text = configs.get_opt(&map).await?.and_then(|config| config.data?.remove(file));
        let what = if is_virtual { "configuration" } else { "RunConfig" };
        let text =
            text.with_context(|| format!("{kind} {name} has no {what} yet: see kubectl skep status"))?;
        let context = || format!("the configuration of {kind} {name}");
        let configured = if is_virtual {
            let settings = virtual_settings(&text).with_context(context)?;
            let offers = offers::of(&settings, &offers::live(cluster).await?);
            Configured::Virtual(Box::new(settings), offers)
        } else {
            Configured::Proxy(Box::new(RunConfig::parse(&text).with_context(context)?))
        };
        Ok(Self { kind, namespace: cluster.namespace.clone(), name, configured })
    }

    /// What becomes of a request.
    pub(crate) async fn explain(
        &self,
        caller: &Caller,
        method: &str,
        params: &Value,
    ) -> anyhow::Result<Explained> {
        Ok(match &self.configured {
            Configured::Proxy(config) => {
                let steps = explain_request(config, caller, method, params).await?;
                let is_rejected = steps.iter().any(|step| step.outcome.is_rejected());
                let destination = (!is_rejected).then(|| Target::Server(destination(&self.name, config)));
                Explained { steps, destination }
            }
            Configured::Virtual(settings, offers) => {
                let explained = settings.explain_request(caller, method, params, offers).await?;
                let destination = explained.destination.map(Target::Routed);
                Explained { steps: explained.steps, destination }
            }
        })
    }

    /// Which of the tools that the server has a caller is listed.
    pub(crate) async fn listed(&self, caller: &Caller, tools: &Tools) -> anyhow::Result<Vec<String>> {
        match (&self.configured, tools) {
            (Configured::Proxy(config), Tools::All(tools)) => Ok(listed_tools(config, caller, tools).await?),
            (Configured::Virtual(settings, _), Tools::OfBackends(tools)) => {
                Ok(settings.listed_tools(caller, &offers::given(tools)).await?)
            }
            (Configured::Proxy(_), Tools::OfBackends(_)) => bail!("tools: must be a list"),
            (Configured::Virtual(..), Tools::All(_)) => {
                bail!("tools: must be the tools of each backend, as {{backend: [tool]}}")
            }
        }
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
}

/// Where a proxy sends requests. An address may have credentials and a query, which may be secret.
fn destination(name: &str, config: &RunConfig) -> String {
    if config.remote_url.is_empty() {
        return format!("the server {name} by {}", config.transport.as_str());
    }
    let url = config.remote_url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => url.to_owned(),
    }
}
