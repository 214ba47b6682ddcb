//! The HTTP client of this crate.

mod address;
mod connect;
mod error;
#[cfg(test)]
mod rebinding;
mod tls;

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri::Scheme};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Map, Value};
use skep_egress::{Client, Egress, Idle, Proxies};
use tokio::sync::Semaphore;

use crate::{SetupError, limits};
use connect::{Guard, Guarded};
pub use error::FetchError;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("skep/", env!("CARGO_PKG_VERSION")));
/// The API server of Kubernetes serves its keys as the second type only (RFC 7517, section 8.5).
const JSON: HeaderValue = HeaderValue::from_static("application/json, application/jwk-set+json");
const IDLE: Idle = Idle { time: Duration::from_secs(60), connections: 16 };

/// The addresses that may be connected to.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Whether an address may be private, or of this node.
    pub private: bool,
    /// Whether a request may be unencrypted.
    pub plain: bool,
}

/// The client.
pub struct Fetcher {
    client: Client<Guarded>,
    proxies: Arc<Proxies>,
    guard: Guard,
    /// Whether a request may be unencrypted.
    plain: bool,
    places: Semaphore,
}

impl Fetcher {
    /// A client that trusts the certificate authorities of that file, or those of the system.
    pub fn new(reach: Reach, authorities: Option<&Path>) -> Result<Self, SetupError> {
        let proxies = Proxies::from_env().map_err(|error| SetupError::new(error.to_string()))?;
        Self::guarded(Guard::new(reach), reach.plain, authorities, proxies)
    }

    fn guarded(
        guard: Guard,
        plain: bool,
        authorities: Option<&Path>,
        proxies: Proxies,
    ) -> Result<Self, SetupError> {
        let proxies = Arc::new(proxies);
        let egress = Egress::new(Guarded::new(guard.clone()), proxies.clone()).map_err(tls::failed)?;
        let client = Client::with(tls::config(authorities)?, egress, IDLE);
        Ok(Self { client, proxies, guard, plain, places: Semaphore::new(limits::FETCHES) })
    }

    /// The address in a field of the configuration.
    pub fn address(&self, field: &str, text: &str) -> Result<Uri, SetupError> {
        let uri: Uri =
            text.trim().parse().map_err(|_| SetupError::new(format!("{field}: {text:?} is not a URL")))?;
        match self.check(&uri) {
            Ok(()) => Ok(uri),
            Err(error) => Err(SetupError::new(format!("{field}: {error}"))),
        }
    }

    /// Sends a request. Returns the status of the response and the JSON object in it, if it has one.
    pub async fn send(
        &self,
        mut request: Request<Bytes>,
        limit: usize,
        time: Duration,
    ) -> Result<(StatusCode, Option<Map<String, Value>>), FetchError> {
        request.headers_mut().insert(header::ACCEPT, JSON);
        let (status, body) = self.bytes(request, limit, time).await?;
        Ok((status, serde_json::from_slice(&body).ok()))
    }

    /// Sends a request. Returns the status of the response and its body.
    pub(crate) async fn bytes(
        &self,
        mut request: Request<Bytes>,
        limit: usize,
        time: Duration,
    ) -> Result<(StatusCode, Bytes), FetchError> {
        request.headers_mut().insert(header::USER_AGENT, AGENT);
        let response = self.respond(request, limit, time, limits::REDIRECTS).await?;
        Ok((response.status(), response.into_body()))
    }

    /// Fetches a document that a stranger may have named, unless it is still this version. Redirects are not followed.
    pub async fn document(
        &self,
        uri: Uri,
        known: Option<HeaderValue>,
        limit: usize,
        time: Duration,
    ) -> Result<Response<Bytes>, FetchError> {
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = uri;
        request.headers_mut().extend(known.map(|version| (header::IF_NONE_MATCH, version)));
        request.headers_mut().insert(header::USER_AGENT, AGENT);
        request.headers_mut().insert(header::ACCEPT, JSON);
        self.respond(request, limit, time, 0).await
    }

    async fn respond(
        &self,
        request: Request<Bytes>,
        limit: usize,
        time: Duration,
        redirects: usize,
    ) -> Result<Response<Bytes>, FetchError> {
        let uri = request.uri().clone();
        self.check(&uri)?;
        let fetching = async {
            let _place = self.places.acquire().await.map_err(|_| FetchError::slow(&uri))?;
            let (head, body) = self.send_following_redirects(request, redirects).await?.into_parts();
            let body = Limited::new(body, limit).collect().await;
            let body = body.map_err(|_| FetchError::Answer(origin(&uri), "it broke off, or is too large"))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        tokio::time::timeout(time, fetching).await.unwrap_or_else(|_| Err(FetchError::slow(&uri)))
    }

    /// Sends a request, and follows so many redirects of GET requests at the same host.
    async fn send_following_redirects(
        &self,
        request: Request<Bytes>,
        mut redirects: usize,
    ) -> Result<Response<Incoming>, FetchError> {
        let (parts, body) = request.into_parts();
        let mut uri = parts.uri.clone();
        loop {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = parts.method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = parts.headers.clone();
            if self.proxies.of(&uri).is_some() {
                let permitted = self.guard.check_for_proxy(&uri).await;
                permitted.map_err(|_| FetchError::Forbidden(origin(&uri)))?;
            }
            let response =
                self.client.request(request).await.map_err(|error| FetchError::unreachable(&uri, &error))?;
            match redirect(&uri, &response) {
                Some(next) if parts.method == Method::GET && redirects > 0 => {
                    redirects -= 1;
                    uri = next;
                }
                _ => return Ok(response),
            }
        }
    }

    fn check(&self, uri: &Uri) -> Result<(), FetchError> {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let plain = uri.scheme() == Some(&Scheme::HTTP);
        if uri.host().is_none_or(str::is_empty) || !(secure || plain) {
            return Err(FetchError::NoAddress);
        }
        if plain && !self.plain {
            return Err(FetchError::Plain(origin(uri)));
        }
        Ok(())
    }
}

/// The redirect in a response to a request for this address, if it is at the same host and as secure. A redirect to
/// another host would receive the secrets of the request.
pub fn redirect<B>(uri: &Uri, response: &Response<B>) -> Option<Uri> {
    if !matches!(response.status().as_u16(), 301 | 302 | 307 | 308) {
        return None;
    }
    let location: Uri = response.headers().get(header::LOCATION)?.to_str().ok()?.parse().ok()?;
    let mut parts = location.into_parts();
    let same_host = parts.authority.as_ref().is_none_or(|authority| Some(authority) == uri.authority());
    let same_scheme = parts.scheme.as_ref().is_none_or(|scheme| Some(scheme) == uri.scheme());
    if !same_host || !same_scheme {
        return None;
    }
    parts.scheme = uri.scheme().cloned();
    parts.authority = uri.authority().cloned();
    Uri::from_parts(parts).ok()
}

/// Scheme, host and port: the part of an address that may be logged. The rest may contain a token or a password.
fn origin(uri: &Uri) -> String {
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}", uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// The proxy could reach what the outsider who chose the address cannot.
    #[tokio::test]
    async fn a_private_address_is_forbidden_through_a_proxy_as_well() {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = proxy.local_addr().unwrap().to_string();
        let proxies = || Proxies::new(|name| (name == "HTTPS_PROXY").then(|| address.clone())).unwrap();
        let fetched = async |private: bool, host: &str| {
            let reach = Reach { private, plain: false };
            let fetcher = Fetcher::guarded(Guard::new(reach), false, None, proxies()).unwrap();
            let request = Request::get(format!("https://{host}/keys")).body(Bytes::new()).unwrap();
            fetcher.bytes(request, 1024, Duration::from_secs(10)).await.unwrap_err().to_string()
        };
        for host in ["10.0.0.1", "169.254.169.254", "0.0.0.0", "[fd00::1]", "2130706433", "127.1"] {
            let error = fetched(false, host).await;
            assert!(error.contains("its address is private, which is not allowed"), "{host}: {error}");
        }
        let accepted = tokio::spawn(async move { drop(proxy.accept().await.unwrap()) });
        let error = fetched(true, "10.0.0.1").await;
        assert!(error.contains("the egress proxy 127.0.0.1:"), "{error}");
        accepted.await.unwrap();
    }
}
