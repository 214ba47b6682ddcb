//! What is to run, computed from objects: the operator's own children, read as a pod would find them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use kube::core::DynamicObject;
use serde_json::Value;
use skep_config::{RunConfig, env, objects, paths, run_config::Transport};
use skep_converge::Child;
use skep_operator::render::Rendered;

use super::{
    findings::findings,
    found::{Found, Place},
    image::Image,
};
use crate::manifests::Manifests;

/// The annotation with the command line of an MCPServer on this machine.
pub(super) const COMMAND: &str = "skep.dev/local-command";

/// The word of a command line that stands for this program.
const SELF: &str = "skep";

/// One server, or why it cannot run.
pub(super) struct Planned {
    /// Its kind and name, for people.
    pub(super) owner: String,
    pub(super) name: String,
    /// What it needs, or a sentence that says what to change.
    pub(super) server: Result<Box<Server>, String>,
    /// Where a problem with it is seen, as `file:line: `.
    pub(super) place: Box<dyn Fn(&str) -> String + Send + Sync>,
    /// What is odd about it, though it runs.
    pub(super) findings: Vec<String>,
}

/// All that is needed to start a server with its proxy. It holds secrets, so it is not for printing.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// The RunConfig. Its `cmd_args` are the command line, if no image runs; its variables are those of the server.
    pub(super) config: RunConfig,
    /// The container of a server that runs in one.
    pub(super) image: Option<Image>,
    /// The variables that the proxy's own container would have.
    pub(super) env: BTreeMap<String, String>,
    /// The files that it would have, by the paths that they would have there.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// The port that the manifest asks for.
    pub(super) port: Option<u16>,
    /// The port that the manifest says the server itself listens on.
    pub(super) target_port: Option<u16>,
    /// What the address of the proxy is in a cluster, where that is written into the RunConfig.
    pub(super) cluster_origin: String,
}

impl Server {
    /// Whether there is a server to run that speaks HTTP.
    pub(super) fn listens(&self) -> bool {
        self.config.remote_url.is_empty() && self.config.transport != Transport::Stdio
    }
}

/// What there is on this machine to run servers with.
pub(super) struct Machine {
    /// This program, for commands that name it.
    pub(super) program: String,
    /// The sockets of container engines, or where they were looked for in vain.
    pub(super) engines: Result<Vec<PathBuf>, String>,
}

/// The objects that would run in a cluster, and do not here.
pub(super) fn left_out(rendered: &[Rendered]) -> Vec<String> {
    let needs_a_cluster = ["VirtualMCPServer", "EmbeddingServer", "MCPRegistry"];
    let left_out = rendered.iter().filter(|rendered| needs_a_cluster.contains(&rendered.target.kind.kind));
    left_out
        .map(|rendered| {
            format!("{}: it is for a cluster only, for now, and does not run here", rendered.owner)
        })
        .collect()
}

/// The servers among the rendered objects, in their order.
pub(super) fn plan(manifests: &Arc<Manifests>, rendered: &[Rendered], machine: &Machine) -> Vec<Planned> {
    let servers = rendered.iter().filter(|rendered| is_server(rendered.target.kind.kind));
    let kinds_and_names: Vec<&str> = servers.clone().map(|rendered| rendered.owner.as_str()).collect();
    let one = |rendered: &Rendered| {
        let mut planned = planned(manifests, rendered, machine);
        // Two namespaces may use one name.
        if kinds_and_names.iter().filter(|owner| **owner == rendered.owner).count() > 1 {
            planned.name = format!("{}/{}", rendered.target.namespace, planned.name);
            planned.owner = format!("{} {}", rendered.target.kind.kind, planned.name);
        }
        planned
    };
    servers.map(one).collect()
}

fn is_server(kind: &str) -> bool {
    matches!(kind, "MCPServer" | "MCPRemoteProxy")
}

fn planned(manifests: &Arc<Manifests>, rendered: &Rendered, machine: &Machine) -> Planned {
    let target = &rendered.target;
    let (all, whose) = (manifests.clone(), target.clone());
    Planned {
        owner: rendered.owner.clone(),
        name: target.name.to_string(),
        server: server(&manifests.objects, rendered, machine).map(Box::new),
        place: Box::new(move |problem| all.place(whose.kind.kind, &whose.namespace, &whose.name, problem)),
        findings: findings(&rendered.status, rendered.children.is_err()),
    }
}

fn server(objects: &[DynamicObject], rendered: &Rendered, machine: &Machine) -> Result<Server, String> {
    let children = rendered.children.as_ref().map_err(|blocked| blocked.message.clone())?;
    let target = &rendered.target;
    let object = objects
        .iter()
        .find(|object| {
            let of = |text: &Option<String>, wanted: &str| text.as_deref() == Some(wanted);
            of(&object.metadata.name, &target.name)
                && of(&object.metadata.namespace, &target.namespace)
                && object.types.as_ref().is_some_and(|types| types.kind == target.kind.kind)
        })
        .ok_or("it is not among the objects")?;
    let found = Found::new(objects, &target.namespace);
    let mut config = run_config(children, &target.name)?;
    let pod = deployment(children)?;
    let spec = &object.data["spec"];
    let mut image = None;
    if target.kind.kind == "MCPServer" {
        let patch = pod_patch(&pod)?;
        let container = server_container(&patch);
        if container["envFrom"].is_array() {
            return Err(
                "spec.podTemplateSpec: envFrom is for a cluster only: list the variables in env".into()
            );
        }
        config.env_vars.extend(found.variables(&container["env"], |name| place_of(spec, name))?);
        match command(object, &machine.program)? {
            Some(words) => {
                config.cmd_args = words;
                config.image.clear();
            }
            None if machine.engines.is_ok() => {
                image = Some(Image::new(&patch, &container, config.target_port, &found)?);
            }
            None => return Err(nothing_to_run_it_with(machine)),
        }
        if config.transport != Transport::Stdio {
            // In a container, it is reached from outside.
            let host = if image.is_some() { "0.0.0.0" } else { "127.0.0.1" };
            config.env_vars.insert(env::MCP_HOST.into(), host.into());
        }
    }
    let name = &target.name;
    let port = config.port;
    Ok(Server {
        env: found.variables(&pod["containers"][0]["env"], |_| Place::Proxy)?,
        files: found.files(&pod)?,
        port: number(&spec["proxyPort"]),
        target_port: number(&spec["mcpPort"]),
        cluster_origin: format!("http://{name}.{}.svc.cluster.local:{port}", target.namespace),
        image,
        config,
    })
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| number.try_into().ok())
}

fn run_config(children: &[Child], name: &str) -> Result<RunConfig, String> {
    let wanted = objects::run_config(name);
    let config_map = children.iter().find(|child| child.kind.kind == "ConfigMap" && child.name == wanted);
    let text = config_map.and_then(|child| child.body()["data"][paths::RUN_CONFIG_FILE].as_str());
    RunConfig::parse(text.unwrap_or_default()).map_err(|error| format!("it has no RunConfig: {error}"))
}

/// The pod that the proxy would run in.
fn deployment(children: &[Child]) -> Result<Value, String> {
    let deployment = children.iter().find(|child| child.kind.kind == "Deployment");
    let pod = deployment.map(|child| child.body()["spec"]["template"]["spec"].clone());
    let mut pod = pod.ok_or("it has no Deployment")?;
    // The proxy's container first, whatever a user has put beside it.
    if let Some(containers) = pod["containers"].as_array_mut() {
        containers.sort_by_key(|container| container["name"] != objects::PROXY_CONTAINER);
    }
    Ok(pod)
}

/// The patch for the server's own pod, which its proxy gets as an argument.
fn pod_patch(pod: &Value) -> Result<Value, String> {
    let args = pod["containers"][0]["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut patches = args.filter_map(|arg| arg.strip_prefix(objects::POD_PATCH_FLAG)?.strip_prefix('='));
    serde_json::from_str(patches.next().unwrap_or("{}")).map_err(|error| format!("podTemplateSpec: {error}"))
}

/// What the patch says of the server's own container.
fn server_container(patch: &Value) -> Value {
    let containers = patch["spec"]["containers"].as_array().into_iter().flatten();
    let mut servers = containers.filter(|container| container["name"] == objects::MCP_CONTAINER);
    servers.next().cloned().unwrap_or_default()
}

/// Where a variable of the server is asked for.
fn place_of(spec: &Value, variable: &str) -> Place {
    let secrets = spec["secrets"].as_array().into_iter().flatten();
    let mut names = secrets.map(|secret| secret["targetEnvName"].as_str().or(secret["key"].as_str()));
    if names.any(|name| name == Some(variable)) { Place::Secrets } else { Place::PodTemplate }
}

/// The command line of a server, as words, if it has one. No shell reads it.
fn command(object: &DynamicObject, program: &str) -> Result<Option<Vec<String>>, String> {
    let annotations = object.metadata.annotations.as_ref();
    let Some(line) = annotations.and_then(|annotations| annotations.get(COMMAND)) else { return Ok(None) };
    let words = shlex::split(line).ok_or_else(|| {
        format!("metadata.annotations[{COMMAND}]: a quote is not closed: write it as in a shell")
    })?;
    match words.split_first() {
        None => Err(format!("metadata.annotations[{COMMAND}] is empty: name a program and its arguments")),
        Some((first, args)) if first == SELF => {
            Ok(Some([program.to_owned()].into_iter().chain(args.iter().cloned()).collect()))
        }
        Some(_) => Ok(Some(words)),
    }
}

fn nothing_to_run_it_with(machine: &Machine) -> String {
    let looked = machine.engines.as_ref().err().map_or("", String::as_str);
    format!(
        "there is no command to run it with, and no container engine for its image: add the annotation {COMMAND}, for \
         example \"npx -y @modelcontextprotocol/server-everything stdio\", or start Docker or Podman ({looked})"
    )
}
