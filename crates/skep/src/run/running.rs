//! A running server with its proxy.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use serde_json::Value;
use skep_config::{FieldError, RunConfig, run_config::ProxyMode};
use skep_proxy::{CallLog, Extras};
use tokio::{sync::watch, task::JoinHandle};
use tracing::{Instrument, error_span};

use super::{
    attachment::Start,
    discovery,
    engine::{ContainerSpec, Engine},
    folder::Folder,
    lifecycle::Lifecycle,
    logs,
    machine::{Machine, ReservedPort, check_program, server_listener},
    plan::Server,
    prepare::{of_container, prepare},
    virtual_server::Joined,
};
use crate::authorization_server::Embedded;

/// The state of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) url: String,
    /// The transport for clients.
    pub(super) transport: &'static str,
    /// Its tools, if known.
    pub(super) tools: Option<Vec<String>>,
    /// The backends of a virtual server, as its status would have them.
    pub(super) backends: Vec<Value>,
    /// The reason of a problem.
    pub(super) message: String,
}

/// The phases of an MCPServer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Pending,
    Ready,
    Failed,
}

impl Phase {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
        }
    }
}

/// What runs.
pub(super) enum Workload {
    /// A server with its proxy.
    Server(Box<Server>),
    /// The servers of a group at one address.
    Virtual(Box<Joined>),
}

/// A running server.
pub(super) struct Running {
    pub(super) workload: Workload,
    pub(super) state: watch::Receiver<State>,
    /// The socket that it listens on. Its successor takes it over, so that clients notice no closed port.
    listener: TcpListener,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    pub(super) fn new(
        workload: Workload,
        state: watch::Receiver<State>,
        listener: TcpListener,
        stop: watch::Sender<bool>,
        task: JoinHandle<()>,
    ) -> Self {
        Self { workload, state, listener, stop, task }
    }

    /// Stops it, and waits until it has ended.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.ok();
    }

    /// Its socket, unless another port is configured.
    pub(super) fn socket(&self, configured: Option<u16>) -> Option<TcpListener> {
        let port = self.listener.local_addr().ok()?.port();
        configured.is_none_or(|configured| configured == port).then(|| self.listener.try_clone().ok())?
    }
}

/// A server that is ready to be started. What can be checked before has been checked, so that a mistake leaves its
/// predecessor running.
pub(super) struct Prepared {
    name: String,
    listener: TcpListener,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    life: Lifecycle,
}

impl Prepared {
    /// `engine` runs its image, if it has one. Its calls are recorded in `calls`.
    pub(super) fn new(
        name: &str,
        server: &Server,
        previous: Option<&Running>,
        machine: &Machine,
        engine: Option<Arc<Engine>>,
        calls: Option<Arc<CallLog>>,
    ) -> Result<Self, FieldError> {
        let is_process = server.image.is_none() && server.config.remote_url.is_empty();
        if let Some(program) = server.config.cmd_args.first().filter(|_| is_process) {
            check_program(program).map_err(|message| FieldError::new("", message))?;
        }
        let socket = previous.and_then(|previous| previous.socket(server.port));
        let listener = socket.map_or_else(|| server_listener(server.port, &server.id), Ok)?;
        let prepared = Self::on(listener, name, server, machine, engine, calls);
        prepared.map_err(|message| FieldError::new("", message))
    }

    fn on(
        listener: TcpListener,
        name: &str,
        server: &Server,
        machine: &Machine,
        engine: Option<Arc<Engine>>,
        calls: Option<Arc<CallLog>>,
    ) -> Result<Self, String> {
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let folder = Folder::new().map_err(|error| format!("cannot create a folder: {error}"))?;
        // A process may have a fixed port; that of a container is published on any.
        let fixed = server.target_port.filter(|_| server.image.is_none());
        let reserved = match fixed {
            None if server.listens() => {
                Some(ReservedPort::new().map_err(|error| format!("no free port: {error}"))?)
            }
            _ => None,
        };
        let target_port = fixed.or(reserved.as_ref().map(ReservedPort::number)).unwrap_or_default();
        let config = prepare(server, &folder, address.port(), target_port)?;
        let spec = engine.zip(server.image.as_ref()).map(|(engine, image)| {
            Arc::new(ContainerSpec::new(engine, &config, image, |path| folder.place(&of_container(path))))
        });
        let start = spec.map_or_else(|| Start::process(machine.guard.clone()), Start::container);
        let issuer = Embedded::of(&config).map_err(|error| error.to_string())?;
        let authorization_server = issuer.clone().map(|issuer| issuer as _);
        let extras = Extras { authorization_server, call_log: calls, ..Extras::default() };
        let proxy = discovery::proxy(&config, server, &start, extras)?;
        let state = watch::Sender::new(initial_state(&config, address));
        let (stop, is_stopped) = watch::channel(false);
        let life = Lifecycle {
            server: server.clone(),
            config,
            start,
            proxy,
            issuer,
            state,
            stop: is_stopped,
            reserved,
            _folder: folder,
        };
        Ok(Self { name: name.to_owned(), listener, address, stop, life })
    }

    /// Pulls the image of its container if it is missing.
    pub(super) async fn pull_image(&self, report: impl Fn(String)) -> Result<(), String> {
        match self.life.start.spec() {
            Some(spec) => spec.engine.pull_if_missing(&spec.image, report).await,
            None => Ok(()),
        }
    }

    pub(super) fn start(self) -> Result<Running, FieldError> {
        let Self { name, listener, address, stop, life } = self;
        let (workload, state) = (Workload::Server(Box::new(life.server.clone())), life.state.subscribe());
        let socket = listener.try_clone().and_then(tokio::net::TcpListener::from_std);
        let socket = socket.map_err(|error| FieldError::new("", format!("cannot listen: {error}")))?;
        let span = error_span!(logs::SERVER, message = name);
        let task = tokio::spawn(life.run(socket, address).instrument(span));
        Ok(Running { workload, state, listener, stop, task })
    }
}

/// The state of a server that was just started.
fn initial_state(config: &RunConfig, address: SocketAddr) -> State {
    let (transport, path) = match config.proxy_mode() {
        ProxyMode::StreamableHttp => ("streamable-http", "mcp"),
        ProxyMode::Sse => ("sse", "sse"),
    };
    State { url: format!("http://{address}/{path}"), transport, ..State::default() }
}
