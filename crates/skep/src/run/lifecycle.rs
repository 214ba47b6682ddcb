//! A server from its start to its end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use skep_config::RunConfig;
use skep_proxy::{Proxy, Workers, serve};
use tokio::{net::TcpListener, sync::watch, time::sleep};
use tracing::warn;

use super::{
    attachment::Start,
    discovery::{self, stopped},
    folder::Folder,
    machine::ReservedPort,
    plan::Server,
    process, reachability,
    running::{Phase, State},
};
use crate::{
    authorization_server::Embedded,
    mcp_client::{self, ClientError},
};

/// How often the health of a server is checked.
const LOOK: Duration = Duration::from_secs(1);
/// The first delay of retries. Each further delay is twice as long.
const AGAIN_FIRST: Duration = Duration::from_secs(2);
/// The longest delay of retries.
const AGAIN_LAST: Duration = Duration::from_secs(30);
/// How many successful checks in a row make a failed server ready.
const STEADY: u32 = 5;

pub(super) struct Lifecycle {
    pub(super) server: Server,
    pub(super) config: RunConfig,
    pub(super) start: Start,
    pub(super) proxy: Proxy,
    /// The authorization server of the proxy.
    pub(super) issuer: Option<Arc<Embedded>>,
    pub(super) state: watch::Sender<State>,
    pub(super) stop: watch::Receiver<bool>,
    /// The port that its process or container is about to listen on.
    pub(super) reserved: Option<ReservedPort>,
    /// The files that the proxy may read at any time.
    pub(super) _folder: Folder,
}

impl Lifecycle {
    pub(super) async fn run(mut self, listener: TcpListener, address: SocketAddr) {
        let reserved = self.reserved.take();
        tokio::select! {
            () = self.pull_image() => {}
            () = stopped(self.stop.clone()) => return,
        }
        let process = async {
            if self.server.listens() {
                drop(reserved);
                match self.start.attachment(&self.config) {
                    Ok(server) => process::keep(server, self.stop.clone()).await,
                    Err(error) => self.set_failed(&error),
                }
            }
        };
        let proxy = async {
            // A stdio server never has two processes at the same time.
            let is_stdio = !self.server.listens() && self.config.remote_url.is_empty();
            let mut may_recover = false;
            tokio::select! {
                () = self.check_issuer() => {}
                () = stopped(self.stop.clone()) => return,
            }
            if is_stdio {
                may_recover = self.discover_tools().await;
            }
            let serving =
                serve(listener, self.proxy.endpoint(), Workers::default(), stopped(self.stop.clone()));
            let watching = async {
                tokio::select! {
                    () = self.watch_health(address, is_stdio, may_recover) => {}
                    () = stopped(self.stop.clone()) => {}
                }
            };
            let (served, ()) = tokio::join!(serving, watching);
            if let Err(error) = served {
                warn!(%error, "the proxy stopped");
            }
        };
        tokio::join!(process, proxy);
    }

    /// Pulls the image of a container if it is missing.
    async fn pull_image(&self) {
        let Some(spec) = self.start.spec() else { return };
        let mut wait = AGAIN_FIRST;
        loop {
            // A repeated failure is reported once.
            let report = |news| {
                self.state.send_if_modified(|state| {
                    let is_first = state.phase == Phase::Pending;
                    if is_first {
                        state.message = news;
                    }
                    is_first
                });
            };
            match spec.engine.pull_if_missing(&spec.image, report).await {
                Ok(()) => {
                    self.state.send_modify(|state| {
                        state.phase = Phase::Pending;
                        state.message.clear();
                    });
                    return;
                }
                Err(why) => self.set_failed(&format!("{why}; retrying")),
            }
            sleep(wait).await;
            wait = (wait * 2).min(AGAIN_LAST);
        }
    }

    /// Waits until the identity providers of the authorization server can be used.
    async fn check_issuer(&self) {
        let Some(issuer) = &self.issuer else { return };
        issuer.wait_until_ready(|why| self.set_failed(&format!("{why}; retrying"))).await;
        self.state.send_modify(|state| {
            state.phase = Phase::Pending;
            state.message.clear();
        });
    }

    /// Lists the tools of the server. Returns whether the server is only unavailable.
    async fn discover_tools(&self) -> bool {
        match discovery::tools(&self.config, &self.server, &self.start, self.stop.clone()).await {
            Ok(tools) => self.state.send_modify(|state| {
                state.phase = Phase::Ready;
                state.tools = tools;
                state.message.clear();
            }),
            Err(ClientError::Rejected(why)) => self.set_failed(&why),
            Err(ClientError::Unavailable(why)) => {
                let remote = &self.config.remote_url;
                let why = if remote.is_empty() { why } else { reachability::unreachable(remote, &why).await };
                self.set_failed(&format!("{why}; retrying"));
                return true;
            }
        }
        false
    }

    fn set_failed(&self, why: &str) {
        self.state.send_if_modified(|state| {
            let before = state.clone();
            state.phase = Phase::Failed;
            state.message = why.to_owned();
            *state != before
        });
    }

    /// Checks the health of the server periodically.
    async fn watch_health(&self, address: SocketAddr, is_stdio: bool, may_recover: bool) {
        let mut steady = 0;
        let mut wait = AGAIN_FIRST;
        loop {
            if !is_stdio && self.state.borrow().phase != Phase::Ready {
                self.discover_tools().await;
                if self.state.borrow().phase == Phase::Failed {
                    sleep(wait).await;
                    wait = (wait * 2).min(AGAIN_LAST);
                    continue;
                }
                wait = AGAIN_FIRST;
            }
            sleep(LOOK).await;
            let seen = mcp_client::health(address).await;
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
