//! Virtual servers: the servers of a group at one address, within this process.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_config::{AuthServer, FieldError, field::joined, objects, paths, yaml};
use skep_converge::Child;
use skep_operator::render::Rendered;
use skep_vmcp::{CallLog, Listen, Settings, Workers, serve};
use tokio::sync::watch;
use tracing::{Instrument, error_span, warn};

use super::{
    auth_server::{self, Addresses, replace_texts},
    config_sources::{ConfigSources, Usage},
    discovery::stopped,
    folder::Folder,
    logs,
    machine::listener,
    plan,
    running::{Phase, Running, State, Workload},
};
use crate::{
    authorization_server::Embedded,
    mcp_client::{self, ClientError},
};

/// A virtual server of a file.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct VirtualServer {
    /// Its kind, namespace and name.
    id: String,
    /// Its configuration, as the operator writes it.
    config: Value,
    /// The members of its group.
    members: Vec<Member>,
    /// Its authorization server, if it has one.
    issuer: Option<Issuer>,
}

/// An authorization server, with what its pod would have. It contains secrets, so it is not printable.
#[derive(Clone, PartialEq, Eq)]
struct Issuer {
    config: AuthServer,
    env: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
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
        let issuer = data[paths::VMCP_AUTH_SERVER_FILE].as_str();
        let issuer = issuer.map(|text| Issuer::new(text, children, all, &target.namespace)).transpose()?;
        let text = data[paths::VMCP_CONFIG_FILE].as_str().unwrap_or_default();
        let config: Value = yaml::parse(text).map_err(|error| FieldError::new("", error.to_string()))?;
        let group = config["groupRef"].as_str().unwrap_or_default();
        let members =
            all.iter().filter(|object| object.metadata.namespace.as_deref() == Some(&*target.namespace));
        let members = members.filter_map(|object| member(object, group)).collect();
        let id = format!("{}/{}/{}", target.kind.kind, target.namespace, target.name);
        Ok(Self { id, config, members, issuer })
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

impl Issuer {
    fn new(
        text: &str,
        children: &[Child],
        objects: &[DynamicObject],
        namespace: &str,
    ) -> Result<Self, FieldError> {
        let wrong = |message: String| FieldError::new("spec.authServerConfig", message);
        let config = AuthServer::parse(text).map_err(|errors| wrong(joined(&errors)))?;
        let mut pod = plan::deployment(children)?;
        auth_server::keep_own(&mut pod["containers"][0]);
        let sources = ConfigSources::new(objects, namespace);
        let env = sources.variables(&pod["containers"][0]["env"], |_| Usage::Proxy)?;
        Ok(Self { config, env, files: sources.files(&pod)? })
    }

    /// The authorization server on this port of loopback, with its addresses and its files.
    fn start(&self, port: u16) -> Result<Started, String> {
        let folder = Folder::new().map_err(|error| format!("cannot create a folder: {error}"))?;
        for (path, content) in &self.files {
            folder.write(path, content).map_err(|error| format!("cannot write a file: {error}"))?;
        }
        let addresses = Addresses::new(&self.config, port);
        let mut config = auth_server::local(&self.config, &addresses, &self.env, &folder)?;
        let here = |path: &mut String| *path = folder.place(path).to_string_lossy().into_owned();
        config.signing_key_config.iter_mut().for_each(|keys| here(&mut keys.key_dir));
        config.hmac_secret_files.iter_mut().for_each(here);
        let server = Embedded::new(&config, "spec.authServerConfig").map_err(|error| error.to_string())?;
        Ok(Started { server, addresses, _folder: folder })
    }
}

/// An authorization server on this machine.
struct Started {
    server: Arc<Embedded>,
    addresses: Addresses,
    _folder: Folder,
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
    issuer: Option<Started>,
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
        if without_backends(&config) != without_backends(&self.config)
            || planned.issuer != self.planned.issuer
        {
            return Ok(false);
        }
        if config != self.config {
            let changed = self.server.set_backends(&settings(&config, self.issuer.as_ref())?);
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

fn settings(config: &Value, issuer: Option<&Started>) -> Result<Settings, FieldError> {
    let wrong = |message: String| FieldError::new("spec.config", message);
    let mut config = config.clone();
    if let Some(issuer) = issuer {
        replace_texts(&mut config, &|text| issuer.addresses.here(text));
        // It is in this process, and on loopback.
        config["incomingAuth"]["oidc"]["insecureAllowHttp"] = true.into();
    }
    let settings = Settings::parse(&config.to_string()).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        wrong(all.join("; "))
    })?;
    match issuer {
        Some(issuer) => {
            let settings = settings.with_authorization_server(issuer.server.clone());
            settings.map_err(|error| wrong(error.to_string()))
        }
        None => Ok(settings),
    }
}

/// Starts one, on the socket of its predecessor if there is one.
pub(super) fn start(
    name: &str,
    planned: &VirtualServer,
    config: Value,
    socket: Option<TcpListener>,
    calls: Option<Arc<CallLog>>,
) -> Result<Running, FieldError> {
    let wrong = |message: String| FieldError::new("", message);
    let listen = Listen { host: "127.0.0.1".into(), session_life: None, audits: false };
    let listener = socket.map_or_else(|| listener(None, &planned.id), Ok)?;
    let address = listener.local_addr().map_err(|error| wrong(error.to_string()))?;
    let issuer = planned.issuer.as_ref().map(|issuer| issuer.start(address.port())).transpose();
    let issuer = issuer.map_err(wrong)?;
    let settings = settings(&config, issuer.as_ref())?;
    let settings = match calls {
        Some(log) => settings.with_call_log(log),
        None => settings,
    };
    let server = settings.server(&listen, None);
    let server = Arc::new(server.map_err(|error| FieldError::new("spec.config", error.to_string()))?);
    let socket = listener.try_clone().and_then(tokio::net::TcpListener::from_std);
    let socket = socket.map_err(|error| wrong(format!("cannot listen: {error}")))?;
    let (stop, is_stopped) = watch::channel(false);
    let url = format!("http://{address}/mcp");
    let (state, seen) = watch::channel(State { url, transport: "streamable-http", ..State::default() });
    let span = error_span!(logs::SERVER, message = name);
    let embedded = issuer.as_ref().map(|issuer| issuer.server.clone());
    let task =
        tokio::spawn(run(server.clone(), embedded, socket, address, state, is_stopped).instrument(span));
    let joined = Joined { planned: planned.clone(), config, server, issuer };
    Ok(Running::new(Workload::Virtual(Box::new(joined)), seen, listener, stop, task))
}

async fn run(
    server: Arc<skep_vmcp::VirtualServer>,
    issuer: Option<Arc<Embedded>>,
    socket: tokio::net::TcpListener,
    address: SocketAddr,
    state: watch::Sender<State>,
    stop: watch::Receiver<bool>,
) {
    if let Some(issuer) = issuer {
        let failed = |why: &str| {
            let failed = |state: &mut State| {
                (state.phase, state.message) = (Phase::Failed, format!("{why}; retrying"));
            };
            state.send_modify(failed);
        };
        tokio::select! {
            () = issuer.wait_until_ready(failed) => {}
            () = stopped(stop.clone()) => return,
        }
        state.send_modify(|state| (state.phase, state.message) = (Phase::Ready, String::new()));
        // Its tools are for callers with a token.
        return report(serve(socket, server, Workers::default(), stopped(stop)).await);
    }
    let serving = serve(socket, server.clone(), Workers::default(), stopped(stop.clone()));
    let watching = async {
        tokio::select! {
            () = watch_tools(address, &server, &state) => {}
            () = stopped(stop.clone()) => {}
        }
    };
    let (served, ()) = tokio::join!(serving, watching);
    report(served);
}

fn report(served: std::io::Result<()>) {
    if let Err(error) = served {
        warn!(%error, "the virtual server stopped");
    }
}

/// Keeps the state up to date: its tools change with its backends.
async fn watch_tools(address: SocketAddr, server: &skep_vmcp::VirtualServer, state: &watch::Sender<State>) {
    let mut changes = server.changes();
    loop {
        changes.mark_unchanged();
        let listed = mcp_client::tools(address).await;
        state.send_if_modified(|state| {
            let before = state.clone();
            state.backends = server.backend_states();
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
