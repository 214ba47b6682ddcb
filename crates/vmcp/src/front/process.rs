//! The routes of a virtual server, and how it processes a request.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use skep_config::calls;
use skep_gateway::{
    http::{Body, ErrorResponse, response},
    message::{self, Exchange, ParsedMessage},
    middleware::{CallOutcome, METRICS, Telemetry, Tools, not_served},
};
use skep_mcp::{Revision, header::MCP_PROTOCOL_VERSION};

use super::Front;
use crate::backend::Caller;

/// The path of MCP.
const MCP: &str = "/mcp";
const NO_PAGE: &str = "no such page; MCP is at /mcp\n";
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

impl Front {
    pub(super) async fn route(
        self: &Arc<Self>,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> Response<Body> {
        let (path, method) = (request.uri().path(), request.method());
        if let Some(server) = self.authorization_server.as_ref().filter(|server| server.serves(path)) {
            return server.respond(request, peer.ip()).await.map(Body::Whole);
        }
        if let Some(page) = self.administration.as_ref().filter(|page| page.serves(path)) {
            return page.respond(method, request.uri(), request.headers()).await;
        }
        match path {
            MCP => self.mcp(request, peer).await,
            METRICS => match self.chain.telemetry().and_then(Telemetry::page) {
                Some(page) => page.respond(method),
                None => not_served(),
            },
            calls::PATH => match &self.calls_page {
                Some(page) => page.respond(method, request.headers()).await,
                None => response::text(StatusCode::NOT_FOUND, NO_PAGE),
            },
            path if path.starts_with("/.well-known/") => self.well_known.respond(&request),
            path => match self.page(path).await {
                Some(_) if !matches!(*method, Method::GET | Method::HEAD) => {
                    response::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET\n")
                }
                Some(page) => page,
                None => response::text(StatusCode::NOT_FOUND, NO_PAGE),
            },
        }
    }

    async fn mcp(self: &Arc<Self>, request: Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        let (head, body) = request.into_parts();
        let mut request = self.chain.observed(Exchange::new(head, peer, &self.budget));
        let response = self.process(&mut request.exchange, body).await.unwrap_or_else(|response| *response);
        request.respond(response)
    }

    async fn process(
        self: &Arc<Self>,
        exchange: &mut Exchange,
        body: Incoming,
    ) -> Result<Response<Body>, ErrorResponse> {
        if let Err(response) = self.admit(exchange).await {
            message::discard(body).await;
            return Err(response);
        }
        message::read(exchange, body, self.chain.body_limit(), ParsedMessage::of).await?;
        let sender = self.unwrap_call(exchange).map_err(|rejection| exchange.reject(&rejection))?;
        exchange.describe();
        if let Err(rejection) = self.chain.request(exchange, Some(Tools::OfCaller(&**self))).await {
            self.record_call(sender, CallOutcome::Failure, exchange.started);
            return Err(rejection);
        }
        let response = match exchange.method {
            Method::GET => self.listen(exchange).await,
            Method::DELETE => self.end_session(exchange).await,
            _ => self.message(exchange, sender).await,
        };
        let response = response.map_err(|rejection| exchange.reject(&rejection))?;
        let response = self.chain.filter(exchange, response, &self.budget).await;
        Ok(self.with_description(exchange, response).await)
    }

    /// Decides by the head of a request whether it is read at all.
    async fn admit(&self, exchange: &mut Exchange) -> Result<(), ErrorResponse> {
        match exchange.method {
            Method::POST if !exchange.headers.contains_key(header::CONTENT_TYPE) => {
                let message = "Content-Type must be application/json\n";
                return Err(Box::new(response::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)));
            }
            Method::POST | Method::DELETE => {}
            Method::GET if accepts_events(&exchange.headers) => {}
            Method::GET => {
                let body = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Accept must have text/event-stream"}}"#;
                return Err(Box::new(response::json(StatusCode::NOT_ACCEPTABLE, body)));
            }
            _ => {
                let mut rejection =
                    response::text(StatusCode::METHOD_NOT_ALLOWED, "the method must be one of Allow\n");
                rejection.headers_mut().insert(header::ALLOW, METHODS);
                return Err(Box::new(rejection));
            }
        }
        if let Some(rejection) = self.guard.rejection(&exchange.headers) {
            return Err(Box::new(rejection));
        }
        // The message of a request may name a version, too, and then the response has another form.
        if exchange.method != Method::POST && has_unknown_version(&exchange.headers) {
            return Err(Box::new(unknown_version()));
        }
        self.chain.admit(exchange).await
    }

    /// For whom requests to backends are sent.
    pub(super) fn caller(&self, exchange: &Exchange) -> Caller {
        let authorization = exchange.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token =
            authorization.and_then(|value| value.split_once(' ')).map(|(_, token)| token.trim().into());
        Caller {
            identity: exchange.identity.clone(),
            token,
            headers: self.passed_headers(exchange),
            holder: Some(exchange.holder()),
        }
    }

    /// The headers of a request that backends get.
    pub(super) fn passed_headers(&self, exchange: &Exchange) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in &self.passthrough {
            for value in exchange.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        headers
    }
}

/// Whether a request names a revision that is not supported.
pub(super) fn has_unknown_version(headers: &HeaderMap) -> bool {
    let version = headers.get(MCP_PROTOCOL_VERSION).map(HeaderValue::as_bytes);
    version.is_some_and(|version| !version.is_empty() && Revision::named(version).is_none())
}

/// The response to it.
pub(super) fn unknown_version() -> Response<Body> {
    let message = "MCP-Protocol-Version is not a version that is supported\n";
    response::text(StatusCode::BAD_REQUEST, message)
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| {
        let kind = part.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream") || kind == "*/*" || kind == "text/*"
    })
}
