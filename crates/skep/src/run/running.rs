//! One server that runs, with its proxy.

use std::{net::SocketAddr, sync::Arc};

use skep_config::{RunConfig, run_config::ProxyMode};
use tokio::{sync::watch, task::JoinHandle};
use tracing::{Instrument, error_span};

use super::{
    attachment::Start,
    engine::{Engine, Recipe},
    folder::Folder,
    life::Life,
    logs,
    place::{findable, free_port, listener},
    plan::Server,
    prepare::{of_container, prepared},
    trial,
};

/// How a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) url: String,
    /// How clients speak to it.
    pub(super) transport: &'static str,
    /// What it offers, if that is known.
    pub(super) tools: Option<Vec<String>>,
    /// What is the matter.
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

/// A server that runs.
pub(super) struct Running {
    pub(super) server: Server,
    pub(super) port: u16,
    pub(super) state: watch::Receiver<State>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts it under this name. `port` is the one that it had before.
    pub(super) async fn start(
        name: &str,
        server: &Server,
        port: Option<u16>,
        engine: Option<Arc<Engine>>,
    ) -> Result<Self, String> {
        let is_process = server.image.is_none() && server.config.remote_url.is_empty();
        if let Some(program) = server.config.cmd_args.first().filter(|_| is_process) {
            findable(program)?;
        }
        let listener = listener(server.port, port).await?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let folder = Folder::new().map_err(|error| format!("cannot make a folder: {error}"))?;
        let target_port = match server.target_port.filter(|_| is_process) {
            Some(port) => port,
            None => free_port().await.map_err(|error| format!("there is no free port: {error}"))?,
        };
        let config = prepared(server, &folder, address.port(), target_port)?;
        let recipe = engine.zip(server.image.as_ref()).map(|(engine, image)| {
            Arc::new(Recipe::new(engine, &config, image, |path| folder.place(&of_container(path))))
        });
        let start = recipe.map_or_else(Start::process, Start::container);
        let proxy = Arc::new(trial::proxy(&config, server, &start)?);
        let (state, watched) = watch::channel(beginning(&config, address));
        let (stop, is_stopped) = watch::channel(false);
        let life =
            Life { server: server.clone(), config, start, proxy, state, stop: is_stopped, _folder: folder };
        let span = error_span!(logs::SERVER, message = name);
        let task = tokio::spawn(life.run(listener, address).instrument(span));
        Ok(Self { server: server.clone(), port: address.port(), state: watched, stop, task })
    }

    /// Ends it, and waits until it has.
    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        self.task.await.ok();
    }
}

/// A server that is to be said of nothing yet.
fn beginning(config: &RunConfig, address: SocketAddr) -> State {
    let (transport, path) = match config.proxy_mode() {
        ProxyMode::StreamableHttp => ("streamable-http", "mcp"),
        ProxyMode::Sse => ("sse", "sse"),
    };
    State { url: format!("http://{address}/{path}"), transport, ..State::default() }
}
