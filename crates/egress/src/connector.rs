//! Connecting to a host, directly or through a proxy.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{BoxFuture, FutureExt};
use http::{
    Uri,
    uri::{Authority, Scheme},
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{net::TcpStream, time::timeout};
use tower::Service;

use crate::{
    BoxError, CONNECT_TIME, EgressError, Proxies, ProxyServer, Stream, authorities::verified_by_system,
    tunnel,
};

/// Connects to hosts: through the proxies of the environment, and otherwise by `direct`.
#[derive(Clone)]
pub struct Egress<D> {
    direct: D,
    to_proxy: HttpsConnector<HttpConnector>,
    proxies: Arc<Proxies>,
}

impl<D> Egress<D> {
    /// A connector with these proxies.
    pub fn new(direct: D, proxies: Arc<Proxies>) -> Result<Self, rustls::Error> {
        Ok(Self { direct, to_proxy: to_proxy()?, proxies })
    }

    /// The proxies.
    pub fn proxies(&self) -> &Arc<Proxies> {
        &self.proxies
    }
}

fn to_proxy() -> Result<HttpsConnector<HttpConnector>, rustls::Error> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIME));
    tcp.enforce_http(false);
    let builder = HttpsConnectorBuilder::new().with_tls_config(verified_by_system()?.with_no_client_auth());
    Ok(builder.https_or_http().enable_http1().wrap_connector(tcp))
}

impl<D> Service<Uri> for Egress<D>
where
    D: Service<Uri, Response = TokioIo<TcpStream>>,
    D::Error: Into<BoxError>,
    D::Future: Send + 'static,
{
    type Response = Stream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Stream, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self.proxies.of(&uri).cloned() {
            Some(proxy) => {
                let connecting = through(self.to_proxy.clone(), proxy.clone(), uri);
                async move {
                    let connected = timeout(CONNECT_TIME, connecting).await;
                    connected
                        .unwrap_or_else(|_| Err(EgressError::Slow(proxy.place().into())))
                        .map_err(Into::into)
                }
                .boxed()
            }
            None => {
                let connecting = self.direct.call(uri);
                async { connecting.await.map(Stream::Direct).map_err(Into::into) }.boxed()
            }
        }
    }
}

/// A connection to a host through a proxy. The proxy reads requests for `http`, and sees only a tunnel of others.
async fn through(
    mut connector: HttpsConnector<HttpConnector>,
    proxy: ProxyServer,
    uri: Uri,
) -> Result<Stream, EgressError> {
    let place = proxy.place();
    let host = uri.host().filter(|host| !host.is_empty()).ok_or(EgressError::NoHost)?;
    let connected = connector.call(proxy.uri.clone()).await;
    let stream = Box::new(connected.map_err(|error| EgressError::Unreachable(place.into(), error))?);
    if uri.scheme() != Some(&Scheme::HTTPS) {
        return Ok(Stream::Proxy(stream));
    }
    // Without a name and password before it.
    let target = format!("{host}:{}", uri.authority().and_then(Authority::port_u16).unwrap_or(443));
    let mut stream = TokioIo::new(stream);
    tunnel::open(&mut stream, &target, proxy.authorization.as_ref(), place).await?;
    Ok(Stream::Tunnel(stream.into_inner()))
}
