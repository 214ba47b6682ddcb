//! The routes of a proxy, and how it processes a request.

use std::{
    future::{Future, ready},
    net::{Ipv4Addr, SocketAddr},
    time::Instant,
};

use futures::{FutureExt, future::Either};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;
use serde_json::Value;
use skep_config::calls;
use skep_gateway::{
    headers::{MCP_PROTOCOL_VERSION, last_forwarded},
    http::{Body, ErrorResponse, response},
    message::{self, Exchange},
    middleware::{METRICS, Telemetry, Tools, not_served},
};
use skep_mcp::{Era, Rejection, Revision};

use super::Proxy;
use crate::limits;

impl Proxy {
    /// Not an async function, which would store the request twice.
    pub(super) fn route(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send {
        let (method, path) = (request.method(), request.uri().path());
        if let Some(server) = self.authorization_server.as_ref().filter(|server| server.serves(path)) {
            let forwarded = last_forwarded(request.headers()).filter(|_| self.trusts_proxy_headers);
            let client = forwarded.unwrap_or_else(|| peer.ip());
            return Either::Left(server.respond(request, client).map(|page| page.map(Body::Whole)).boxed());
        }
        if self.administration.as_ref().is_some_and(|page| page.serves(path)) {
            return Either::Left(self.administer(request).boxed());
        }
        match path {
            "/health" => Either::Left(self.health(method.clone()).boxed()),
            METRICS => Either::Left(ready(self.metrics(method)).boxed()),
            path if path.starts_with("/.well-known/") => {
                Either::Left(ready(self.well_known.respond(&request)).boxed())
            }
            calls::PATH if self.calls_page.is_some() => Either::Left(self.calls(request).boxed()),
            _ => Either::Right(self.mcp(request, peer)),
        }
    }

    async fn calls(&self, request: Request<Incoming>) -> Response<Body> {
        match &self.calls_page {
            Some(page) => page.respond(request.method(), request.headers()).await,
            None => response::empty(StatusCode::NOT_FOUND),
        }
    }

    async fn administer(&self, request: Request<Incoming>) -> Response<Body> {
        match &self.administration {
            Some(page) => page.respond(request.method(), request.uri(), request.headers()).await,
            None => response::empty(StatusCode::NOT_FOUND),
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
        let (head, body) = request.into_parts();
        let mut request = self.chain.observed(Exchange::new(head, peer, &self.budget));
        let response = self.process(&mut request.exchange, body).await.unwrap_or_else(|response| *response);
        request.respond(response)
    }

    async fn process(
        &self,
        exchange: &mut Exchange,
        body: Incoming,
    ) -> Result<Response<Body>, ErrorResponse> {
        if let Err(response) = self.admit(exchange).await {
            message::discard(body).await;
            return Err(response);
        }
        let parse = |headers: &HeaderMap, body: &_| self.server.parse(headers, body);
        message::read(exchange, body, self.chain.body_limit(), parse).await?;
        exchange.describe();
        self.chain.request(exchange, Some(Tools::OfServer(self))).await?;
        let response = self.server.send(exchange, &self.chain).await;
        let response = response.map_err(|rejection| exchange.reject(&rejection))?;
        Ok(self.chain.filter(exchange, response, &self.budget).await)
    }

    /// Sends a request of the proxy itself, perhaps for a caller, which no middleware has to judge. It gets what each request to the
    /// server gets.
    pub(crate) async fn send_own(
        &self,
        head: Parts,
        caller: Option<&Exchange>,
        message: Value,
    ) -> Result<Response<Body>, Rejection> {
        let peer = caller.map_or((Ipv4Addr::LOCALHOST, 0).into(), |caller| caller.peer);
        let mut exchange = Exchange::new(head, peer, &self.budget);
        exchange.identity = caller.and_then(|caller| caller.identity.clone());
        if !message.is_null() {
            exchange.body = message.to_string().into();
            exchange.message = Some(self.server.parse(&exchange.headers, &exchange.body)?);
        }
        let prepared = self.chain.prepare(&mut exchange).await;
        prepared.map_err(|_| Rejection::Denied)?;
        self.server.send(&exchange, &self.chain).await
    }

    /// Whether clients use the HTTP+SSE transport of 2024.
    pub(crate) fn is_http_sse(&self) -> bool {
        self.server.is_http_sse()
    }

    /// Decides by the head of a request whether it is read at all: the caller must be authenticated before anything is
    /// stored for it.
    async fn admit(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        self.check_method(exchange)?;
        self.chain.admit(exchange).await?;
        if self.server.accepts(&exchange.method, exchange.path.path()) {
            return Ok(());
        }
        Err(Box::new(response::text(StatusCode::NOT_FOUND, "the server has no such endpoint\n")))
    }

    fn check_method(&self, exchange: &Exchange) -> Result<(), ErrorResponse> {
        let methods = self.methods(&exchange.headers);
        if methods.contains(&exchange.method) {
            return Ok(());
        }
        let mut response =
            response::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be one of Allow\n");
        let methods = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        if let Ok(methods) = HeaderValue::try_from(methods) {
            response.headers_mut().insert(header::ALLOW, methods);
        }
        Err(Box::new(response))
    }

    /// The methods of HTTP that MCP has. Since 2026-07-28 there are no sessions, so there is nothing to listen to or to
    /// end.
    fn methods(&self, headers: &HeaderMap) -> &'static [Method] {
        let version = headers.get(&MCP_PROTOCOL_VERSION).and_then(|value| Revision::named(value.as_bytes()));
        let modern = version.is_some_and(|revision| revision.era() == Era::Modern);
        match () {
            () if self.server.is_remote_http_sse() => &[Method::GET, Method::POST],
            () if self.stateless || modern => &[Method::POST, Method::OPTIONS],
            () => &[Method::GET, Method::HEAD, Method::POST, Method::DELETE, Method::OPTIONS],
        }
    }
}
