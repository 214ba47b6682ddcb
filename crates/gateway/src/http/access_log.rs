//! The id of each request, which all its log lines carry, and the line of its end.
//!
//! The id is sent to the server and back to the client, so that the logs of all three can be correlated.

use std::{cell::Cell, fmt::Write as _, net::SocketAddr, pin::pin, sync::Arc, time::Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use skep_mcp::Rejection;
use tracing::{Level, debug, enabled};

use super::{
    Body, Ended, Observer, Service,
    framing::{Framing, strip_hop_by_hop},
    response,
};
use crate::{context::RequestContext, limits, truncate::truncate};

/// The header of the id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Responds to a request under its id.
pub async fn respond(
    service: &impl Service,
    mut request: Request<Incoming>,
    peer: SocketAddr,
) -> Response<Body> {
    let framing = strip_hop_by_hop(&mut request);
    let id = id(request.headers());
    let about = RequestContext::new(id.clone());
    let line = enabled!(Level::DEBUG).then(|| Line::new(&request, &about));
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let mut response = match framing {
        Framing::Unclear => response::empty(StatusCode::BAD_REQUEST),
        Framing::Plain | Framing::Chunked => {
            let responding = pin!(service.respond(request, peer));
            // A panic ends this request alone. The panic hook has logged it.
            let responded = skep_panics::catch(about.scope(responding)).await;
            responded.unwrap_or_else(|_| response::error(&Rejection::Internal, None))
        }
    };
    response.headers_mut().insert(REQUEST_ID, id);
    if framing != Framing::Plain || service.is_draining() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let Some(line) = line else { return response };
    let status = response.status();
    response.map(|body| body.observed(status, vec![Box::new(line)]))
}

/// The id that the client gave, if it is safe to log and to forward, or a new one.
fn id(headers: &HeaderMap) -> HeaderValue {
    let mut given = headers.get_all(&REQUEST_ID).iter();
    if let (Some(id), None) = (given.next(), given.next())
        && (1..=limits::REQUEST_ID).contains(&id.len())
        && id.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:=+/".contains(byte))
    {
        return id.clone();
    }
    HeaderValue::try_from(new_id()).unwrap_or(HeaderValue::from_static("-"))
}

/// An id that no other request has: one of this thread, and a number. It is no secret.
fn new_id() -> String {
    thread_local! {
        static THREAD: String = format!("{:016x}-", uuid::Uuid::new_v4().as_u64_pair().0);
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    // Allocated once.
    let mut id = String::with_capacity(2 * 16 + 1);
    THREAD.with(|thread| id.push_str(thread));
    write!(id, "{:x}", NUMBER.replace(NUMBER.get() + 1)).ok();
    id
}

/// The log line of a request, written when it is dropped: its response has ended, or the client has disconnected.
struct Line {
    about: Arc<RequestContext>,
    started: Instant,
    method: String,
    path: String,
    status: Option<StatusCode>,
    bytes: u64,
}

impl Line {
    fn new(request: &Request<Incoming>, about: &Arc<RequestContext>) -> Self {
        Self {
            about: about.clone(),
            started: Instant::now(),
            method: truncate(request.method().as_str()).into_owned(),
            // Without its query, which may hold a secret.
            path: truncate(request.uri().path()).into_owned(),
            status: None,
            bytes: 0,
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Self { about, started, method, path, status, bytes } = self;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        about.during(|| match status.map(|status| status.as_u16()) {
            Some(status) => debug!(method, path, status, bytes, duration_ms, "request completed"),
            None => debug!(method, path, duration_ms, "client disconnected before the response"),
        });
    }
}

impl Observer for Line {
    fn prefix(&self) -> usize {
        0
    }

    fn ended(mut self: Box<Self>, end: Ended) {
        (self.status, self.bytes) = (Some(end.status), end.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_s_request_id_is_used_if_it_is_short_and_plain() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(REQUEST_ID, value.parse().unwrap());
            }
            id(&headers).to_str().unwrap().to_owned()
        };
        assert_eq!(of(&["Root=1-67891233-abcdef012345"]), "Root=1-67891233-abcdef012345");
        let long = "a".repeat(limits::REQUEST_ID + 1);
        for values in [&[][..], &[""], &["a b"], &["a\"b"], &["a", "b"], &[&long]] {
            assert!(of(values).starts_with(&new_id()[..17]), "{values:?}");
        }
        assert_ne!(of(&[]), of(&[]));
    }
}
