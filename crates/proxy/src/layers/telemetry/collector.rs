//! The collector: where traces and metrics are sent.
//!
//! One that is away or slow costs what would have been sent, and one line in the log.

use std::{
    fmt, fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as Pool, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use opentelemetry_http::{HttpClient, HttpError};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::settings::wrong;
use crate::{ConfigError, body, limits};

/// Sends to a collector. The exporters call it from threads of their own; the requests run beside all others.
#[derive(Clone)]
pub(super) struct Collector {
    pool: Pool<HttpsConnector<HttpConnector>, Full<Bytes>>,
    headers: HeaderMap,
    runtime: Handle,
    /// Whether the last request failed, so that a failure is told once.
    failing: Arc<AtomicBool>,
}

impl Collector {
    /// With a file of authorities, only they are trusted: whoever names one means that one.
    pub(super) fn new(authorities: &str, headers: HeaderMap) -> Result<Self, ConfigError> {
        let runtime = Handle::try_current().map_err(|error| wrong(&error))?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls(authorities)?);
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(limits::CONNECT_TIME));
        tcp.enforce_http(false);
        let connector = connector.https_or_http().enable_http1().wrap_connector(tcp);
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(limits::COLLECTOR_IDLE)
            .pool_max_idle_per_host(2)
            .build(connector);
        Ok(Self { pool, headers, runtime, failing: Arc::default() })
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut request = request.map(Full::new);
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let answer = tokio::time::timeout(limits::COLLECTOR_TIME, async {
            let (parts, body) = self.pool.request(request).await?.into_parts();
            // What it says is not looked at, but the connection can be used again once it was read.
            let body = body::read(body, limits::COLLECTOR_ANSWER).await.unwrap_or_default();
            Ok::<_, HttpError>(Response::from_parts(parts, body))
        });
        let answer = answer.await.unwrap_or_else(|elapsed| Err(elapsed.into()));
        self.told(&answer);
        answer
    }

    fn told(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let fault = match answer {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(response.status().to_string()),
            Err(error) => Some(error.to_string()),
        };
        match fault {
            Some(error) if !self.failing.swap(true, Ordering::Relaxed) => {
                warn!(error, "the collector does not take traces and metrics: they are lost until it does");
            }
            None if self.failing.swap(false, Ordering::Relaxed) => {
                info!("the collector takes traces and metrics again");
            }
            _ => {}
        }
    }
}

/// Without the headers, which may be secret.
impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        self.runtime.spawn(self.clone().send(request)).await?
    }
}

fn tls(authorities: &str) -> Result<ClientConfig, ConfigError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| wrong(&error))?;
    let builder = match authorities {
        "" => builder.try_with_platform_verifier().map_err(|error| wrong(&error))?,
        path => builder.with_root_certificates(roots(path)?),
    };
    Ok(builder.with_no_client_auth())
}

fn roots(path: &str) -> Result<RootCertStore, ConfigError> {
    let wrong = |what: &dyn fmt::Display| wrong(&format!("caCertPath: {path}: {what}"));
    let pem = fs::read(path).map_err(|error| wrong(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() { Err(wrong(&"there is no certificate in it")) } else { Ok(roots) }
}
