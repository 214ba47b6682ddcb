//! Virtual servers: the servers of a group at one address, within this process.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_config::{FieldError, objects, paths, yaml};
use skep_converge::Child;
use skep_operator::render::Rendered;
use skep_vmcp::{Listen, Settings, Workers, serve};
use tokio::sync::watch;
use tracing::{Instrument, error_span, warn};

use super::{
    client::{self, ClientError},
    discovery::stopped,
    logs,
    machine::listener,
    running::{Phase, Running, State, Workload},
};

/// A virtual server of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VirtualServer {
    /// Its kind, namespace and name.
    id: String,
    /// Its configuration, as the operator writes it.
    config: Value,
    /// The members of its group.
    members: Vec<Member>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Member {
    /// A server of the file, by its kind and name: with its namespace, where several have that name.
    Server { name: String, owners: [String; 2] },
    /// A server that has no proxy of its own.
    Entry { name: String, url: String, transport: String },
}

impl VirtualServer {
    pub(super) fn new(
        all: &[DynamicObject],
        rendered: &Rendered,
        children: &[Child],
    ) -> Result<Self, FieldError> {
        let target = &rendered.target;
        let config_name = objects::vmcp_config(&target.name);
        let config_map =
            children.iter().find(|child| child.kind.kind == "ConfigMap" && child.name == config_name);
        let data = config_map.map(|child| child.body()["data"].clone()).unwrap_or_default();
        if data.get(paths::VMCP_AUTH_SERVER_FILE).is_some() {
            let message = "an authorization server works only in a cluster, for now";
            return Err(FieldError::new("spec.authServerConfig", message));
        }
        let text = data[paths::VMCP_CONFIG_FILE].as_str().unwrap_or_default();
        let config: Value = yaml::parse(text).map_err(|error| FieldError::new("", error.to_string()))?;
        let group = config["groupRef"].as_str().unwrap_or_default();
        let members =
            all.iter().filter(|object| object.metadata.namespace.as_deref() == Some(&*target.namespace));
        let members = members.filter_map(|object| member(object, group)).collect();
        let id = format!("{}/{}/{}", target.kind.kind, target.namespace, target.name);
        Ok(Self { id, config, members })
    }

    /// Its configuration on this machine: with the addresses of the proxies whose servers have been ready, and without what
    /// replicas share.
    pub(super) fn local(&self, address: impl Fn(&str) -> Option<State>) -> Value {
        let backends = self.members.iter().filter_map(|member| match member {
            Member::Entry { name, url, transport } => {
                Some(json!({"name": name, "url": url, "transport": transport}))
            }
            Member::Server { name, owners } => {
                let state = owners.iter().find_map(|owner| address(owner))?;
                Some(json!({"name": name, "url": state.url, "transport": state.transport}))
            }
        });
        let mut config = self.config.clone();
        config["backends"] = backends.collect();
        config["outgoingAuth"]["source"] = "inline".into();
        if let Some(fields) = config.as_object_mut() {
            fields.remove("sessionStorage");
            fields.remove("rateLimiting");
        }
        config
    }

    /// What a user should know about it.
    pub(super) fn warnings(&self) -> Vec<String> {
        let has = |field: &str| self.config.get(field).is_some_and(|value| !value.is_null());
        let limits =
            has("rateLimiting").then(|| "rate limits need Redis, and are not applied here".to_owned());
        limits.into_iter().collect()
    }
}

fn member(object: &DynamicObject, group: &str) -> Option<Member> {
    let kind = &object.types.as_ref()?.kind;
    let (name, spec) = (object.metadata.name.clone()?, &object.data["spec"]);
    if spec["groupRef"]["name"] != group {
        return None;
    }
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    match &**kind {
        "MCPServer" | "MCPRemoteProxy" => {
            let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
            let owners = [format!("{kind} {namespace}/{name}"), format!("{kind} {name}")];
            Some(Member::Server { owners, name })
        }
        "MCPServerEntry" => {
            Some(Member::Entry { url: text("remoteUrl"), transport: text("transport"), name })
        }
        _ => None,
    }
}

/// A virtual server that runs.
pub(super) struct Joined {
    planned: VirtualServer,
    config: Value,
    server: Arc<skep_vmcp::VirtualServer>,
}

impl Joined {
    /// Uses the servers that are ready now. Returns whether that is all that has changed of it.
    pub(super) fn update(
        &mut self,
        planned: &VirtualServer,
        address: impl Fn(&str) -> Option<State>,
    ) -> Result<bool, FieldError> {
        let config = planned.local(address);
        let without_backends = |config: &Value| {
            let mut config = config.clone();
            config["backends"] = Value::Null;
            config
        };
        if without_backends(&config) != without_backends(&self.config) {
            return Ok(false);
        }
        if config != self.config {
            let changed = self.server.set_backends(&settings(&config)?);
            changed.map_err(|error| FieldError::new("spec.config", error.to_string()))?;
            self.config = config;
        }
        self.planned = planned.clone();
        Ok(true)
    }

    pub(super) fn planned(&self) -> VirtualServer {
        self.planned.clone()
    }
}

fn settings(config: &Value) -> Result<Settings, FieldError> {
    Settings::parse(&config.to_string()).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        FieldError::new("spec.config", all.join("; "))
    })
}

/// Starts one, on the socket of its predecessor if there is one.
pub(super) fn start(
    name: &str,
    planned: &VirtualServer,
    config: Value,
    socket: Option<TcpListener>,
) -> Result<Running, FieldError> {
    let wrong = |message: String| FieldError::new("", message);
    let listen = Listen { host: "127.0.0.1".into(), session_life: None, audits: false };
    let server = settings(&config)?.server(&listen, None);
    let server = Arc::new(server.map_err(|error| FieldError::new("spec.config", error.to_string()))?);
    let listener = socket.map_or_else(|| listener(None, &planned.id), Ok)?;
    let address = listener.local_addr().map_err(|error| wrong(error.to_string()))?;
    let socket = listener.try_clone().and_then(tokio::net::TcpListener::from_std);
    let socket = socket.map_err(|error| wrong(format!("cannot listen: {error}")))?;
    let (stop, is_stopped) = watch::channel(false);
    let url = format!("http://{address}/mcp");
    let (state, seen) = watch::channel(State { url, transport: "streamable-http", ..State::default() });
    let span = error_span!(logs::SERVER, message = name);
    let task = tokio::spawn(run(server.clone(), socket, address, state, is_stopped).instrument(span));
    let joined = Joined { planned: planned.clone(), config, server };
    Ok(Running::new(Workload::Virtual(Box::new(joined)), seen, listener, stop, task))
}

async fn run(
    server: Arc<skep_vmcp::VirtualServer>,
    socket: tokio::net::TcpListener,
    address: SocketAddr,
    state: watch::Sender<State>,
    stop: watch::Receiver<bool>,
) {
    let serving = serve(socket, server.clone(), Workers::default(), stopped(stop.clone()));
    let watching = async {
        tokio::select! {
            () = watch_tools(address, &server, &state) => {}
            () = stopped(stop.clone()) => {}
        }
    };
    let (served, ()) = tokio::join!(serving, watching);
    if let Err(error) = served {
        warn!(%error, "the virtual server stopped");
    }
}

/// Keeps the state up to date: its tools change with its backends.
async fn watch_tools(address: SocketAddr, server: &skep_vmcp::VirtualServer, state: &watch::Sender<State>) {
    let mut changes = server.changes();
    loop {
        changes.mark_unchanged();
        let listed = client::tools(address).await;
        state.send_if_modified(|state| {
            let before = state.clone();
            match listed {
                Ok(tools) => {
                    (state.phase, state.tools, state.message) = (Phase::Ready, Some(tools), String::new())
                }
                // It serves, and callers need a token.
                Err(ClientError::Rejected(_)) if state.phase == Phase::Pending => state.phase = Phase::Ready,
                Err(ClientError::Rejected(why) | ClientError::Unavailable(why)) => state.message = why,
            }
            *state != before
        });
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
