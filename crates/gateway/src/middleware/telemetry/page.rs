//! `/metrics`: the page that Prometheus scrapes, on the proxy's own port and on one for scraping alone.

use std::{convert::Infallible, sync::Arc};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use skep_config::run_config;
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tracing::{info, warn};

use super::Prometheus;
use crate::{
    http::{Body, Ended, Observer, response},
    limits,
};

/// Its path.
pub const METRICS: &str = "/metrics";
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The page, and where it is served.
#[derive(Clone)]
pub struct Page {
    metrics: Arc<Prometheus>,
    host: String,
    port: u16,
    /// Whether it is also on the port that clients use.
    shared_port: bool,
    /// Those on that port which have not been read to their end.
    scrapes: Arc<Semaphore>,
}

/// A scrape on the port that clients use, until its response has ended.
struct Scrape {
    _permit: OwnedSemaphorePermit,
}

impl Observer for Scrape {
    fn prefix(&self) -> usize {
        0
    }

    fn ended(self: Box<Self>, _: Ended) {}
}

impl Page {
    pub(super) fn new(metrics: Arc<Prometheus>, config: &run_config::Telemetry, host: &str) -> Self {
        let host = if host.is_empty() { "127.0.0.1" } else { host }.to_owned();
        let (port, shared_port) = (config.prometheus_port(), config.metrics_on_transport_port());
        Self { metrics, host, port, shared_port, scrapes: Arc::new(Semaphore::new(limits::SCRAPES)) }
    }

    /// The response on the port that clients use. Strangers reach it, so few are made at the same time.
    pub fn respond(&self, method: &Method) -> Response<Body> {
        if !self.shared_port {
            return not_served();
        }
        let Ok(permit) = self.scrapes.clone().try_acquire_owned() else {
            return response::text(StatusCode::SERVICE_UNAVAILABLE, "too many scrapes\n");
        };
        let response = self.page(method);
        let status = response.status();
        response.map(|body| body.observed(status, vec![Box::new(Scrape { _permit: permit })]))
    }

    fn page(&self, method: &Method) -> Response<Body> {
        if method != Method::GET && method != Method::HEAD {
            return response::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let Ok(page) = self.metrics.page() else { return response::empty(StatusCode::INTERNAL_SERVER_ERROR) };
        let mut answer = response::json(StatusCode::OK, page);
        answer.headers_mut().insert(header::CONTENT_TYPE, OPEN_METRICS);
        answer
    }

    /// Serves the page on its own port. A port that is in use is logged and does not end the proxy.
    pub async fn serve(&self) {
        match TcpListener::bind((self.host.as_str(), self.port)).await {
            Ok(listener) => {
                info!(host = self.host, port = self.port, "serving metrics");
                self.accept(listener).await;
            }
            Err(error) => {
                warn!(host = self.host, port = self.port, %error, "failed to listen on prometheusPort");
            }
        }
    }

    async fn accept(&self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(limits::SCRAPES));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits::HEAD_TIME).keep_alive(false);
        while let Ok(place) = places.clone().acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            };
            let page = self.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = match request.uri().path() {
                    METRICS => page.page(request.method()),
                    _ => response::empty(StatusCode::NOT_FOUND),
                };
                async { Ok::<_, Infallible>(answer) }
            });
            let connection = http.serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move {
                tokio::time::timeout(limits::SCRAPE_TIME, connection).await.ok();
                drop(place);
            });
        }
    }
}

/// The response where metrics are not served.
pub fn not_served() -> Response<Body> {
    response::text(StatusCode::NOT_FOUND, "metrics are not served on this port\n")
}
