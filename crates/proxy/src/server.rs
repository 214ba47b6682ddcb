//! The server behind the proxy, as the upstream of its endpoint.

use std::{
    net::Ipv4Addr,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, Method, Response, StatusCode, request::Parts};
use serde_json::Value;
use skep_config::run_config::Transport;
use skep_gateway::{
    body::Budget,
    endpoint::{Upstream, method_not_allowed},
    headers::MCP_PROTOCOL_VERSION,
    http::{Body, ErrorResponse, response},
    message::{Caller, Exchange, ParsedMessage},
    middleware::{Chain, Tools},
    sessions::Sessions,
};
use skep_mcp::{Era, Rejection, Revision};
use tokio::sync::watch;

use crate::{
    health::{Availability, Health},
    limits,
    stdio::{Status, StdioServer},
    upstream::HttpServer,
};

/// The server behind the proxy.
pub(crate) struct Server {
    pub(crate) connection: Connection,
    pub(crate) chain: Arc<Chain>,
    pub(crate) budget: Budget,
    pub(crate) sessions: Sessions,
    pub(crate) health: Health,
    pub(crate) transport: Transport,
    pub(crate) stateless: bool,
}

/// The connection to the server, by its transport.
pub(crate) enum Connection {
    Http(Box<HttpServer>),
    Stdio(StdioServer),
}

impl Server {
    /// Sends a request of the proxy itself, perhaps for a caller, about which no middleware has to decide. It gets the
    /// headers that each request to the server gets.
    pub(crate) async fn send_own(
        &self,
        head: Parts,
        caller: Option<&Exchange>,
        message: Value,
    ) -> Result<Response<Body>, Rejection> {
        let peer = caller.map_or((Ipv4Addr::LOCALHOST, 0).into(), |caller| caller.peer);
        let identity = caller.and_then(|caller| caller.caller.identity.clone());
        let mut exchange = Exchange::new(head, peer, &self.budget);
        exchange.caller = Caller { identity, ..Caller::default() };
        if !message.is_null() {
            exchange.body = message.to_string().into();
            exchange.message = Some(self.parse(&exchange.headers, &exchange.body)?);
        }
        let prepared = self.chain.prepare(&mut exchange).await;
        prepared.map_err(|_| Rejection::Denied)?;
        self.send(&exchange).await
    }

    /// Counts how often the server has announced other tools. One behind HTTP does so to clients that listen.
    pub(crate) fn tool_changes(&self) -> watch::Receiver<u64> {
        match &self.connection {
            Connection::Http(server) => server.tool_changes(),
            Connection::Stdio(server) => server.tool_changes(),
        }
    }

    /// Whether clients use the HTTP+SSE transport of 2024.
    pub(crate) fn is_http_sse(&self) -> bool {
        match &self.connection {
            Connection::Http(server) => server.is_http_sse(),
            Connection::Stdio(server) => server.is_http_sse(),
        }
    }

    async fn availability(&self) -> Availability {
        match &self.connection {
            Connection::Http(server) => server.availability().await,
            Connection::Stdio(server) => match server.status() {
                Status::Ready => Availability::Up,
                Status::Starting => Availability::Down("the server is starting"),
                Status::Down => Availability::Down("the server cannot be started"),
            },
        }
    }

    /// The response to a probe. While the server starts, it waits a moment.
    async fn probe(&self, method: Method) -> Response<Body> {
        let start = Instant::now();
        let mut availability = self.availability().await;
        while self.health.waits(availability) && start.elapsed() < limits::HEALTH_HOLD {
            tokio::time::sleep(limits::SERVER_PAUSE).await;
            availability = self.availability().await;
        }
        let transport = match &self.connection {
            Connection::Http(_) => self.transport.as_str(),
            Connection::Stdio(server) => server.front(),
        };
        self.health.respond(&method, transport, availability)
    }

    /// The methods of HTTP that MCP has. Since 2026-07-28 there are no sessions, so there is nothing to listen to or to
    /// end.
    fn methods(&self, headers: &HeaderMap) -> &'static [Method] {
        let version = headers.get(&MCP_PROTOCOL_VERSION).and_then(|value| Revision::named(value.as_bytes()));
        let modern = version.is_some_and(|revision| revision.era() == Era::Modern);
        match &self.connection {
            Connection::Http(server) if server.is_http_sse() && server.is_remote() => {
                &[Method::GET, Method::POST]
            }
            _ if self.stateless || modern => &[Method::POST, Method::OPTIONS],
            _ => &[Method::GET, Method::HEAD, Method::POST, Method::DELETE, Method::OPTIONS],
        }
    }
}

impl Upstream for Server {
    fn page<'a>(&'a self, method: &Method, path: &str) -> Option<BoxFuture<'a, Response<Body>>> {
        (path == "/health").then(|| self.probe(method.clone()).boxed())
    }

    fn check_head(&self, exchange: &Exchange) -> Result<(), ErrorResponse> {
        let methods = self.methods(&exchange.headers);
        if methods.contains(&exchange.method) { Ok(()) } else { Err(method_not_allowed(methods)) }
    }

    fn check_path(&self, exchange: &Exchange) -> Result<(), ErrorResponse> {
        match &self.connection {
            Connection::Http(server) if !server.accepts(&exchange.method, exchange.path.path()) => {
                Err(Box::new(response::text(StatusCode::NOT_FOUND, "the server has no such endpoint\n")))
            }
            _ => Ok(()),
        }
    }

    /// In revisions with headers that mirror the message, these are checked.
    fn parse(&self, headers: &HeaderMap, body: &Bytes) -> Result<ParsedMessage, Rejection> {
        if self.is_http_sse() { ParsedMessage::of_2024(body) } else { ParsedMessage::of(headers, body) }
    }

    fn tools(&self) -> Tools<'_> {
        Tools::OfServer(self)
    }

    async fn send(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        match &self.connection {
            Connection::Http(server) => server.send(exchange, &self.chain).await,
            Connection::Stdio(server) => server.send(exchange).await,
        }
    }

    /// Expires idle sessions, and keeps a stdio server running.
    async fn run(&self, _: &AtomicBool) {
        let run = async {
            match &self.connection {
                Connection::Http(server) => server.run().await,
                Connection::Stdio(server) => server.run().await,
            }
        };
        tokio::select! {
            () = self.sessions.expire() => {}
            () = run => {}
        }
    }

    fn close_streams(&self) {
        match &self.connection {
            Connection::Http(server) => server.close_streams(),
            Connection::Stdio(server) => server.close(),
        }
    }

    fn stop(&self) -> bool {
        match &self.connection {
            Connection::Http(_) => false,
            Connection::Stdio(server) => {
                server.stop();
                true
            }
        }
    }
}
