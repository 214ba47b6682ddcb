//! The connections to a server.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
pub(super) use hyper_util::client::legacy::Error;
use skep_auth::redirect;

use crate::{
    ConfigError, limits,
    outbound::{Pool, pool, verified_by_system},
};

/// How long an idle connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(90);
/// How many of them.
const IDLE_CONNECTIONS: usize = 256;

/// A pool of connections.
#[derive(Clone)]
pub(super) struct Client(Pool);

impl Client {
    pub(super) fn new() -> Result<Self, ConfigError> {
        let tls = verified_by_system()
            .map_err(|error| ConfigError::new(format!("no certificates to trust: {error}")))?;
        let pool = pool(tls.with_no_client_auth(), IDLE, IDLE_CONNECTIONS);
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
