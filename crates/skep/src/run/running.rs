//! A running server with its proxy.

use std::{net::SocketAddr, sync::Arc};

use skep_config::{FieldError, RunConfig, run_config::ProxyMode};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tracing::{Instrument, error_span};

use super::{
    attachment::Start,
    discovery,
    engine::{ContainerSpec, Engine},
    folder::Folder,
    lifecycle::Lifecycle,
    local::{check_program, free_port, listener},
    logs,
    plan::Server,
    prepare::{of_container, prepare},
};

/// The state of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) url: String,
    /// The transport for clients.
    pub(super) transport: &'static str,
    /// Its tools, if known.
    pub(super) tools: Option<Vec<String>>,
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

/// A running server.
pub(super) struct Running {
    pub(super) server: Server,
    pub(super) port: u16,
    pub(super) state: watch::Receiver<State>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts it with this name. `port` is its previous port.
    pub(super) async fn start(
        name: &str,
        server: &Server,
        port: Option<u16>,
        engine: Option<Arc<Engine>>,
    ) -> Result<Self, FieldError> {
        let is_process = server.image.is_none() && server.config.remote_url.is_empty();
        if let Some(program) = server.config.cmd_args.first().filter(|_| is_process) {
            check_program(program).map_err(|message| FieldError::new("", message))?;
        }
        let listener = listener(server.port, port).await?;
        let started = Self::start_on(listener, name, server, engine).await;
        started.map_err(|message| FieldError::new("", message))
    }

    async fn start_on(
        listener: TcpListener,
        name: &str,
        server: &Server,
        engine: Option<Arc<Engine>>,
    ) -> Result<Self, String> {
        let is_process = server.image.is_none() && server.config.remote_url.is_empty();
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let folder = Folder::new().map_err(|error| format!("cannot create a folder: {error}"))?;
        let target_port = match server.target_port.filter(|_| is_process) {
            Some(port) => port,
            None => free_port().await.map_err(|error| format!("no free port: {error}"))?,
        };
        let config = prepare(server, &folder, address.port(), target_port)?;
        let spec = engine.zip(server.image.as_ref()).map(|(engine, image)| {
            Arc::new(ContainerSpec::new(engine, &config, image, |path| folder.place(&of_container(path))))
        });
        let start = spec.map_or_else(Start::process, Start::container);
        let proxy = Arc::new(discovery::proxy(&config, server, &start)?);
        let (state, watched) = watch::channel(initial_state(&config, address));
        let (stop, is_stopped) = watch::channel(false);
        let life = Lifecycle {
            server: server.clone(),
            config,
            start,
            proxy,
            state,
            stop: is_stopped,
            _folder: folder,
        };
        let span = error_span!(logs::SERVER, message = name);
        let task = tokio::spawn(life.run(listener, address).instrument(span));
        Ok(Self { server: server.clone(), port: address.port(), state: watched, stop, task })
    }

    /// Stops it, and waits until it has ended.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.ok();
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
