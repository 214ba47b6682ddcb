//! Requests to services that others run: webhooks, policy decision points, embedding services.
//!
//! Connections are kept for the next request. Redirects are not followed: requests are about callers, and only for the
//! service that was configured.

use std::{error::Error, iter, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header, uri::PathAndQuery};
use http_body_util::Full;
use skep_egress::Proxies;
use skep_mcp::Rejection;

use super::{
    pool::{Pool, pool, pool_through},
    tls::{self, Trust},
};
use crate::{Turn, Turns, body, identity::Holder, limits};

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
    /// The concurrent requests, by callers. The service itself is queried for no caller.
    places: Turns<Option<Holder>>,
}

/// A place for one request to a service.
pub struct ServicePlace<'a> {
    service: &'a Service,
    _turn: Turn<Option<Holder>>,
}

/// There was no place in time: other requests of the caller have its places, or other callers have all. The service has not failed.
#[derive(Debug)]
pub struct Busy;

impl From<Busy> for Rejection {
    fn from(_: Busy) -> Self {
        Self::Unavailable("room for one more request to a service that decides is")
    }
}

impl Service {
    /// The service at this address, with this timeout.
    pub fn new(uri: Uri, time: Duration, trust: &Trust<'_>) -> Result<Self, String> {
        Ok(Self::with(pool(tls::config(trust)?, IDLE, IDLE_CONNECTIONS)?, uri, time))
    }

    /// A service within the cluster, which is reached without a proxy.
    pub(crate) fn direct(uri: Uri, time: Duration, trust: &Trust<'_>) -> Result<Self, String> {
        let pool = pool_through(Proxies::default(), tls::config(trust)?, IDLE, IDLE_CONNECTIONS)?;
        Ok(Self::with(pool, uri, time))
    }

    fn with(pool: Pool, uri: Uri, time: Duration) -> Self {
        let places = Turns::new(limits::SERVICE_REQUESTS, limits::SERVICE_REQUESTS_OF_A_CALLER);
        Self { pool, uri, time, response: limits::SERVICE_RESPONSE, places }
    }

    /// The same with another limit for responses, in bytes.
    pub fn with_response_limit(self, response: usize) -> Self {
        Self { response, ..self }
    }

    /// Waits for a place for a request about a caller, as long as the request itself may take.
    pub async fn place(&self, holder: Option<Holder>) -> Result<ServicePlace<'_>, Busy> {
        let turn = tokio::time::timeout(self.time, self.places.take(holder)).await.map_err(|_| Busy)?;
        Ok(ServicePlace { service: self, _turn: turn })
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
            let response = self.pool.request(request).await.map_err(|error| unreachable(&error))?;
            let status = response.status();
            let answer = body::read(response.into_body(), self.response).await;
            Ok((status, answer.map_err(|_| ServiceError::Body)?))
        };
        tokio::time::timeout(self.time, sending).await.unwrap_or(Err(ServiceError::Slow))
    }
}

impl ServicePlace<'_> {
    /// Posts JSON. The response is read to its end, within a limit.
    pub async fn post(
        self,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), ServiceError> {
        headers.insert(header::CONTENT_TYPE, JSON);
        self.service.send(Method::POST, self.service.uri.clone(), headers, body).await
    }

    /// Gets JSON from another path of the service.
    pub async fn get(
        self,
        path: PathAndQuery,
        headers: HeaderMap,
    ) -> Result<(StatusCode, Bytes), ServiceError> {
        let mut parts = self.service.uri.clone().into_parts();
        parts.path_and_query = Some(path);
        let uri = Uri::from_parts(parts).map_err(|error| ServiceError::Unreachable(error.to_string()))?;
        self.service.send(Method::GET, uri, headers, Bytes::new()).await
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

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_many_requests_leaves_places_to_others() {
        let (most, of_a_caller) = (limits::SERVICE_REQUESTS, limits::SERVICE_REQUESTS_OF_A_CALLER);
        let time = Duration::from_secs(10);
        let service = Service::new(address("http://127.0.0.1:1/").unwrap(), time, &Trust::default()).unwrap();
        let place = |caller: u8| service.place(Some(Holder::new(None, [10, 0, 0, caller].into())));
        let share = |caller: u8| join_all((0..of_a_caller).map(move |_| place(caller)));
        let mut held = share(1).await;
        let start = tokio::time::Instant::now();
        assert!(place(1).await.is_err(), "it has its share");
        assert_eq!(start.elapsed(), time);
        for other in 2..=u8::try_from(most / of_a_caller).unwrap() {
            held.extend(share(other).await);
        }
        assert_eq!(start.elapsed(), time, "no other caller waits");
        assert!(place(0).await.is_err(), "all are taken");
        held.pop();
        assert!(place(0).await.is_ok());
    }
}
