//! Connections that are kept for the next request.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;

use crate::limits;

/// A pool of connections, to any number of hosts.
pub(crate) type Pool = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A pool that keeps so many idle connections to each host for this long.
pub(crate) fn pool(tls: ClientConfig, idle: Duration, kept: usize) -> Pool {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle)
        .pool_max_idle_per_host(kept)
        .build(connector(tls))
}

/// The connector, with or without TLS by the scheme of the address.
pub(crate) fn connector(tls: ClientConfig) -> HttpsConnector<HttpConnector> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(limits::CONNECT_TIME));
    connector.enforce_http(false);
    let tls = HttpsConnectorBuilder::new().with_tls_config(tls);
    tls.https_or_http().enable_http1().wrap_connector(connector)
}
