//! Sending requests.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, Uri, uri::Authority};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower::Service;

use crate::{CONNECT_TIME, Egress, Proxies};

/// How long an HTTP/2 connection with requests in flight may be silent before it is checked, and how long that may take.
const SILENCE: Duration = Duration::from_secs(30);
/// How much of a response is read ahead of its reader on an HTTP/2 connection.
const WINDOW: u32 = 1 << 20;

/// How long connections are kept for the next request, and how many for each host.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// How long.
    pub time: Duration,
    /// How many.
    pub connections: usize,
}

/// Sends requests to any host, over connections that are kept for the next request.
#[derive(Clone)]
pub struct Client<D = HttpConnector> {
    pool: legacy::Client<HttpsConnector<Egress<D>>, Full<Bytes>>,
    proxies: Arc<Proxies>,
}

impl Client {
    /// A client that may connect to any address, and uses the proxies of the environment.
    pub fn new(tls: ClientConfig, proxies: Proxies, idle: Idle) -> Result<Self, rustls::Error> {
        let mut direct = HttpConnector::new();
        direct.set_nodelay(true);
        direct.set_connect_timeout(Some(CONNECT_TIME));
        direct.enforce_http(false);
        Ok(Self::with(tls, Egress::new(direct, Arc::new(proxies))?, idle))
    }
}

impl<D> Client<D>
where
    D: Service<Uri, Response = TokioIo<TcpStream>> + Clone + Send + Sync + Unpin + 'static,
    D::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    D::Future: Send + 'static,
{
    /// A client that connects so.
    pub fn with(tls: ClientConfig, egress: Egress<D>, idle: Idle) -> Self {
        let proxies = egress.proxies().clone();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(egress);
        let pool = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(idle.time)
            .pool_max_idle_per_host(idle.connections)
            // Some servers look for a name as it is usually written, although its case has no meaning.
            .http1_title_case_headers(true)
            .http2_keep_alive_interval(SILENCE)
            .http2_keep_alive_timeout(SILENCE)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOW * 4)
            .build(connector);
        Self { pool, proxies }
    }

    /// Sends a request to its address.
    pub async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        let uri = without_credentials(request.uri());
        self.proxies.add_credentials(&uri, request.headers_mut());
        *request.uri_mut() = uri;
        self.pool.request(request).await
    }
}

/// The address without a name and password, which a proxy would see.
fn without_credentials(uri: &Uri) -> Uri {
    let Some((_, host)) = uri.authority().and_then(|authority| authority.as_str().rsplit_once('@')) else {
        return uri.clone();
    };
    let mut parts = uri.clone().into_parts();
    parts.authority = host.parse::<Authority>().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}
