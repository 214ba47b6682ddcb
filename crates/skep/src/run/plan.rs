//! The servers to run, computed from the operator's children as their pods would see them.

use std::{collections::BTreeMap, mem, sync::Arc};

use kube::core::DynamicObject;
use serde_json::Value;
use skep_config::{FieldError, FieldPath, RunConfig, env, objects, paths, run_config::Transport};
use skep_console::Key;
use skep_converge::Child;
use skep_operator::{reconcile::Problem, render::Rendered};

use super::{
    config_sources::{ConfigSources, Usage},
    expansion::add_expanded,
    image::{Image, check_host_path, words},
    machine::Machine,
    virtual_server::VirtualServer,
    warnings::warnings,
};
use crate::manifests::{Manifests, in_spec};

/// The annotation with the command line of an MCPServer on this machine.
pub(super) const COMMAND: &str = "skep.dev/local-command";

/// The word of a command line that means this program.
const SELF: &str = "skep";

/// One server, or why it cannot run.
pub(super) struct Planned {
    /// Its kind and name, for messages.
    pub(super) owner: String,
    pub(super) name: String,
    pub(super) key: Key,
    /// What it needs, or everything that keeps it from running. Paths start at the root of the object.
    pub(super) server: Result<PlannedServer, Vec<FieldError>>,
    /// The position of a field, as `file:line: `.
    pub(super) place: Box<dyn Fn(&FieldPath) -> String + Send + Sync>,
    /// Warnings that do not keep it from running.
    pub(super) warnings: Vec<String>,
}

/// What is to run.
pub(super) enum PlannedServer {
    /// A server behind a proxy.
    Proxied(Box<Server>),
    /// The servers of a group at one address.
    Virtual(Box<VirtualServer>),
}

/// Everything that is needed to start a server with its proxy. It contains secrets, so it is not printable.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// Its kind, namespace and name.
    pub(super) id: String,
    /// The RunConfig. Its `cmd_args` are the command line, if no image runs; its variables are those of the server.
    pub(super) config: RunConfig,
    /// The container of a server that runs in one.
    pub(super) image: Option<Image>,
    /// The variables that the proxy's own container would have.
    pub(super) env: BTreeMap<String, String>,
    /// The files that it would have, by their paths there.
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// The port of the proxy in the manifest.
    pub(super) port: Option<u16>,
    /// The port of the server in the manifest.
    pub(super) target_port: Option<u16>,
    /// The URL of the proxy in a cluster, which the RunConfig may contain.
    pub(super) cluster_origin: String,
}

impl Server {
    /// Whether its container must run on this machine, because of its files or its port.
    pub(super) fn needs_this_machine(&self) -> bool {
        let has_files = |image: &Image| !image.binds.is_empty() || !image.files.is_empty();
        self.listens() || !self.config.volumes.is_empty() || self.image.as_ref().is_some_and(has_files)
    }

    /// Whether it is a local server that speaks HTTP.
    pub(super) fn listens(&self) -> bool {
        self.config.remote_url.is_empty() && self.config.transport != Transport::Stdio
    }
}

/// The objects that run only in a cluster.
pub(super) fn left_out(rendered: &[Rendered]) -> Vec<String> {
    let needs_a_cluster = ["EmbeddingServer", "MCPRegistry"];
    let left_out = rendered.iter().filter(|rendered| needs_a_cluster.contains(&rendered.target.kind.kind));
    left_out.map(|rendered| format!("{}: not supported without a cluster yet", rendered.owner)).collect()
}

/// The servers among the rendered objects, in their order.
pub(super) fn plan(manifests: &Arc<Manifests>, rendered: &[Rendered], machine: &Machine) -> Vec<Planned> {
    let servers = rendered.iter().filter(|rendered| is_server(rendered.target.kind.kind));
    let targets: Vec<_> = servers.clone().map(|rendered| &rendered.target).collect();
    let one = |rendered: &Rendered| {
        let mut planned = planned(manifests, rendered, machine);
        let target = &rendered.target;
        let namesakes = || targets.iter().filter(|other| other.name == target.name && **other != target);
        // Two namespaces may use the same name, and so may two kinds.
        if namesakes().any(|other| other.namespace != target.namespace) {
            planned.name = format!("{}/{}", target.namespace, planned.name);
            planned.owner = format!("{} {}", target.kind.kind, planned.name);
        }
        if namesakes().any(|other| other.kind.kind != target.kind.kind) {
            planned.name = format!("{}/{}", target.kind.kind.to_lowercase(), planned.name);
        }
        planned
    };
    servers.map(one).collect()
}

fn is_server(kind: &str) -> bool {
    matches!(kind, "MCPServer" | "MCPRemoteProxy" | "VirtualMCPServer")
}

fn planned(manifests: &Arc<Manifests>, rendered: &Rendered, machine: &Machine) -> Planned {
    let target = &rendered.target;
    let (all, whose) = (manifests.clone(), target.clone());
    let server = server(&manifests.objects, rendered, machine);
    let mut warnings = warnings(&rendered.status, rendered.children.is_err());
    if let Ok(PlannedServer::Virtual(server)) = &server {
        warnings.extend(server.warnings());
    }
    Planned {
        owner: rendered.owner.clone(),
        name: target.name.to_string(),
        key: Key::new(target.kind.kind, &target.namespace, &target.name),
        server,
        place: Box::new(move |field| all.place(whose.kind.kind, &whose.namespace, &whose.name, field)),
        warnings,
    }
}

fn server(
    objects: &[DynamicObject],
    rendered: &Rendered,
    machine: &Machine,
) -> Result<PlannedServer, Vec<FieldError>> {
    let error = |problem: &Problem| FieldError::new(in_spec(&problem.field), problem.message.clone());
    let children = rendered.children.as_ref();
    let children = children.map_err(|problems| problems.iter().map(error).collect::<Vec<_>>())?;
    let planned = if rendered.target.kind.kind == "VirtualMCPServer" {
        VirtualServer::new(objects, rendered, children).map(|server| PlannedServer::Virtual(Box::new(server)))
    } else {
        let server = server_of(objects, rendered, children, machine);
        server.map(|server| PlannedServer::Proxied(Box::new(server)))
    };
    planned.map_err(|error| vec![error])
}

fn server_of(
    objects: &[DynamicObject],
    rendered: &Rendered,
    children: &[Child],
    machine: &Machine,
) -> Result<Server, FieldError> {
    let target = &rendered.target;
    let object = objects
        .iter()
        .find(|object| {
            let of = |text: &Option<String>, expected: &str| text.as_deref() == Some(expected);
            of(&object.metadata.name, &target.name)
                && of(&object.metadata.namespace, &target.namespace)
                && object.types.as_ref().is_some_and(|types| types.kind == target.kind.kind)
        })
        .ok_or_else(|| FieldError::new("", "it is not among the objects"))?;
    let sources = ConfigSources::new(objects, &target.namespace);
    let mut config = run_config(children, &target.name)?;
    let pod = deployment(children)?;
    let spec = &object.data["spec"];
    let mut image = None;
    if target.kind.kind == "MCPServer" {
        let patch = pod_patch(&pod)?;
        let container = server_container(&patch);
        // In the order of the pod, in which the last one counts.
        let mut variables = sources.all_variables(&container["envFrom"])?;
        sources.add_variables(&mut variables, &container["env"], |name| usage_of(spec, name))?;
        add_expanded(&mut variables, mem::take(&mut config.env_vars));
        config.env_vars = variables;
        match command(object, &machine.program)? {
            Some(command) => {
                config.cmd_args = command;
                config.image.clear();
            }
            None if machine.engines.is_ok() => {
                check_volumes(spec)?;
                image = Some(Image::new(&patch, &container, config.target_port, &sources)?);
                config.cmd_args.splice(..0, words(&container["args"]));
            }
            None => return Err(FieldError::new("", no_runtime(machine))),
        }
        if config.transport != Transport::Stdio {
            // A container must listen on all addresses.
            let host = if image.is_some() { "0.0.0.0" } else { "127.0.0.1" };
            config.env_vars.insert(env::MCP_HOST.into(), host.into());
        }
    }
    let name = &target.name;
    let port = config.port;
    Ok(Server {
        id: format!("{}/{}/{name}", target.kind.kind, target.namespace),
        env: sources.proxy_variables(&pod)?,
        files: sources.files(&pod)?,
        port: number(&spec["proxyPort"]),
        target_port: number(&spec["mcpPort"]),
        cluster_origin: format!("http://{name}.{}.svc.cluster.local:{port}", target.namespace),
        image,
        config,
    })
}

fn check_volumes(spec: &Value) -> Result<(), FieldError> {
    for (index, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let field = || FieldPath::from("spec.volumes").index(index).join("hostPath");
        let path = volume["hostPath"].as_str().unwrap_or_default();
        check_host_path(path).map_err(|message| FieldError::new(field(), message))?;
    }
    Ok(())
}

fn number(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| number.try_into().ok())
}

fn run_config(children: &[Child], name: &str) -> Result<RunConfig, FieldError> {
    let config_name = objects::run_config(name);
    let config_map =
        children.iter().find(|child| child.kind.kind == "ConfigMap" && child.name == config_name);
    let text = config_map.and_then(|child| child.body()["data"][paths::RUN_CONFIG_FILE].as_str());
    RunConfig::parse(text.unwrap_or_default())
        .map_err(|error| FieldError::new("", format!("it has no RunConfig: {error}")))
}

/// The pod that the proxy would run in.
pub(super) fn deployment(children: &[Child]) -> Result<Value, FieldError> {
    let deployment = children.iter().find(|child| child.kind.kind == "Deployment");
    let pod = deployment.map(|child| child.body()["spec"]["template"]["spec"].clone());
    let mut pod = pod.ok_or_else(|| FieldError::new("", "it has no Deployment"))?;
    // The proxy's container first, before those that a user added.
    if let Some(containers) = pod["containers"].as_array_mut() {
        containers.sort_by_key(|container| container["name"] != objects::PROXY_CONTAINER);
    }
    Ok(pod)
}

/// The patch of the server's own pod, which is an argument of its proxy.
fn pod_patch(pod: &Value) -> Result<Value, FieldError> {
    let args = pod["containers"][0]["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut patches = args.filter_map(|arg| arg.strip_prefix(objects::POD_PATCH_FLAG)?.strip_prefix('='));
    serde_json::from_str(patches.next().unwrap_or("{}"))
        .map_err(|error| FieldError::new("spec.podTemplateSpec", error.to_string()))
}

/// The server's own container in the patch.
fn server_container(patch: &Value) -> Value {
    let containers = patch["spec"]["containers"].as_array().into_iter().flatten();
    let mut servers = containers.filter(|container| container["name"] == objects::MCP_CONTAINER);
    servers.next().cloned().unwrap_or_default()
}

/// Where a variable of the server is configured.
fn usage_of(spec: &Value, variable: &str) -> Usage {
    let secrets = spec["secrets"].as_array().into_iter().flatten();
    let mut names = secrets.map(|secret| secret["targetEnvName"].as_str().or(secret["key"].as_str()));
    if names.any(|name| name == Some(variable)) { Usage::Secrets } else { Usage::PodTemplate }
}

/// The command line of a server, split into words, if it has one. No shell runs it.
fn command(object: &DynamicObject, program: &str) -> Result<Option<Vec<String>>, FieldError> {
    let field = || FieldPath::from("metadata.annotations").key(COMMAND);
    let annotations = object.metadata.annotations.as_ref();
    let Some(line) = annotations.and_then(|annotations| annotations.get(COMMAND)) else { return Ok(None) };
    let words = shlex::split(line)
        .ok_or_else(|| FieldError::new(field(), "a quote is not closed: write it as in a shell"))?;
    match words.split_first() {
        None => Err(FieldError::new(field(), "is empty: name a program and its arguments")),
        Some((first, args)) if first == SELF => {
            Ok(Some([program.to_owned()].into_iter().chain(args.iter().cloned()).collect()))
        }
        Some(_) => Ok(Some(words)),
    }
}

fn no_runtime(machine: &Machine) -> String {
    let looked = machine.engines.as_ref().err().map_or("", String::as_str);
    format!(
        "it has no command, and there is no container engine for its image: add the annotation {COMMAND}, for \
         example \"npx -y @modelcontextprotocol/server-everything stdio\", or start Docker or Podman ({looked})"
    )
}
