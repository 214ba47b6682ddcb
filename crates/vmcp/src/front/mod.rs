//! The endpoint of a virtual server.
//!
//! A request passes through the chain of middlewares, which authenticate the caller, limit rates, apply policies and
//! record it. Then its method decides: a few are answered here ([`methods`]), lists come from the catalog of the session
//! ([`lists`]), and everything else is for one backend ([`call`]), whose messages are relayed ([`relay`]).

mod answer;
mod call;
mod guard;
mod lists;
mod methods;
mod pages;
mod process;
mod relay;
mod stream;

mod rpc;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, future::join_all};
use http::{Request, Response};
use hyper::body::Incoming;
use skep_gateway::{
    body::Budget,
    http::{Body, Service, WellKnown},
    message::Exchange,
    middleware::Chain,
    sessions::Memory,
};
use skep_mcp::{Envelope, Era, Method};
use tokio::sync::{Mutex, mpsc, watch};

use crate::{
    backend::Caller,
    limits,
    session::{ClientSession, Ended, Known, Opened, Presence},
    views::Views,
};
use guard::Guard;

/// A virtual MCP server.
pub struct VirtualServer {
    pub(crate) name: Arc<str>,
    pub(crate) group: String,
    pub(crate) views: Arc<Views>,
    pub(crate) chain: Chain,
    well_known: WellKnown,
    sessions: Arc<Memory<Known>>,
    /// The sessions at backends of callers that have none here, since 2026-07-28.
    stateless: Arc<Memory<Known>>,
    presence: Presence,
    ended: Ended,
    ending: Mutex<mpsc::Receiver<Opened>>,
    passthrough: Vec<http::HeaderName>,
    guard: Guard,
    budget: Budget,
    number: AtomicU64,
    closing: watch::Sender<bool>,
    is_leaving: AtomicBool,
}

/// What a virtual server is made of.
pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    pub(crate) group: String,
    pub(crate) views: Arc<Views>,
    pub(crate) chain: Chain,
    pub(crate) well_known: WellKnown,
    pub(crate) passthrough: Vec<http::HeaderName>,
    pub(crate) session_life: Duration,
    /// Whether it listens on this machine only.
    pub(crate) is_local: bool,
}

/// A request of a client that has passed through the chain.
pub(crate) struct ClientRequest<'a> {
    exchange: &'a Exchange,
    envelope: Envelope<'a>,
    method: Method,
    era: Era,
    /// Its id, as it is spelled.
    id: &'a str,
    session: Arc<ClientSession>,
    caller: Caller,
}

impl VirtualServer {
    pub(crate) fn with(parts: Parts) -> Self {
        let Parts { name, group, views, chain, well_known, passthrough, session_life, is_local } = parts;
        let (ended, ending) = mpsc::channel(limits::ENDING_SESSIONS);
        Self {
            name,
            group,
            views,
            chain,
            well_known,
            sessions: Arc::new(Memory::new(session_life)),
            stateless: Arc::new(Memory::new(session_life)),
            presence: Presence::new(),
            ended,
            ending: Mutex::new(ending),
            passthrough,
            guard: Guard::new(is_local),
            budget: Budget::new(skep_gateway::limits::BODIES),
            number: AtomicU64::new(1),
            closing: watch::Sender::new(false),
            is_leaving: AtomicBool::new(false),
        }
    }

    /// Checks that what the server needs beside its backends is available. To be called before it serves.
    pub async fn check(&self) -> Result<(), crate::ConfigError> {
        self.chain.check().await
    }

    /// Makes every client use another connection for its next request, and so another replica.
    pub fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// A number that no other request to a backend has.
    fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends sessions at backends that are no longer needed, for ever.
    async fn end_sessions(&self) {
        let mut ending = self.ending.lock().await;
        let sessions = futures::stream::poll_fn(|context| ending.poll_recv(context));
        sessions
            .for_each_concurrent(limits::ENDING_AT_ONCE, |Opened { backend, link, caller }| async move {
                let closed = backend.close(&link, &caller);
                tokio::time::timeout(limits::END_SESSION_TIME, closed).await.ok();
            })
            .await;
    }
}

impl Service for VirtualServer {
    fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send {
        self.route(request, peer)
    }

    fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    async fn run(&self) {
        let backends = self.views.backends();
        tokio::select! {
            () = self.sessions.expire() => {}
            () = self.stateless.expire() => {}
            () = self.end_sessions() => {}
            _ = join_all(backends.values().map(|backend| backend.run(self.presence.count()))) => {}
        }
    }

    fn close_streams(&self) {
        self.closing.send_replace(true);
    }

    fn stop(&self) -> bool {
        false
    }

    async fn flush(&self) {
        if let Some(telemetry) = self.chain.telemetry() {
            telemetry.flush().await;
        }
    }
}
