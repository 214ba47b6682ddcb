//! What goes on from the start of a server to its end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use skep_config::RunConfig;
use skep_proxy::{Proxy, Workers, serve};
use tokio::{net::TcpListener, sync::watch, time::sleep};
use tracing::warn;

use super::{
    attachment::Start,
    client::{self, Failure},
    folder::Folder,
    plan::Server,
    process, reach,
    running::{Phase, State},
    trial::{self, stopped},
};

/// How often it is looked how a server is.
const LOOK: Duration = Duration::from_secs(1);
/// How soon what has failed is tried again. The next wait is twice as long.
const AGAIN_FIRST: Duration = Duration::from_secs(2);
/// How long the waits become at most.
const AGAIN_LAST: Duration = Duration::from_secs(30);
/// How many looks in a row a server must be there that has failed, to be called ready.
const STEADY: u32 = 5;

pub(super) struct Life {
    pub(super) server: Server,
    pub(super) config: RunConfig,
    pub(super) start: Start,
    pub(super) proxy: Arc<Proxy>,
    pub(super) state: watch::Sender<State>,
    pub(super) stop: watch::Receiver<bool>,
    /// The files that the proxy may read at any time.
    pub(super) _folder: Folder,
}

impl Life {
    pub(super) async fn run(self, listener: TcpListener, address: SocketAddr) {
        tokio::select! {
            () = self.image() => {}
            () = stopped(self.stop.clone()) => return,
        }
        let process = async {
            if self.server.listens() {
                match self.start.attachment(&self.config) {
                    Ok(server) => process::keep(server, self.stop.clone()).await,
                    Err(error) => self.failed(&error),
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

    /// Sees to it that the image of a container is there.
    async fn image(&self) {
        let Some(recipe) = self.start.recipe() else { return };
        let mut wait = AGAIN_FIRST;
        loop {
            // What goes wrong again and again is told once.
            let tell = |news| {
                self.state.send_if_modified(|state| {
                    let is_first = state.phase == Phase::Pending;
                    if is_first {
                        state.message = news;
                    }
                    is_first
                });
            };
            match recipe.engine.have(&recipe.image, tell).await {
                Ok(()) => {
                    self.state.send_modify(|state| {
                        state.phase = Phase::Pending;
                        state.message.clear();
                    });
                    return;
                }
                Err(why) => self.failed(&format!("{why}; it is tried again")),
            }
            sleep(wait).await;
            wait = (wait * 2).min(AGAIN_LAST);
        }
    }

    /// Finds out what the server offers, and says whether it is only away.
    async fn ask(&self) -> bool {
        match trial::tools(&self.config, &self.server, &self.start, self.stop.clone()).await {
            Ok(tools) => self.state.send_modify(|state| {
                state.phase = Phase::Ready;
                state.tools = tools;
                state.message.clear();
            }),
            Err(Failure::Refused(why)) => self.failed(&why),
            Err(Failure::Away(why)) => {
                let remote = &self.config.remote_url;
                let why = if remote.is_empty() { why } else { reach::unreachable(remote, &why).await };
                self.failed(&format!("{why}; it is tried again"));
                return true;
            }
        }
        false
    }

    fn failed(&self, why: &str) {
        self.state.send_if_modified(|state| {
            let before = state.clone();
            state.phase = Phase::Failed;
            state.message = why.to_owned();
            *state != before
        });
    }

    /// Looks again and again how the server is.
    async fn look(&self, address: SocketAddr, is_stdio: bool, may_recover: bool) {
        let mut steady = 0;
        let mut wait = AGAIN_FIRST;
        loop {
            if !is_stdio && self.state.borrow().phase != Phase::Ready {
                self.ask().await;
                if self.state.borrow().phase == Phase::Failed {
                    sleep(wait).await;
                    wait = (wait * 2).min(AGAIN_LAST);
                    continue;
                }
                wait = AGAIN_FIRST;
            }
            sleep(LOOK).await;
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
