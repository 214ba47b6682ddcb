//! The server behind the proxy, by the transport that it speaks.

use bytes::Bytes;
use http::{HeaderMap, Method, Response};
use skep_gateway::{
    http::Body,
    message::{Exchange, ParsedMessage},
    middleware::Chain,
};
use skep_mcp::Rejection;
use tokio::sync::watch;

use crate::{
    health::Condition,
    stdio::{Status, StdioServer},
    upstream::HttpServer,
};

/// The server.
pub(super) enum Server {
    Http(Box<HttpServer>),
    Stdio(StdioServer),
}

impl Server {
    /// Sends a request that has passed through the chain.
    pub(super) async fn send(&self, exchange: &Exchange, chain: &Chain) -> Result<Response<Body>, Rejection> {
        match self {
            Self::Http(server) => server.send(exchange, chain).await,
            Self::Stdio(server) => server.send(exchange).await,
        }
    }

    /// Does what is to be done beside requests.
    pub(super) async fn run(&self) {
        match self {
            Self::Http(server) => server.run().await,
            Self::Stdio(server) => server.run().await,
        }
    }

    /// Counts how often it has announced other tools. A server behind HTTP does so to clients that listen.
    pub(super) fn tool_changes(&self) -> watch::Receiver<u64> {
        match self {
            Self::Http(server) => server.tool_changes(),
            Self::Stdio(server) => server.tool_changes(),
        }
    }

    /// Whether it is available.
    pub(super) async fn condition(&self) -> Condition {
        match self {
            Self::Http(server) => server.condition().await,
            Self::Stdio(server) => match server.status() {
                Status::Ready => Condition::Up,
                Status::Starting => Condition::Down("the server is starting"),
                Status::Down => Condition::Down("the server cannot be started"),
            },
        }
    }

    /// The transport that clients speak, where it is not the server's.
    pub(super) fn front_transport(&self) -> Option<&'static str> {
        match self {
            Self::Http(_) => None,
            Self::Stdio(server) => Some(server.front()),
        }
    }

    /// Whether it is a remote server that speaks the HTTP+SSE transport of 2024.
    pub(super) fn is_remote_http_sse(&self) -> bool {
        matches!(self, Self::Http(server) if server.is_http_sse() && server.is_remote())
    }

    /// Whether clients use the HTTP+SSE transport of 2024.
    pub(super) fn is_http_sse(&self) -> bool {
        match self {
            Self::Http(server) => server.is_http_sse(),
            Self::Stdio(server) => server.is_http_sse(),
        }
    }

    /// Whether a request by this method to this path may be sent to it.
    pub(super) fn accepts(&self, method: &Method, path: &str) -> bool {
        match self {
            Self::Http(server) => server.accepts(method, path),
            Self::Stdio(_) => true,
        }
    }

    /// The message of a request, with the headers that belong to it in revisions that have such headers.
    pub(super) fn parse(&self, headers: &HeaderMap, body: &Bytes) -> Result<ParsedMessage, Rejection> {
        if self.is_http_sse() { ParsedMessage::of_2024(body) } else { ParsedMessage::of(headers, body) }
    }
}
