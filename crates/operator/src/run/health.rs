//! The endpoints for the kubelet and Prometheus.

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use skep_world::World;
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinSet},
    time::sleep,
};

use super::{RunError, metrics::Metrics, status_health::StatusHealth};

/// The content type of Prometheus metrics.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
/// How long a client may take for the head of a request, and be silent between two.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How many connections there are at a time. A further one replaces the oldest: whoever opens them cannot keep the kubelet out.
const CONNECTIONS: usize = 64;
/// How long to wait after a connection could not be accepted: file descriptors may be used up.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Serves `/healthz` and `/readyz`, and `/metrics` if there are any, until the tasks are dropped.
pub(super) async fn serve(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    world: Arc<World>,
    statuses: Arc<StatusHealth>,
    metrics: Option<Arc<Metrics>>,
) -> Result<(), RunError> {
    let listener = TcpListener::bind(address).await.map_err(|error| RunError::Listen(address, error))?;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    tasks.spawn(async move {
        let mut connections: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_RETRY).await;
                continue;
            };
            if connections.len() >= CONNECTIONS {
                connections.retain(|connection| !connection.is_finished());
            }
            if connections.len() >= CONNECTIONS
                && let Some(oldest) = connections.pop_front()
            {
                oldest.abort();
            }
            let (world, statuses, metrics) = (world.clone(), statuses.clone(), metrics.clone());
            let response = service_fn(move |request: Request<Incoming>| {
                let response = response(request.uri().path(), &world, &statuses, metrics.as_deref());
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http.serve_connection(TokioIo::new(stream), response);
            connections.push_back(tokio::spawn(connection).abort_handle());
        }
    });
    Ok(())
}

fn response(
    path: &str,
    world: &World,
    statuses: &StatusHealth,
    metrics: Option<&Metrics>,
) -> Response<String> {
    let text = |status, text: &str| (status, TEXT, text.to_owned());
    let (status, content_type, body) = match (path, metrics) {
        ("/healthz", _) => text(StatusCode::OK, "ok"),
        ("/readyz", _) if world.is_listed() => match statuses.problem() {
            None => text(StatusCode::OK, "ok"),
            Some(problem) => text(StatusCode::SERVICE_UNAVAILABLE, &problem),
        },
        ("/readyz", _) => {
            text(StatusCode::SERVICE_UNAVAILABLE, "the watches have not listed all objects yet")
        }
        ("/metrics", Some(metrics)) => (StatusCode::OK, OPEN_METRICS, metrics.text(world)),
        _ => text(StatusCode::NOT_FOUND, "not found"),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        time::timeout,
    };

    use super::*;

    async fn sent(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// What arrives until the server closes the connection, if it does.
    async fn response(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        let read: io::Result<usize> = timeout(HEAD_TIME * 2, stream.read_to_string(&mut text)).await.unwrap();
        // An aborted connection may be reset.
        read.unwrap_or_default();
        text
    }

    #[tokio::test]
    async fn half_requests_end_and_keep_no_probe_out() {
        let address: SocketAddr = ([127, 0, 0, 1], skep_testkit::free_port()).into();
        let (world, statuses) = (World::builder().offline(), Arc::new(StatusHealth::new(Duration::MAX)));
        let mut tasks = JoinSet::new();
        serve(&mut tasks, address, world, statuses, None).await.unwrap();
        let mut half = Vec::new();
        for _ in 0..CONNECTIONS * 4 {
            half.push(sent(address, "GET /healthz HTTP/1.1\r\n").await);
        }
        let whole = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        let mut probe = sent(address, whole).await;
        assert!(response(&mut probe).await.starts_with("HTTP/1.1 200"));
        for stream in &mut half {
            let text = response(stream).await;
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
        }
    }
}
