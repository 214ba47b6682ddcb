//! Virtual servers: the servers of a group at one address, within this process.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_config::{AuthServer, FieldError, env, field::joined, objects, paths, yaml};
use skep_converge::Child;
use skep_operator::render::Rendered;
use skep_vmcp::{CallLog, Extras, Listen, Settings, Workers, serve};
use tokio::sync::watch;
use tracing::{Instrument, error_span, warn};

use super::{
    auth_server::{self, Addresses, replace_texts},
    config_sources::ConfigSources,
    discovery::stopped,
    folder::Folder,
    logs,
    machine::server_listener,
    plan,
    running::{Phase, Running, State, Workload},
};
use crate::{
    authorization_server::Embedded,
    mcp_client::{self, ClientError},
};

/// The variables and files of a pod that a virtual server uses here, by the starts of their names.
const VARIABLES: [&str; 6] = [
    "TOOLHIVE_HEADER_",
    "TOOLHIVE_OBO_",
    "TOOLHIVE_XAA_",
    env::TOKEN_EXCHANGE_CLIENT_SECRET,
    env::SECRET_PREFIX,
    env::VMCP_OIDC_CLIENT_SECRET,
];
const FOLDERS: [&str; 2] = [paths::ENTRY_CERTS_FOLDER, paths::CERTS_FOLDER];

/// The objects with virtual servers that get the members of their groups from the operator: there is no cluster in which they
/// could discover them, with how to authenticate to each.
pub(super) fn with_known_members(objects: &[DynamicObject]) -> Vec<DynamicObject> {
    let mut known = objects.to_vec();
    let is_virtual = |object: &&mut DynamicObject| {
        object.types.as_ref().is_some_and(|types| types.kind == "VirtualMCPServer")
    };
    for server in known.iter_mut().filter(is_virtual) {
        let group = server.data["spec"]["groupRef"]["name"].as_str().unwrap_or_default().to_owned();
        let is_member = |object: &DynamicObject| {
            object.metadata.namespace == server.metadata.namespace && member(object, &group).is_some()
        };
        if objects.iter().any(is_member) && server.data["spec"].is_object() {
            server.data["spec"]["outgoingAuth"]["source"] = "inline".into();
        }
    }
    known
}

/// A virtual server of a file.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct VirtualServer {
    /// Its kind, namespace and name.
    id: String,
    /// Its configuration, as the operator writes it.
    config: Value,
    /// The members of its group that it can use.
    members: Vec<Member>,
    /// What its pod would have: variables with secrets for its backends, and files with certificates.
    variables: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
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
    /// A server that has no proxy of its own, as it is configured.
    Entry(Value),
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
        let mut config: Value = yaml::parse(text).map_err(|error| FieldError::new("", error.to_string()))?;
        let group = config["groupRef"].as_str().unwrap_or_default();
        let of_namespace =
            || all.iter().filter(|object| object.metadata.namespace.as_deref() == Some(&*target.namespace));
        let usable = config["backends"].as_array().map(Vec::as_slice).unwrap_or_default();
        let members = of_namespace().filter_map(|object| {
            let name = object.metadata.name.as_deref()?;
            let usable = usable.iter().find(|backend| backend["name"] == name)?;
            match member(object, group)? {
                Member::Entry(_) => Some(Member::Entry(usable.clone())),
                server => Some(server),
            }
        });
        let members = members.collect();
        let own = of_namespace().find(|object| {
            object.types.as_ref().is_some_and(|types| types.kind == target.kind.kind)
                && object.metadata.name.as_deref() == Some(&*target.name)
        });
        // An EmbeddingServer does not run here.
        if own.is_some_and(|own| own.data["spec"].get("embeddingServerRef").is_some())
            && let Some(search) = config["optimizer"].as_object_mut()
        {
            search.remove("embeddingService");
        }
        let mut pod = plan::deployment(children)?;
        auth_server::keep(&mut pod["containers"][0], &VARIABLES, &FOLDERS);
        let sources = ConfigSources::new(all, &target.namespace);
        let variables = sources.proxy_variables(&pod)?;
        let files = sources.files(&pod)?;
        let id = format!("{}/{}/{}", target.kind.kind, target.namespace, target.name);
        Ok(Self { id, config, members, variables, files, issuer })
    }

    /// Its configuration on this machine: with the addresses of the proxies whose servers have been ready, and without what
    /// replicas share.
    pub(super) fn local(&self, address: impl Fn(&str) -> Option<State>) -> Value {
        let backends = self.members.iter().filter_map(|member| match member {
            Member::Entry(backend) => Some(backend.clone()),
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
        let env = sources.proxy_variables(&pod)?;
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
    match &**kind {
        "MCPServer" | "MCPRemoteProxy" => {
            let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
            let owners = [format!("{kind} {namespace}/{name}"), format!("{kind} {name}")];
            Some(Member::Server { owners, name })
        }
        "MCPServerEntry" => Some(Member::Entry(json!({"name": name}))),
        _ => None,
    }
}

/// A virtual server that runs.
pub(super) struct Joined {
    planned: VirtualServer,
    config: Value,
    server: skep_vmcp::VirtualServer,
    place: Place,
}

/// What a virtual server has on this machine.
struct Place {
    issuer: Option<Started>,
    variables: BTreeMap<String, String>,
    /// Its files, by their paths in a pod.
    files: BTreeMap<String, String>,
    _folder: Option<Folder>,
}

impl Place {
    fn new(planned: &VirtualServer, port: u16) -> Result<Self, String> {
        let issuer = planned.issuer.as_ref().map(|issuer| issuer.start(port)).transpose()?;
        let mut place =
            Self { issuer, variables: planned.variables.clone(), files: BTreeMap::new(), _folder: None };
        if planned.files.is_empty() {
            return Ok(place);
        }
        let folder = Folder::new().map_err(|error| format!("cannot create a folder: {error}"))?;
        for (path, content) in &planned.files {
            folder.write(path, content).map_err(|error| format!("cannot write a file: {error}"))?;
            place.files.insert(path.clone(), folder.place(path).to_string_lossy().into_owned());
        }
        place._folder = Some(folder);
        Ok(place)
    }
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
            || (&planned.variables, &planned.files) != (&self.planned.variables, &self.planned.files)
        {
            return Ok(false);
        }
        if config != self.config {
            let changed = self.server.set_backends(&settings(&config, &self.place, None)?);
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

fn settings(config: &Value, place: &Place, calls: Option<Arc<CallLog>>) -> Result<Settings, FieldError> {
    let wrong = |message: String| FieldError::new("spec.config", message);
    let mut config = config.clone();
    replace_texts(&mut config, &|text| place.files.get(text).cloned());
    let issuer = place.issuer.as_ref();
    if let Some(issuer) = issuer {
        replace_texts(&mut config, &|text| issuer.addresses.here(text));
        // It is in this process, and on loopback.
        config["incomingAuth"]["oidc"]["insecureAllowHttp"] = true.into();
    }
    let settings = Settings::parse(&config.to_string()).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        wrong(all.join("; "))
    })?;
    let settings = settings.with_variables(place.variables.clone());
    let authorization_server = issuer.map(|issuer| issuer.server.clone() as _);
    let settings =
        settings.with_extras(Extras { authorization_server, call_log: calls, ..Extras::default() });
    settings.map_err(|error| wrong(error.to_string()))
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
    let listener = socket.map_or_else(|| server_listener(None, &planned.id), Ok)?;
    let address = listener.local_addr().map_err(|error| wrong(error.to_string()))?;
    let place = Place::new(planned, address.port()).map_err(wrong)?;
    let server = settings(&config, &place, calls)?.server(&listen, None);
    let server = server.map_err(|error| FieldError::new("spec.config", error.to_string()))?;
    let socket = listener.try_clone().and_then(tokio::net::TcpListener::from_std);
    let socket = socket.map_err(|error| wrong(format!("cannot listen: {error}")))?;
    let (stop, is_stopped) = watch::channel(false);
    let url = format!("http://{address}/mcp");
    let (state, seen) = watch::channel(State { url, transport: "streamable-http", ..State::default() });
    let span = error_span!(logs::SERVER, message = name);
    let embedded = place.issuer.as_ref().map(|issuer| issuer.server.clone());
    let task =
        tokio::spawn(run(server.clone(), embedded, socket, address, state, is_stopped).instrument(span));
    let joined = Joined { planned: planned.clone(), config, server, place };
    Ok(Running::new(Workload::Virtual(Box::new(joined)), seen, listener, stop, task))
}

async fn run(
    server: skep_vmcp::VirtualServer,
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
        return report(serve(socket, server.endpoint(), Workers::default(), stopped(stop)).await);
    }
    let serving = serve(socket, server.endpoint(), Workers::default(), stopped(stop.clone()));
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
