//! Reading the body of a request.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use ::http::{HeaderMap, Method, StatusCode};
use bytes::Bytes;
use hyper::body::Incoming;
use skep_mcp::{Id, Rejection};
use tokio::time::error::Elapsed;

use super::{Exchange, ParsedMessage};
use crate::{
    body::{self, ReadError},
    headers::MCP_PROTOCOL_VERSION,
    http::{ErrorResponse, content_type, response},
    identity::Holder,
    limits,
};

/// Reads the body of a request to its end, and parses its message by `parse`.
pub async fn read(
    exchange: &mut Exchange,
    incoming: Incoming,
    body_limit: usize,
    parse: impl FnOnce(&HeaderMap, &Bytes) -> Result<ParsedMessage, Rejection>,
) -> Result<(), ErrorResponse> {
    let (identity, peer) = (exchange.caller.identity.as_deref(), exchange.peer.ip());
    let holder = || Some(Holder::of(identity, peer));
    let reading = body::read_counted_of(incoming, body_limit, &mut exchange.share, holder);
    let body = match in_time(reading).await {
        Ok(Ok(body)) => body,
        Ok(Err(ReadError::TooLarge)) => return Err(Box::new(response::error(&Rejection::TooLarge, None))),
        Ok(Err(ReadError::Exhausted)) => {
            return Err(Box::new(response::error(&Rejection::Unavailable("memory"), None)));
        }
        Ok(Err(ReadError::Broken)) => return Err(Box::new(response::empty(StatusCode::BAD_REQUEST))),
        Err(_) => return Err(Box::new(response::empty(StatusCode::REQUEST_TIMEOUT))),
    };
    let has_message = exchange.method == Method::POST;
    // Middlewares see messages only. So a server must neither get a message by another method, nor a POST without one.
    if has_message == body.is_empty() {
        let message = if has_message { "POST needs a message\n" } else { "only POST has a body\n" };
        return Err(Box::new(response::text(StatusCode::BAD_REQUEST, message)));
    }
    if !has_message {
        // What is in front, and the server, may each read another.
        if exchange.headers.get_all(&MCP_PROTOCOL_VERSION).iter().nth(1).is_some() {
            let message = "MCP-Protocol-Version is duplicated\n";
            return Err(Box::new(response::text(StatusCode::BAD_REQUEST, message)));
        }
        return Ok(());
    }
    if !content_type::is_plain_json(&exchange.headers) {
        let message = "a message must be application/json in UTF-8, and not compressed\n";
        return Err(Box::new(response::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)));
    }
    let message = parse(&exchange.headers, &body);
    let message =
        message.map_err(|rejection| Box::new(response::error(&rejection, Id::of_rejected(&body))))?;
    (exchange.message, exchange.body) = (Some(message), body);
    Ok(())
}

/// What is read, unless it takes too long. Most bodies have arrived together with their heads, and need no timer.
async fn in_time<T>(reading: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut reading = pin!(reading);
    match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        Poll::Ready(read) => Ok(read),
        Poll::Pending => tokio::time::timeout(limits::BODY_TIME, reading).await,
    }
}

/// How much is read of the body of a request that was rejected by its head, and for how long.
const DISCARDED: usize = 64 << 10;
const DISCARD_TIME: Duration = Duration::from_secs(1);

/// Reads what a client may have sent already. Without it, closing the connection could destroy the response on its way.
pub async fn discard(incoming: Incoming) {
    tokio::time::timeout(DISCARD_TIME, body::discard(incoming, DISCARDED)).await.ok();
}
