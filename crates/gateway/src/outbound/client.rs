//! Requests to a server, with redirects.

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use skep_auth::redirect;

use super::{
    UpstreamBody,
    connections::{Connections, Error},
};
use crate::{
    ConfigError, limits,
    outbound::{connector, verified_by_system},
};

/// Sends requests to a server.
pub struct Client(Connections);

impl Client {
    /// A client of a remote server, or of one in the cluster.
    pub fn new(remote: bool) -> Result<Self, ConfigError> {
        let tls = verified_by_system()
            .map_err(|error| ConfigError::new(format!("no certificates to trust: {error}")))?;
        Ok(Self(Connections::new(connector(tls.with_no_client_auth()), remote)))
    }

    /// Sends the request for an address, and follows redirects that stay at the same host and encrypted.
    pub async fn send(
        &self,
        mut uri: Uri,
        request: impl Fn(Uri) -> Request<Full<Bytes>>,
    ) -> Result<Response<UpstreamBody>, Error> {
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

    /// Closes idle connections, for ever.
    pub async fn expire(&self) {
        self.0.expire().await;
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
        let Err(error) = Client::new(false).unwrap().send(uri, request).await else {
            panic!("a port without a listener was connected to")
        };
        assert!(error.to_string().starts_with("no connection to 127.0.0.1: Connection refused"), "{error}");
    }
}
