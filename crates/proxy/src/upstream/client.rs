//! The connections to a server.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
pub(super) use hyper_util::client::legacy::Error;
use hyper_util::{
    client::legacy::{Client as Pool, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use skep_auth::redirect;

use crate::{ConfigError, limits};

/// How long an idle connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(90);
/// How many of them.
const IDLE_CONNECTIONS: usize = 256;

/// A pool of connections.
#[derive(Clone)]
pub(super) struct Client(Pool<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl Client {
    pub(super) fn new() -> Result<Self, ConfigError> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limits::CONNECT_TIME));
        connector.enforce_http(false);
        let roots = HttpsConnectorBuilder::new().try_with_platform_verifier();
        let roots = roots.map_err(|error| ConfigError::new(format!("no certificates to trust: {error}")))?;
        let connector = roots.https_or_http().enable_http1().wrap_connector(connector);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .build(connector);
        Ok(Self(pool))
    }

    /// Sends what is made for an address, and follows redirects that stay at the same host and do not give up encryption.
    pub(super) async fn send(
        &self,
        mut uri: Uri,
        request: impl Fn(Uri) -> Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        let mut redirects = 0;
        loop {
            let response = self.0.request(request(uri.clone())).await?;
            match redirect(&uri, &response) {
                Some(next) if redirects < limits::REDIRECTS => {
                    redirects += 1;
                    uri = next;
                }
                _ => return Ok(response),
            }
        }
    }
}
