//! The endpoints for the kubelet and Prometheus.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use skep_world::World;
use tokio::{net::TcpListener, task::JoinSet};

use super::{RunError, metrics::Metrics, status_health::StatusHealth};

/// The content type of Prometheus metrics.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
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
    tasks.spawn(async move {
        loop {
            // A failed connection is the client's problem.
            let Ok((stream, _)) = listener.accept().await else { continue };
            let (world, statuses, metrics) = (world.clone(), statuses.clone(), metrics.clone());
            let response = service_fn(move |request: Request<Incoming>| {
                let response = response(request.uri().path(), &world, &statuses, metrics.as_deref());
                async move { Ok::<_, Infallible>(response) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), response));
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
