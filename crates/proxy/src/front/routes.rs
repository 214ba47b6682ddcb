//! The routes of a proxy, and how it processes a request.

use std::{
    future::{Future, ready},
    net::SocketAddr,
    time::Instant,
};

use futures::{FutureExt, future::Either};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use skep_gateway::{
    http::{Body, response},
    message::{self, Exchange},
    middleware::{METRICS, Telemetry, not_served},
};
use skep_mcp::{Era, Revision, header::MCP_PROTOCOL_VERSION};

use super::Proxy;
use crate::limits;

impl Proxy {
    /// Not an async function, which would store the request twice.
    pub(super) fn route(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send {
        let method = request.method();
        match request.uri().path() {
            "/health" => Either::Left(self.health(method.clone()).boxed()),
            METRICS => Either::Left(ready(self.metrics(method)).boxed()),
            path if path.starts_with("/.well-known/") => {
                Either::Left(ready(self.well_known.respond(&request)).boxed())
            }
            _ => Either::Right(self.mcp(request, peer)),
        }
    }

    fn metrics(&self, method: &Method) -> Response<Body> {
        let page = self.chain.telemetry().and_then(Telemetry::page);
        page.map_or_else(not_served, |page| page.respond(method))
    }

    async fn health(&self, method: Method) -> Response<Body> {
        let start = Instant::now();
        let mut condition = self.server.condition().await;
        while self.health.waits(condition) && start.elapsed() < limits::HEALTH_HOLD {
            tokio::time::sleep(limits::SERVER_PAUSE).await;
            condition = self.server.condition().await;
        }
        let transport = self.server.front_transport().unwrap_or(self.transport.as_str());
        self.health.respond(&method, transport, condition)
    }

    async fn mcp(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        let methods = self.methods(request.headers());
        if !methods.split(", ").any(|method| method == request.method().as_str()) {
            let mut response =
                response::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be one of Allow\n");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
            return response;
        }
        let parse = |headers: &HeaderMap, body: &_| self.server.parse(headers, body);
        let read = message::read(request, peer, self.chain.body_limit(), &self.budget, parse).await;
        let mut exchange = match read {
            Ok(exchange) => exchange,
            Err(response) => return *response,
        };
        exchange.describe();
        let response = self.process(&mut exchange).await;
        self.chain.observe(&exchange, response)
    }

    async fn process(&self, exchange: &mut Exchange) -> Response<Body> {
        if let Err(response) = self.chain.request(exchange).await {
            return *response;
        }
        match self.server.send(exchange, &self.chain).await {
            Ok(response) => self.chain.filter(exchange, response, &self.budget).await,
            Err(rejection) => *exchange.reject(&rejection),
        }
    }

    /// The methods of HTTP that MCP has. Since 2026-07-28 there are no sessions, so there is nothing to listen to or to
    /// end.
    fn methods(&self, headers: &HeaderMap) -> &'static str {
        let version = headers.get(MCP_PROTOCOL_VERSION).and_then(|value| Revision::named(value.as_bytes()));
        let modern = version.is_some_and(|revision| revision.era() == Era::Modern);
        if self.stateless || modern { "POST, OPTIONS" } else { "GET, HEAD, POST, DELETE, OPTIONS" }
    }
}
