//! The part of an endpoint that differs between programs.

use std::{
    future::{Future, ready},
    sync::atomic::AtomicBool,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use skep_mcp::Rejection;

use crate::{
    http::{Body, ErrorResponse, response},
    message::{Exchange, ParsedMessage},
    middleware::Tools,
};

/// A server, or several, behind an [`Endpoint`](super::Endpoint).
pub trait Upstream: Send + Sync + 'static {
    /// The response to a request that is not for MCP, such as a probe. `None` if the request is for MCP.
    fn page<'a>(&'a self, method: &Method, path: &str) -> Option<BoxFuture<'a, Response<Body>>>;

    /// Checks the head of a request before its caller is authenticated.
    fn check_head(&self, exchange: &Exchange) -> Result<(), ErrorResponse>;

    /// Checks the path of a request whose caller is authenticated.
    fn check_path(&self, _exchange: &Exchange) -> Result<(), ErrorResponse> {
        Ok(())
    }

    /// Parses the message of a request.
    fn parse(&self, headers: &HeaderMap, body: &Bytes) -> Result<ParsedMessage, Rejection> {
        ParsedMessage::of(headers, body)
    }

    /// Replaces a message that wraps another one by that other one, before any policy sees it.
    fn unwrap(&self, _exchange: &mut Exchange) -> Result<(), Rejection> {
        Ok(())
    }

    /// The tools that requests may call, for policies that read their hints.
    fn tools(&self) -> Tools<'_>;

    /// Responds to a request that has passed through the chain.
    fn send(&self, exchange: &Exchange) -> impl Future<Output = Result<Response<Body>, Rejection>> + Send;

    /// Completes a response, in which lists have only what the caller may see.
    fn complete(
        &self,
        _exchange: &Exchange,
        response: Response<Body>,
    ) -> impl Future<Output = Response<Body>> + Send {
        ready(response)
    }

    /// Does the work that no request waits for, until it is dropped.
    fn run(&self, is_draining: &AtomicBool) -> impl Future<Output = ()> + Send;

    /// Ends the streams of clients that only listen. Requests in flight are completed.
    fn close_streams(&self);

    /// Stops what [`run`](Self::run) has started, and returns whether the listener waits for it.
    fn stop(&self) -> bool {
        false
    }

    /// Ends what must not outlive the process, within a limit.
    fn flush(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// The response to a request whose method of HTTP is not one of these.
pub fn method_not_allowed(methods: &[Method]) -> ErrorResponse {
    let methods = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let mut response =
        response::text(StatusCode::METHOD_NOT_ALLOWED, format!("the method must be one of {methods}\n"));
    if let Ok(methods) = HeaderValue::try_from(methods) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    Box::new(response)
}
