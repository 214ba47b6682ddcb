//! The endpoint of an MCP server: everything between the listener and the server.
//!
//! An [`Endpoint`] is a [`Service`], so [`serve`](crate::http::serve) runs it. It knows the routes, and it processes each
//! MCP request in five steps:
//!
//! 1. **Admit.** The head decides whether the request is read at all. First the [`Upstream`] checks what is the same for
//!    every caller, such as the method of HTTP; then the middlewares that need the head only authenticate the caller.
//! 2. **Parse.** The body is read and parsed once. The rest of the program works on slices of it.
//! 3. **Chain.** The other middlewares apply policies and limits, outermost first. Any of them may respond.
//! 4. **Send.** The upstream responds: it forwards the request to a server, or answers from a catalog of several.
//! 5. **Filter.** Lists in the response lose what the caller may not see.
//!
//! However a request ends, also if its client disconnects, the middlewares that record it observe the end: see
//! [`InFlight`](crate::middleware::InFlight).
//!
//! Two programs have an upstream: the proxy in front of one server, and the virtual server in front of many. What differs
//! between them is in [`Upstream`], and nowhere else.

mod routes;
mod upstream;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{Request, Response};
use hyper::body::Incoming;

pub use crate::middleware::Extras;
use crate::{
    body::Budget,
    http::{Body, Service, WellKnown},
    middleware::{Chain, Telemetry},
};
pub use upstream::{Upstream, method_not_allowed};

/// An endpoint in front of an upstream.
pub struct Endpoint<U> {
    upstream: U,
    chain: Arc<Chain>,
    budget: Budget,
    well_known: WellKnown,
    trusts_proxy_headers: bool,
    extras: Extras,
    is_draining: AtomicBool,
}

/// The parts of an endpoint that its configuration determines.
pub struct Parts {
    /// The middlewares.
    pub chain: Arc<Chain>,
    /// The memory for bodies.
    pub budget: Budget,
    /// The metadata of the server, for clients that log in.
    pub well_known: WellKnown,
    /// Whether the `X-Forwarded-*` headers of requests are trusted.
    pub trusts_proxy_headers: bool,
    /// The parts that the program adds.
    pub extras: Extras,
}

impl<U: Upstream> Endpoint<U> {
    /// An endpoint in front of this upstream.
    pub fn new(parts: Parts, upstream: U) -> Self {
        let Parts { chain, budget, well_known, trusts_proxy_headers, extras } = parts;
        let is_draining = AtomicBool::new(false);
        Self { upstream, chain, budget, well_known, trusts_proxy_headers, extras, is_draining }
    }

    /// The upstream.
    pub fn upstream(&self) -> &U {
        &self.upstream
    }

    /// Makes every client use another connection for its next request, and so another replica.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Whether the endpoint is [draining](Self::drain).
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Serves metrics on a port of their own, if they have one. Never completes.
    async fn serve_metrics(&self) {
        if let Some(page) = self.chain.telemetry().and_then(Telemetry::page) {
            page.serve().await;
        }
        std::future::pending().await
    }
}

impl<U: Upstream> Service for Endpoint<U> {
    /// Not an async function, which would store the request twice.
    fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send {
        self.route(request, peer)
    }

    fn is_draining(&self) -> bool {
        Endpoint::is_draining(self)
    }

    async fn run(&self) {
        tokio::select! {
            () = self.serve_metrics() => {}
            () = self.upstream.run(&self.is_draining) => {}
        }
    }

    fn close_streams(&self) {
        if let Some(page) = &self.extras.calls_page {
            page.close();
        }
        self.upstream.close_streams();
    }

    fn stop(&self) -> bool {
        self.upstream.stop()
    }

    async fn flush(&self) {
        self.upstream.flush().await;
        self.chain.flush().await;
    }
}
