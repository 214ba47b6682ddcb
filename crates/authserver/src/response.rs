//! Responses.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

const NOSNIFF: (HeaderName, &str) = (header::X_CONTENT_TYPE_OPTIONS, "nosniff");
/// RFC 6749, section 5.1.
const UNCACHED: [(HeaderName, &str); 2] = [(header::CACHE_CONTROL, "no-store"), (header::PRAGMA, "no-cache")];

pub(crate) fn with(
    status: StatusCode,
    headers: impl IntoIterator<Item = (HeaderName, &'static str)>,
    body: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A response with tokens, or an error in place of them.
pub(crate) fn token(status: StatusCode, body: &Value) -> Response<Bytes> {
    let type_ = (header::CONTENT_TYPE, "application/json;charset=UTF-8");
    with(status, UNCACHED.into_iter().chain([type_]), body.to_string())
}

/// A response of the registration endpoint.
pub(crate) fn registration(status: StatusCode, body: &Value) -> Response<Bytes> {
    let type_ = (header::CONTENT_TYPE, "application/json");
    with(status, UNCACHED.into_iter().chain([type_]), body.to_string())
}

/// A document that is the same for everyone.
pub(crate) fn document(body: &Value) -> Response<Bytes> {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "public, max-age=3600"),
        NOSNIFF,
    ];
    with(StatusCode::OK, headers, body.to_string())
}

/// What a response has to say to people, so that a browser can show it on a page.
#[derive(Clone)]
pub(crate) struct Explanation(pub(crate) Cow<'static, str>);

/// A text for people.
pub(crate) fn text(status: StatusCode, body: &'static str) -> Response<Bytes> {
    let type_ = (header::CONTENT_TYPE, "text/plain; charset=utf-8");
    let mut response = with(status, [type_, NOSNIFF, (header::CACHE_CONTROL, "no-store")], body);
    response.extensions_mut().insert(Explanation(body.into()));
    response
}

/// A text that tells a client to try again in a second.
pub(crate) fn wait(status: StatusCode, body: &'static str) -> Response<Bytes> {
    let mut response = text(status, body);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The response to a step of a login that is not known.
pub(crate) fn unknown_login() -> Response<Bytes> {
    let mut response = text(StatusCode::BAD_REQUEST, "authorization request not found or expired");
    let explanation = "This login has ended, has taken too long, or began in another browser";
    response.extensions_mut().insert(Explanation(explanation.into()));
    response
}

pub(crate) fn method_not_allowed(allowed: &'static str) -> Response<Bytes> {
    with(StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allowed)], Bytes::new())
}

/// Sends the browser to another address.
pub(crate) fn redirect(status: StatusCode, location: &str) -> Response<Bytes> {
    let Ok(location) = HeaderValue::try_from(location) else {
        return text(StatusCode::BAD_REQUEST, "the address to return to is malformed");
    };
    let mut response = with(status, UNCACHED, Bytes::new());
    response.headers_mut().insert(header::LOCATION, location);
    // The address has a code or a state.
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
