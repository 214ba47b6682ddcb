//! Requests to a server, with redirects.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use skep_auth::redirect;
use skep_egress::Proxies;

use super::{
    UpstreamBody,
    connections::{Connections, Error},
};
use crate::{
    ConfigError, limits,
    outbound::{Pool, pool, trusted, verified_by_system},
};

/// How long an idle connection to a remote server is kept for the next request.
const IDLE: Duration = Duration::from_secs(90);
/// How many of them are kept, where the server does not speak HTTP/2.
const IDLE_CONNECTIONS: usize = 256;

/// Sends requests to a server.
pub struct Client(Connecting);

enum Connecting {
    /// To one in the cluster, never through a proxy.
    Own(Connections),
    /// To a remote one, encrypted by the scheme of its address, and through a proxy where the environment names one.
    Remote(Box<Pool>),
}

impl Client {
    /// A client of a remote server, or of one in the cluster.
    pub fn new(remote: bool) -> Result<Self, ConfigError> {
        if !remote {
            return Ok(Self(Connecting::Own(Connections::new())));
        }
        let tls = verified_by_system()
            .map_err(|error| ConfigError::new(format!("no certificates to trust: {error}")))?;
        let pool = pool(tls.with_no_client_auth(), IDLE, IDLE_CONNECTIONS).map_err(ConfigError::new)?;
        Ok(Self(Connecting::Remote(Box::new(pool))))
    }

    /// A client of a remote server whose certificate is signed by one of these authorities, in PEM.
    pub fn trusting(authorities: &[u8]) -> Result<Self, ConfigError> {
        let tls = trusted(authorities).map_err(ConfigError::new)?;
        let pool = pool(tls.with_no_client_auth(), IDLE, IDLE_CONNECTIONS).map_err(ConfigError::new)?;
        Ok(Self(Connecting::Remote(Box::new(pool))))
    }

    /// Checks the egress proxies that the environment names.
    pub fn check_proxies() -> Result<(), ConfigError> {
        Proxies::from_env().map(drop).map_err(|error| ConfigError::new(error.to_string()))
    }

    /// Whether the environment names an egress proxy for the address.
    pub fn is_proxied(uri: &Uri) -> bool {
        Proxies::from_env().is_ok_and(|proxies| proxies.of(uri).is_some())
    }

    /// Sends a request. A redirect is a response like any other.
    pub async fn send_once(&self, request: Request<Full<Bytes>>) -> Result<Response<UpstreamBody>, Error> {
        let pool = match &self.0 {
            Connecting::Own(connections) => return connections.send(request).await,
            Connecting::Remote(pool) => pool,
        };
        // Without credentials before it.
        let host = request.uri().host().unwrap_or_default().to_owned();
        match Box::pin(pool.request(request)).await {
            Ok(response) => {
                let mut response = response.map(UpstreamBody::shared);
                response.body_mut().read_ahead().await;
                Ok(response)
            }
            Err(source) if source.is_connect() => {
                Err(Error::Connect { host: host.into(), source: source.into() })
            }
            Err(error) => Err(Error::Lost(error)),
        }
    }

    /// Sends the request for an address, and follows redirects that stay at the same host and encrypted.
    pub async fn send(
        &self,
        uri: &Uri,
        request: impl Fn(Uri) -> Request<Full<Bytes>>,
    ) -> Result<Response<UpstreamBody>, Error> {
        let (mut redirects, mut redirected) = (0, None);
        loop {
            let uri = redirected.as_ref().unwrap_or(uri);
            let response = self.send_once(request(uri.clone())).await?;
            match redirect(uri, &response) {
                Some(next) if redirects < limits::REDIRECTS => {
                    redirects += 1;
                    redirected = Some(next);
                }
                _ => return Ok(response),
            }
        }
    }

    #[cfg(test)]
    pub(super) fn has_idle_connection(&self) -> bool {
        matches!(&self.0, Connecting::Own(connections) if connections.has_idle())
    }

    /// Closes idle connections, for ever.
    pub async fn expire(&self) {
        match &self.0 {
            Connecting::Own(connections) => connections.expire().await,
            Connecting::Remote(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_unreachable_host_is_named_with_the_cause_and_without_credentials() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let uri: Uri = format!("http://user:secret@127.0.0.1:{port}/mcp").parse().unwrap();
        let request = |uri| {
            let mut request = Request::new(Full::default());
            *request.uri_mut() = uri;
            request
        };
        let Err(error) = Client::new(false).unwrap().send(&uri, request).await else {
            panic!("a port without a listener was connected to")
        };
        assert!(error.to_string().starts_with("no connection to 127.0.0.1: Connection refused"), "{error}");
    }
}
