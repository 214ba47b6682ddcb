//! The collector: where traces and metrics are sent.
//!
//! While it is unavailable or slow, telemetry is dropped, and one line is logged.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::settings::wrong;
use crate::{
    ConfigError, body, limits,
    outbound::{Pool, pool, verified},
};

/// How many connections are kept: one for traces, one for metrics.
const IDLE_CONNECTIONS: usize = 2;

/// Sends to a collector. The exporters call it from their own threads; the requests run on the proxy's runtime.
#[derive(Clone)]
pub(super) struct Collector {
    pool: Pool,
    headers: HeaderMap,
    runtime: Handle,
    /// Whether the last request failed, so that a failure is logged once.
    failing: Arc<AtomicBool>,
}

impl Collector {
    /// With a file of authorities, only they are trusted.
    pub(super) fn new(authorities: &str, headers: HeaderMap) -> Result<Self, ConfigError> {
        let runtime = Handle::try_current().map_err(|error| wrong(&error))?;
        let tls = verified("caCertPath", authorities).map_err(|error| wrong(&error))?;
        let pool = pool(tls.with_no_client_auth(), limits::COLLECTOR_IDLE, IDLE_CONNECTIONS)
            .map_err(|error| wrong(&error))?;
        Ok(Self { pool, headers, runtime, failing: Arc::default() })
    }

    /// An exporter that sends here, to this address.
    pub(super) fn exporter<B: WithHttpConfig + WithExportConfig>(&self, builder: B, address: String) -> B {
        builder
            .with_http_client(self.clone())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(address)
            .with_timeout(limits::COLLECTOR_TIME)
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut request = request.map(Full::new);
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let answer = tokio::time::timeout(limits::COLLECTOR_TIME, async {
            let (parts, body) = self.pool.request(request).await?.into_parts();
            // The body is ignored, but the connection can be used again once it was read.
            let body = body::read(body, limits::COLLECTOR_RESPONSE).await.unwrap_or_default();
            Ok::<_, HttpError>(Response::from_parts(parts, body))
        });
        let answer = answer.await.unwrap_or_else(|elapsed| Err(elapsed.into()));
        self.log_change(&answer);
        answer
    }

    fn log_change(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let fault = match answer {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(response.status().to_string()),
            Err(error) => Some(error.to_string()),
        };
        match fault {
            Some(error) if !self.failing.swap(true, Ordering::Relaxed) => {
                warn!(
                    error,
                    "failed to send traces and metrics to the collector; dropping them until it is available"
                );
            }
            None if self.failing.swap(false, Ordering::Relaxed) => {
                info!("the collector is available again");
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
