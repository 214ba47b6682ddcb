//! Forms and client credentials for token endpoints.

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header};

/// A client of an authorization server, and its secret.
#[derive(Clone)]
pub(crate) struct Credentials(HeaderValue);

impl Credentials {
    /// `None` without an id or a secret: the client then does not authenticate.
    pub(crate) fn new(id: &str, secret: &str) -> Option<Self> {
        // Both are encoded before they are joined (RFC 6749, section 2.3.1), so that a colon in one of them is not a
        // separator.
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        Self::joined(id, secret, format!("{}:{}", encoded(id), encoded(secret)))
    }

    /// The same without the encoding, for servers that expect none.
    pub(crate) fn plain(id: &str, secret: &str) -> Option<Self> {
        Self::joined(id, secret, format!("{id}:{secret}"))
    }

    fn joined(id: &str, secret: &str, both: String) -> Option<Self> {
        if id.is_empty() || secret.is_empty() {
            return None;
        }
        let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(both))).ok()?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// Adds them to a request.
    pub(crate) fn sign(&self, request: &mut Request<Bytes>) {
        request.headers_mut().insert(header::AUTHORIZATION, self.0.clone());
    }
}

/// A request that sends a form.
pub(crate) fn post(uri: &Uri, fields: &[(&str, &str)]) -> Request<Bytes> {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    request_with_body(uri, "application/x-www-form-urlencoded", body)
}

/// A request with a body.
pub(crate) fn request_with_body(uri: &Uri, type_: &'static str, body: String) -> Request<Bytes> {
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(type_));
    request
}
