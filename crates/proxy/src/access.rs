//! The id of each request, which every line about it carries, and the line of its end.
//!
//! The id goes to the server and back to the client, so that what each of the three says of a request can be found by it.

use std::{
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use skep_mcp::Method as McpMethod;
use tracing::{Level, debug, enabled};

use crate::{
    Proxy,
    about::{About, about},
    answer,
    arrival::{self, Arrival},
    body::{Body, Ended, Observer},
    cut::cut,
    exchange::Exchange,
    limits,
};

/// The header of the id.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers a request under its id.
pub(crate) async fn answered(
    proxy: &Proxy,
    mut request: Request<Incoming>,
    peer: SocketAddr,
) -> Response<Body> {
    let arrival = arrival::taken_off(&mut request);
    let id = id(request.headers());
    let about = About::new(id.clone());
    let line = enabled!(Level::DEBUG).then(|| Line::new(&request, &about));
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let mut response = match arrival {
        Arrival::Unclear => answer::empty(StatusCode::BAD_REQUEST),
        Arrival::Plain | Arrival::Chunked => about.throughout(pin!(proxy.answer(request, peer))).await,
    };
    response.headers_mut().insert(REQUEST_ID, id);
    if arrival != Arrival::Plain || proxy.leaves() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let Some(line) = line else { return response };
    let status = response.status();
    response.map(|body| body.observed(status, vec![Box::new(line)]))
}

/// Adds to the lines of a request what it asks for, once that is known.
pub(crate) fn noted(exchange: &Exchange) {
    let Some(call) = exchange.call.as_ref().filter(|_| enabled!(Level::DEBUG)) else { return };
    let target = call.target.as_deref().unwrap_or_default();
    let tool = (call.method == Some(McpMethod::ToolsCall)).then(|| cut(target).into_owned());
    if let Some(about) = about() {
        about.asks(cut(&call.method_name).into_owned(), tool);
    }
}

/// The id that the client gave, if it is one that can be told anywhere, or a new one.
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

/// An id that no other request has: one of this process, and a number. Nobody is kept from guessing it.
fn new_id() -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| uuid::Uuid::new_v4().as_u64_pair().0);
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}-{:x}", *PROCESS, NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The line of a request, written when nobody holds it any more: its answer has ended, or nobody waits for one.
struct Line {
    about: Arc<About>,
    started: Instant,
    method: String,
    path: String,
    status: Option<StatusCode>,
    bytes: u64,
}

impl Line {
    fn new(request: &Request<Incoming>, about: &Arc<About>) -> Self {
        Self {
            about: about.clone(),
            started: Instant::now(),
            method: cut(request.method().as_str()).into_owned(),
            // Without its query, which may hold a secret.
            path: cut(request.uri().path()).into_owned(),
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
            Some(status) => debug!(method, path, status, bytes, duration_ms, "answered"),
            None => debug!(method, path, duration_ms, "nobody waits for the answer any more"),
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
    fn an_id_is_taken_over_if_it_is_short_and_plain() {
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

    /// It is moved into its connection once for each request.
    #[test]
    fn what_answers_a_request_is_small() {
        fn size<A, B, C, R>(_: impl FnOnce(A, B, C) -> R) -> usize {
            std::mem::size_of::<R>()
        }
        let size = size(|proxy: &'static Proxy, request, peer| answered(proxy, request, peer));
        assert!(size <= 5 << 10, "{size} bytes");
    }
}
