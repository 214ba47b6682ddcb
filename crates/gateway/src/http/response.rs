//! Responses that the proxy creates itself.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use skep_mcp::{Id, Rejection};

use crate::http::Body;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// When a service that is unavailable may be available again.
const RETRY_AFTER_SECONDS: u64 = 2;

/// The response to a rejected request. It is in a box because it is rare and large.
pub type ErrorResponse = Box<Response<Body>>;

/// The error response to the request with this id.
pub fn error(rejection: &Rejection, id: Option<Id<'_>>) -> Response<Body> {
    let status = StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = json(status, rejection.body(id));
    let retry_after = match rejection {
        Rejection::RateLimited { retry_after_seconds } => Some(*retry_after_seconds),
        Rejection::Unavailable(_) => Some(RETRY_AFTER_SECONDS),
        _ => None,
    };
    answer.headers_mut().extend(retry_after.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds))));
    answer
}

/// A response in JSON.
pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    with_type(status, JSON, body.into())
}

/// A response in plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    with_type(status, TEXT, body.into())
}

/// A response without a body.
pub fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::Whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

fn with_type(status: StatusCode, type_: HeaderValue, body: Bytes) -> Response<Body> {
    let mut answer = empty(status);
    *answer.body_mut() = Body::Whole(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, type_);
    answer
}
