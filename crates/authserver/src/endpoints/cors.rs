//! Requests of pages of other origins: clients that run in a browser. They carry no cookies.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use crate::response;

const HEADERS: [(HeaderName, &str); 2] = [
    (header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, MCP-Protocol-Version"),
    (header::ACCESS_CONTROL_MAX_AGE, "86400"),
];

/// Whether a browser asks before it sends a request (Fetch Standard, section 3.3.3).
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

pub(super) fn preflight(methods: &'static str) -> Response<Bytes> {
    let mut response = response::with(StatusCode::NO_CONTENT, HEADERS, Bytes::new());
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    allow(&mut response);
    response
}

pub(super) fn allow(response: &mut Response<Bytes>) {
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}
