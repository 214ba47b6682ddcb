//! Requests to services that others run: webhooks, policy decision points, embedding services.
//!
//! Connections are kept for the next request. Redirects are not followed: requests are about callers, and only for the
//! service that was configured.

use std::{error::Error, iter, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header, uri::PathAndQuery};
use http_body_util::Full;
use tokio::sync::Semaphore;

use super::{
    pool::{Pool, pool},
    tls::{self, Trust},
};
use crate::{body, limits};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("skep/", env!("CARGO_PKG_VERSION")));
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// How long an idle connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(60);
/// How many of them.
const IDLE_CONNECTIONS: usize = 64;

/// Why there is no response. It names neither the request nor the address: the log line names the service.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// It cannot be reached.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It did not respond in time.
    #[error("it did not respond in time")]
    Slow,
    /// Its response broke off, or is too large.
    #[error("its response broke off, or is too large")]
    Body,
    /// It responded with an error.
    #[error("it responded with status {0}")]
    Status(StatusCode),
    /// Its response is invalid.
    #[error("its response is invalid: {0}")]
    Answer(&'static str),
    /// The secret to sign with cannot be read, or is empty.
    #[error("the secret to sign with cannot be read, or is empty")]
    Secret,
}

/// The connections to one service.
pub struct Service {
    pool: Pool,
    uri: Uri,
    time: Duration,
    /// The largest response.
    response: usize,
    /// The concurrent requests. More wait for their turn, within their own timeout.
    places: Semaphore,
}

impl Service {
    /// The service at this address, with this timeout.
    pub fn new(uri: Uri, time: Duration, trust: &Trust<'_>) -> Result<Self, String> {
        let pool = pool(tls::config(trust)?, IDLE, IDLE_CONNECTIONS)?;
        let places = Semaphore::new(limits::SERVICE_REQUESTS);
        Ok(Self { pool, uri, time, response: limits::SERVICE_RESPONSE, places })
    }

    /// The same with another limit for responses, in bytes.
    pub fn with_response_limit(self, response: usize) -> Self {
        Self { response, ..self }
    }

    /// Posts JSON. The response is read to its end, within a limit.
    pub async fn post(
        &self,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), ServiceError> {
        headers.insert(header::CONTENT_TYPE, JSON);
        self.send(Method::POST, self.uri.clone(), headers, body).await
    }

    /// Gets JSON from another path of the service.
    pub async fn get(
        &self,
        path: PathAndQuery,
        headers: HeaderMap,
    ) -> Result<(StatusCode, Bytes), ServiceError> {
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(path);
        let uri = Uri::from_parts(parts).map_err(|error| ServiceError::Unreachable(error.to_string()))?;
        self.send(Method::GET, uri, headers, Bytes::new()).await
    }

    async fn send(
        &self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), ServiceError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::USER_AGENT, AGENT);
        request.headers_mut().insert(header::ACCEPT, JSON);
        let sending = async {
            let _place = self.places.acquire().await.map_err(|_| ServiceError::Slow)?;
            let response = self.pool.request(request).await.map_err(|error| unreachable(&error))?;
            let status = response.status();
            let answer = body::read(response.into_body(), self.response).await;
            Ok((status, answer.map_err(|_| ServiceError::Body)?))
        };
        tokio::time::timeout(self.time, sending).await.unwrap_or(Err(ServiceError::Slow))
    }
}

/// The address in a field of the configuration.
pub fn address(text: &str) -> Result<Uri, String> {
    let uri = text.parse().ok().filter(|uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    uri.ok_or_else(|| format!("{text:?} is not a URL: write it as https://host/path"))
}

/// With the causes: of TLS, DNS and sockets, none of which sees the request.
fn unreachable(error: &(dyn Error + 'static)) -> ServiceError {
    let causes = iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string);
    ServiceError::Unreachable(causes.collect::<Vec<_>>().join(": "))
}
