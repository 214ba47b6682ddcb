//! This server as a client of an upstream.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{HeaderValue, Method as Verb, Request, header};
use serde_json::{Map, Value};
use skep_auth::Fetcher;

use super::UpstreamError;
use crate::{limits, store::Method};

/// The client that the upstream knows.
pub(super) struct UpstreamClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) method: Method,
    /// When its secret expires, in seconds since 1970. Zero: it does not.
    pub(super) expires: u64,
}

impl UpstreamClient {
    /// Posts a form to the token endpoint, authenticated as the upstream expects it (RFC 6749, section 2.3.1).
    pub(super) async fn post<'a>(
        &'a self,
        fetcher: &Fetcher,
        endpoint: &str,
        mut form: BTreeMap<&'a str, &'a str>,
    ) -> Result<Map<String, Value>, UpstreamError> {
        let mut request = Request::new(Bytes::new());
        match (&self.secret, self.method) {
            (Some(secret), Method::ClientSecretBasic) => {
                let encoded =
                    |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let pair = STANDARD.encode(format!("{}:{}", encoded(&self.id), encoded(secret)));
                let mut value = HeaderValue::try_from(format!("Basic {pair}"))
                    .map_err(|_| UpstreamError::Response("the client secret is not a valid header"))?;
                value.set_sensitive(true);
                request.headers_mut().insert(header::AUTHORIZATION, value);
            }
            (Some(secret), _) => {
                form.extend([("client_id", &*self.id), ("client_secret", secret)]);
            }
            (None, _) => {
                form.insert("client_id", &self.id);
            }
        }
        *request.body_mut() = Serializer::new(String::new()).extend_pairs(form).finish().into();
        *request.method_mut() = Verb::POST;
        *request.uri_mut() =
            endpoint.parse().map_err(|_| UpstreamError::Response("its endpoint is not a URL"))?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, form);
        let (status, body) = fetcher.send(request, limits::UPSTREAM_RESPONSE, limits::UPSTREAM_TIME).await?;
        match body {
            // Some providers respond so with the status 200.
            Some(body) if body.get("error").is_some_and(is_dead_grant) => Err(UpstreamError::InvalidGrant),
            _ if !status.is_success() => Err(UpstreamError::Refused(status)),
            Some(body) => Ok(body),
            None => Err(UpstreamError::Response("its response is not a JSON object")),
        }
    }
}

/// Whether an error is about the code or refresh token (RFC 6749, section 5.2). GitHub has a code of its own.
fn is_dead_grant(error: &Value) -> bool {
    matches!(error.as_str(), Some("invalid_grant" | "bad_refresh_token"))
}
