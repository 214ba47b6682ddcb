//! Requests to a server, with redirects.

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use skep_auth::redirect;

use super::{
    Answered,
    connections::{Connections, Error},
};
use crate::{
    ConfigError, limits,
    outbound::{connector, verified_by_system},
};

/// Who sends requests.
pub(super) struct Client(Connections);

impl Client {
    pub(super) fn new(remote: bool) -> Result<Self, ConfigError> {
        let tls = verified_by_system()
            .map_err(|error| ConfigError::new(format!("no certificates to trust: {error}")))?;
        Ok(Self(Connections::new(connector(tls.with_no_client_auth()), remote)))
    }

    /// Sends what is made for an address, and follows redirects that stay at the same host and do not give up encryption.
    pub(super) async fn send(
        &self,
        mut uri: Uri,
        request: impl Fn(Uri) -> Request<Full<Bytes>>,
    ) -> Result<Response<Answered>, Error> {
        let mut redirects = 0;
        loop {
            let response = self.0.send(request(uri.clone())).await?;
            match redirect(&uri, &response) {
                Some(next) if redirects < limits::REDIRECTS => {
                    redirects += 1;
                    uri = next;
                }
                _ => return Ok(response),
            }
        }
    }

    /// Ends connections that nobody uses, for ever.
    pub(super) async fn expire(&self) {
        self.0.expire().await;
    }
}
