//! The virtual server as the upstream of its endpoint.

use std::{
    future::ready,
    sync::{Arc, atomic::AtomicBool},
};

use futures::{FutureExt, future::BoxFuture};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use skep_gateway::{
    endpoint::{Upstream, method_not_allowed},
    http::{Body, ErrorResponse, response},
    message::Exchange,
    middleware::Tools,
};
use skep_mcp::{Rejection, Revision, header::MCP_PROTOCOL_VERSION};

use super::{Front, pages::Page};
use crate::backend::Caller;

/// The path of MCP.
const MCP: &str = "/mcp";
const METHODS: [Method; 3] = [Method::GET, Method::POST, Method::DELETE];

/// The backends behind the endpoint of a virtual server.
pub(crate) struct Backends(pub(super) Arc<Front>);

impl Upstream for Backends {
    fn page<'a>(&'a self, method: &Method, path: &str) -> Option<BoxFuture<'a, Response<Body>>> {
        if path == MCP {
            return None;
        }
        let error = |status, text: &'static str| ready(response::text(status, text)).boxed();
        Some(match Page::at(path) {
            None => error(StatusCode::NOT_FOUND, "no such page; MCP is at /mcp\n"),
            Some(_) if !matches!(*method, Method::GET | Method::HEAD) => {
                error(StatusCode::METHOD_NOT_ALLOWED, "the method must be GET\n")
            }
            Some(page) => self.0.page(page).boxed(),
        })
    }

    fn check_head(&self, exchange: &Exchange) -> Result<(), ErrorResponse> {
        match exchange.method {
            Method::POST if !exchange.headers.contains_key(header::CONTENT_TYPE) => {
                let message = "Content-Type must be application/json\n";
                return Err(Box::new(response::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)));
            }
            Method::GET if !accepts_events(&exchange.headers) => {
                let body = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Accept must have text/event-stream"}}"#;
                return Err(Box::new(response::json(StatusCode::NOT_ACCEPTABLE, body)));
            }
            Method::POST | Method::DELETE | Method::GET => {}
            _ => return Err(method_not_allowed(&METHODS)),
        }
        if let Some(rejection) = self.0.guard.rejection(&exchange.headers) {
            return Err(Box::new(rejection));
        }
        // The message of a request may name a version, too, and then the response has another form.
        if exchange.method != Method::POST && has_unknown_version(&exchange.headers) {
            return Err(Box::new(unknown_version()));
        }
        Ok(())
    }

    fn unwrap(&self, exchange: &mut Exchange) -> Result<(), Rejection> {
        self.0.unwrap_call(exchange)
    }

    fn tools(&self) -> Tools<'_> {
        Tools::OfCaller(&*self.0)
    }

    async fn send(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        match exchange.method {
            Method::GET => self.0.listen(exchange).await,
            Method::DELETE => self.0.end_session(exchange).await,
            _ => self.0.message(exchange).await,
        }
    }

    async fn complete(&self, exchange: &Exchange, response: Response<Body>) -> Response<Body> {
        self.0.with_description(exchange, response).await
    }

    async fn run(&self, is_draining: &AtomicBool) {
        let front = &self.0;
        tokio::select! {
            () = front.sessions.expire() => {}
            () = front.stateless.expire() => {}
            () = front.parked.expire() => {}
            () = front.end_sessions() => {}
            () = front.run_backends() => {}
            () = front.factory.close_idle_connections() => {}
            () = front.discover() => {}
            () = front.become_ready() => {}
            () = front.report(is_draining) => {}
            () = front.run_search() => {}
        }
    }

    fn close_streams(&self) {
        self.0.closing.send_replace(true);
    }

    async fn flush(&self) {
        self.0.end_all_sessions().await;
    }
}

impl Front {
    /// For whom requests to backends are sent.
    pub(super) fn caller(&self, exchange: &Exchange) -> Caller {
        let authorization = exchange.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token =
            authorization.and_then(|value| value.split_once(' ')).map(|(_, token)| token.trim().into());
        Caller {
            identity: exchange.caller.identity.clone(),
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
