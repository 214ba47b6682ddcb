//! The routes of an endpoint, and the steps of an MCP request.

use std::{
    future::{Future, ready},
    net::SocketAddr,
};

use futures::{FutureExt, future::Either};
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use skep_config::calls;

use super::{Endpoint, Extras, Upstream};
use crate::{
    headers::last_forwarded,
    http::{Body, ErrorResponse},
    message::{self, Exchange},
    middleware::{METRICS, Telemetry, not_served},
};

impl<U: Upstream> Endpoint<U> {
    /// Not an async function, which would store the request twice.
    pub(super) fn route(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send {
        let (method, path) = (request.method(), request.uri().path());
        let Extras { authorization_server, calls_page, administration, .. } = &self.extras;
        if let Some(server) = authorization_server.as_ref().filter(|server| server.serves(path)) {
            let forwarded = last_forwarded(request.headers()).filter(|_| self.trusts_proxy_headers);
            let client = forwarded.unwrap_or_else(|| peer.ip());
            return Either::Left(server.respond(request, client).map(|page| page.map(Body::Whole)).boxed());
        }
        if let Some(page) = administration.as_ref().filter(|page| page.serves(path)) {
            return Either::Left(
                async move { page.respond(request.method(), request.uri(), request.headers()).await }.boxed(),
            );
        }
        if let Some(page) = calls_page.as_ref().filter(|_| path == calls::PATH) {
            return Either::Left(
                async move { page.respond(request.method(), request.headers()).await }.boxed(),
            );
        }
        if path == METRICS {
            let page = self.chain.telemetry().and_then(Telemetry::page);
            let response = page.map_or_else(not_served, |page| page.respond(method));
            return Either::Left(ready(response).boxed());
        }
        if path.starts_with("/.well-known/") {
            return Either::Left(ready(self.well_known.respond(&request)).boxed());
        }
        match self.upstream.page(method, path) {
            Some(page) => Either::Left(page),
            None => Either::Right(self.mcp(request, peer)),
        }
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
        let parse = |headers: &HeaderMap, body: &_| self.upstream.parse(headers, body);
        message::read(exchange, body, self.chain.body_limit(), parse).await?;
        self.upstream.unwrap(exchange).map_err(|rejection| exchange.reject(&rejection))?;
        exchange.describe();
        self.chain.request(exchange, Some(self.upstream.tools())).await?;
        let response = self.upstream.send(exchange).await;
        let response = response.map_err(|rejection| exchange.reject(&rejection))?;
        let response = self.chain.filter(exchange, response, &self.budget).await;
        Ok(self.upstream.complete(exchange, response).await)
    }

    /// Decides by the head of a request whether it is read at all: the caller must be authenticated before anything is
    /// stored for it.
    async fn admit(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        self.upstream.check_head(exchange)?;
        self.chain.admit(exchange).await?;
        self.upstream.check_path(exchange)
    }
}
