//! One server that runs, with its proxy.

use std::{env, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use skep_config::{RunConfig, run_config::ProxyMode};
use skep_proxy::{Proxy, Workers, runtime::Local, serve};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tracing::warn;

use super::{
    client::{self, Failure},
    folder::Folder,
    plan::{COMMAND, Server},
    prepare::prepared,
    process,
    trial::{self, stopped},
};

/// The port that is taken if it is free, and the manifest names none.
const USUAL_PORT: u16 = 8080;
/// How often it is looked how a server is.
const LOOK: Duration = Duration::from_secs(1);
/// How often a server is asked for its tools that has not told them yet, in looks.
const ASK_AGAIN: u32 = 15;

/// How many looks in a row a process must be there that has failed, to be called ready.
const STEADY: u32 = 5;

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
    /// Starts it. `port` is the one that it had before.
    pub(super) async fn start(server: &Server, port: Option<u16>) -> Result<Self, String> {
        if let Some(program) = server.config.cmd_args.first() {
            findable(program)?;
        }
        let listener = listener(server.port, port).await?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let folder = Folder::new().map_err(|error| format!("cannot make a folder: {error}"))?;
        let target_port = match server.target_port {
            Some(port) => port,
            None => free_port().await.map_err(|error| format!("there is no free port: {error}"))?,
        };
        let config = prepared(server, &folder, address.port(), target_port)?;
        let proxy = Arc::new(trial::proxy(&config, server)?);
        let (state, watched) = watch::channel(beginning(&config, address));
        let (stop, is_stopped) = watch::channel(false);
        let life = Life { server: server.clone(), config, proxy, state, stop: is_stopped, _folder: folder };
        let task = tokio::spawn(life.run(listener, address));
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

/// What goes on from the start of a server to its end.
struct Life {
    server: Server,
    config: RunConfig,
    proxy: Arc<Proxy>,
    state: watch::Sender<State>,
    stop: watch::Receiver<bool>,
    /// The files that the proxy may read at any time.
    _folder: Folder,
}

impl Life {
    async fn run(self, listener: TcpListener, address: SocketAddr) {
        let process = async {
            if self.server.listens() {
                match Local::new(&self.config) {
                    Ok(local) => process::keep(local, self.stop.clone()).await,
                    Err(error) => self.failed(&error.to_string()),
                }
            }
        };
        let proxy = async {
            // Two processes of one stdio server are never there at once.
            let is_stdio = !self.server.listens() && self.config.remote_url.is_empty();
            let mut may_recover = false;
            if is_stdio {
                may_recover = self.ask().await;
            }
            let serving = serve(listener, self.proxy.clone(), Workers::default(), stopped(self.stop.clone()));
            let looking = async {
                tokio::select! {
                    () = self.look(address, is_stdio, may_recover) => {}
                    () = stopped(self.stop.clone()) => {}
                }
            };
            let (served, ()) = tokio::join!(serving, looking);
            if let Err(error) = served {
                warn!(%error, "the proxy has ended");
            }
        };
        tokio::join!(process, proxy);
    }

    /// Finds out what the server offers, and says whether it is only away.
    async fn ask(&self) -> bool {
        match trial::tools(&self.config, &self.server, self.stop.clone()).await {
            Ok(tools) => self.state.send_modify(|state| {
                state.phase = Phase::Ready;
                state.tools = tools;
                state.message.clear();
            }),
            Err(Failure::Refused(why)) => self.failed(&why),
            Err(Failure::Away(why)) => {
                self.failed(&why);
                return true;
            }
        }
        false
    }

    fn failed(&self, why: &str) {
        self.state.send_modify(|state| {
            state.phase = Phase::Failed;
            state.message = why.to_owned();
        });
    }

    /// Looks again and again how the server is.
    async fn look(&self, address: SocketAddr, is_stdio: bool, may_recover: bool) {
        let mut steady = 0;
        for turn in 0u32.. {
            if !is_stdio && self.state.borrow().phase != Phase::Ready && turn % ASK_AGAIN == 0 {
                self.ask().await;
            }
            tokio::time::sleep(LOOK).await;
            let seen = client::health(address).await;
            steady = if matches!(seen, Some(Ok(()))) { steady + 1 } else { 0 };
            let recovered = may_recover && steady >= STEADY;
            self.state.send_if_modified(|state| {
                let before = state.clone();
                match (seen, state.phase) {
                    (Some(Ok(())), phase) if phase == Phase::Pending || recovered => {
                        state.phase = Phase::Ready;
                        state.message.clear();
                    }
                    (Some(Err(why)), Phase::Ready) => {
                        state.phase = Phase::Pending;
                        state.message = why;
                    }
                    _ => {}
                }
                *state != before
            });
        }
    }
}

/// A program that is not there would be tried for ever.
fn findable(program: &str) -> Result<(), String> {
    let is_file = |path: &Path| path.is_file();
    let found = if program.contains('/') {
        is_file(Path::new(program))
    } else {
        env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|folder| is_file(&folder.join(program))))
    };
    if found {
        return Ok(());
    }
    Err(format!("there is no program {program}: install it, or change the annotation {COMMAND}"))
}

/// The port that the manifest asks for must be free. If it asks for none, any will do.
async fn listener(wanted: Option<u16>, before: Option<u16>) -> Result<TcpListener, String> {
    let bind = |port| TcpListener::bind(("127.0.0.1", port));
    if let Some(port) = wanted {
        let taken = |error: io::Error| {
            format!(
                "spec.proxyPort: cannot listen on 127.0.0.1:{port}: {error}: choose another, or leave it out"
            )
        };
        return bind(port).await.map_err(taken);
    }
    for port in [before.unwrap_or(USUAL_PORT), 0] {
        if let Ok(listener) = bind(port).await {
            return Ok(listener);
        }
    }
    Err("there is no free port on 127.0.0.1".into())
}

async fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).await?.local_addr()?.port())
}
