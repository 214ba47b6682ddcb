//! `/metrics`: the page that Prometheus scrapes, on the proxy's own port and on one for scraping alone.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use skep_config::run_config;
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinHandle,
    time::sleep,
};
use tracing::{info, warn};

use super::Prometheus;
use crate::{
    http::{Body, response},
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

/// How much of a page is handed to a connection at once.
const PIECE: usize = 16 << 10;

/// What is left of a page for a scrape on the port that clients use. It is one of the few until it has ended.
struct Scrape {
    /// Nothing if it took too long.
    rest: Arc<Mutex<Option<(Bytes, OwnedSemaphorePermit)>>>,
    timer: JoinHandle<()>,
}

impl Drop for Scrape {
    fn drop(&mut self) {
        self.timer.abort();
        self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The page in pieces. It ends in time or with an error, and its memory and its place are free then: also those of a client that does
/// not read, for which nothing is polled.
fn in_time(page: Bytes, permit: OwnedSemaphorePermit) -> Body {
    let rest = Arc::new(Mutex::new(Some((page, permit))));
    let late = rest.clone();
    let timer = tokio::spawn(async move {
        sleep(limits::SCRAPE_TIME).await;
        late.lock().unwrap_or_else(PoisonError::into_inner).take();
    });
    let pieces = stream::unfold(Scrape { rest, timer }, |scrape| async {
        let piece = match &mut *scrape.rest.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((rest, _)) if rest.is_empty() => return None,
            // A copy: a slice would keep the whole page.
            Some((rest, _)) => Ok(Bytes::copy_from_slice(&rest.split_to(rest.len().min(PIECE)))),
            None => Err("the scrape takes too long".into()),
        };
        Some((piece, scrape))
    });
    Body::Made(pieces.boxed())
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
        self.page(method, |page| in_time(page, permit))
    }

    fn page(&self, method: &Method, body: impl FnOnce(Bytes) -> Body) -> Response<Body> {
        if method != Method::GET && method != Method::HEAD {
            return response::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let Ok(page) = self.metrics.page() else { return response::empty(StatusCode::INTERNAL_SERVER_ERROR) };
        let page = Bytes::from(page);
        let mut answer = response::empty(StatusCode::OK);
        answer.headers_mut().insert(header::CONTENT_TYPE, OPEN_METRICS);
        answer.headers_mut().insert(header::CONTENT_LENGTH, page.len().into());
        *answer.body_mut() = body(page);
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
                    METRICS => page.page(request.method(), Body::Whole),
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use opentelemetry_sdk::Resource;
    use skep_config::run_config::Transport;

    use super::{super::labels::Server, *};

    #[tokio::test]
    async fn few_scrapes_on_the_port_of_clients_are_made_at_once() {
        let server = Server::new("files", Transport::StreamableHttp);
        let page = Page {
            metrics: Arc::new(Prometheus::new(&Resource::builder_empty().build(), server, false)),
            host: String::new(),
            port: 0,
            shared_port: true,
            scrapes: Arc::new(Semaphore::new(limits::SCRAPES)),
        };
        let scrape = || page.respond(&Method::GET);
        let mut unread: Vec<_> = (0..limits::SCRAPES).map(|_| scrape()).collect();
        assert!(unread.iter().all(|response| response.status() == StatusCode::OK));
        assert_eq!(scrape().status(), StatusCode::SERVICE_UNAVAILABLE);
        let body = unread.pop().unwrap().into_body().collect().await.unwrap().to_bytes();
        assert!(body.ends_with(b"# EOF\n"), "{body:?}");
        assert_eq!(scrape().status(), StatusCode::OK);
    }

    #[tokio::test(start_paused = true)]
    async fn a_scrape_that_is_not_read_has_its_place_for_a_bounded_time() {
        let places = Arc::new(Semaphore::new(1));
        let page = Bytes::from(vec![b'#'; 3 * PIECE]);
        let mut unread = in_time(page.clone(), places.clone().try_acquire_owned().unwrap());
        assert_eq!(unread.frame().await.unwrap().unwrap().into_data().unwrap(), page[..PIECE]);
        assert!(places.clone().try_acquire_owned().is_err(), "it has not ended");
        sleep(limits::SCRAPE_TIME * 2).await;
        assert!(
            places.clone().try_acquire_owned().is_ok(),
            "others have its place, although it is not polled"
        );
        assert!(unread.frame().await.unwrap().is_err(), "the connection ends");
        drop(unread);
        let read = in_time(page.clone(), places.clone().try_acquire_owned().unwrap());
        assert_eq!(read.collect().await.unwrap().to_bytes(), page);
        assert!(places.try_acquire_owned().is_ok(), "it has ended");
    }
}
