//! Errors of OAuth, and the responses that report them.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;
use tracing::error;

use crate::{
    random::NoRandomness,
    response::{self, Explanation},
    rules::TargetError,
    store::StoreError,
    upstreams::UpstreamTokenError,
};

/// An error with a code of RFC 6749, section 4.1.2.1 or 5.2, RFC 7591, section 3.2.2, or RFC 8707, section 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OAuthError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) description: Cow<'static, str>,
    /// Whether the client authenticated with the Authorization header, and must see a challenge.
    pub(crate) is_challenged: bool,
}

impl OAuthError {
    pub(crate) fn new(code: &'static str, description: impl Into<Cow<'static, str>>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, description: description.into(), is_challenged: false }
    }

    pub(crate) fn request(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new("invalid_request", description)
    }

    pub(crate) fn grant(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new("invalid_grant", description)
    }

    pub(crate) fn scope(scope: &str) -> Self {
        Self::new("invalid_scope", format!("the scope {scope:?} cannot be requested"))
    }

    pub(crate) fn client() -> Self {
        let status = StatusCode::UNAUTHORIZED;
        Self { status, ..Self::new("invalid_client", "the client is unknown, or could not be authenticated") }
    }

    /// The server cannot do it now. The client must not forget its registration.
    pub(crate) fn unavailable() -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self { status, ..Self::new("temporarily_unavailable", "the server is unavailable, retry later") }
    }

    pub(crate) fn server() -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { status, ..Self::new("server_error", "the server failed") }
    }

    /// The response of the token endpoint (RFC 6749, section 5.2).
    pub(crate) fn response(&self) -> Response<Bytes> {
        let body = json!({"error": self.code, "error_description": self.description});
        let mut response = response::token(self.status, &body);
        response.extensions_mut().insert(Explanation(self.description.clone()));
        if self.is_challenged {
            let challenge = HeaderValue::from_static(r#"Basic realm="token""#);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
        }
        response
    }
}

/// A response that explains itself as text, as an error of OAuth, with the same status.
pub(crate) fn described(response: Response<Bytes>) -> Response<Bytes> {
    let headers = response.headers();
    let is_text =
        headers.get(header::CONTENT_TYPE).is_some_and(|type_| type_.as_bytes().starts_with(b"text/"));
    let Some(Explanation(description)) = response.extensions().get().cloned().filter(|_| is_text) else {
        return response;
    };
    let code = match response.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "temporarily_unavailable",
        _ => "invalid_request",
    };
    let mut error = OAuthError { status: response.status(), ..OAuthError::new(code, description) }.response();
    if let Some(time) = headers.get(header::RETRY_AFTER) {
        error.headers_mut().insert(header::RETRY_AFTER, time.clone());
    }
    error
}

impl From<UpstreamTokenError> for OAuthError {
    fn from(error: UpstreamTokenError) -> Self {
        match error {
            UpstreamTokenError::Unavailable => Self::unavailable(),
            _ => Self::request("there is no such connection"),
        }
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        error!(%error, "the authorization server cannot store");
        Self::unavailable()
    }
}

impl From<NoRandomness> for OAuthError {
    fn from(error: NoRandomness) -> Self {
        error!(%error, "the authorization server cannot issue anything");
        Self::server()
    }
}

impl From<TargetError> for OAuthError {
    fn from(TargetError(description): TargetError) -> Self {
        Self::new("invalid_target", description)
    }
}
