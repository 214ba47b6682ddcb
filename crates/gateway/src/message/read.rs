//! Reading a request.

use std::{net::SocketAddr, time::Instant};

use ::http::{HeaderMap, Method, Request, StatusCode, uri::PathAndQuery};
use bytes::Bytes;
use hyper::body::Incoming;
use skep_mcp::{Id, Rejection};

use super::{Exchange, ParsedMessage};
use crate::{
    body::{self, Budget, ReadError},
    http::{ErrorResponse, content_type, response},
    limits,
};

/// Reads a request to its end, and parses its message by `parse` before any middleware decides about it.
pub async fn read(
    request: Request<Incoming>,
    peer: SocketAddr,
    body_limit: usize,
    budget: &Budget,
    parse: impl FnOnce(&HeaderMap, &Bytes) -> Result<ParsedMessage, Rejection>,
) -> Result<Exchange, ErrorResponse> {
    let started = Instant::now();
    let (parts, incoming) = request.into_parts();
    let reading = body::read_counted(incoming, body_limit, budget);
    let (body, share) = match tokio::time::timeout(limits::BODY_TIME, reading).await {
        Ok(Ok(body)) => body,
        Ok(Err(ReadError::TooLarge)) => return Err(Box::new(response::error(&Rejection::TooLarge, None))),
        Ok(Err(ReadError::Exhausted)) => {
            return Err(Box::new(response::error(&Rejection::Unavailable("memory"), None)));
        }
        Ok(Err(ReadError::Broken)) => return Err(Box::new(response::empty(StatusCode::BAD_REQUEST))),
        Err(_) => return Err(Box::new(response::empty(StatusCode::REQUEST_TIMEOUT))),
    };
    // A server that takes a message by any method would see one that no middleware has seen.
    if !body.is_empty() && parts.method != Method::POST {
        return Err(Box::new(response::text(StatusCode::BAD_REQUEST, "only POST has a body\n")));
    }
    let message = if body.is_empty() {
        None
    } else if !content_type::is_plain_json(&parts.headers) {
        let message = "a message must be application/json in UTF-8, and not compressed\n";
        return Err(Box::new(response::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)));
    } else {
        let message = parse(&parts.headers, &body);
        Some(message.map_err(|rejection| Box::new(response::error(&rejection, Id::of_rejected(&body))))?)
    };
    Ok(Exchange {
        started,
        method: parts.method,
        path: parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")),
        headers: parts.headers,
        body,
        is_changed: false,
        share,
        peer,
        message,
        identity: None,
        metrics: None,
    })
}
