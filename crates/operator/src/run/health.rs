//! What the kubelet and Prometheus ask.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use skep_world::World;
use tokio::{net::TcpListener, task::JoinSet};

use super::{RunError, metrics::Metrics};

/// Answers `/healthz` and `/readyz`, and `/metrics` if there are any, until the tasks are dropped.
pub(super) async fn serve(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    world: Arc<World>,
    metrics: Option<Arc<Metrics>>,
) -> Result<(), RunError> {
    let listener = TcpListener::bind(address).await.map_err(|error| RunError::Listen(address, error))?;
    tasks.spawn(async move {
        loop {
            // A connection that fails to be is not ours to mend.
            let Ok((stream, _)) = listener.accept().await else { continue };
            let (world, metrics) = (world.clone(), metrics.clone());
            let answer = service_fn(move |request: Request<Incoming>| {
                let answer = answer(request.uri().path(), &world, metrics.as_deref());
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    Ok(())
}

fn answer(path: &str, world: &World, metrics: Option<&Metrics>) -> Response<String> {
    let (status, body) = match (path, metrics) {
        ("/healthz", _) => (StatusCode::OK, "ok".to_owned()),
        ("/readyz", _) if world.is_listed() => (StatusCode::OK, "ok".to_owned()),
        ("/readyz", _) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the cluster is still being looked over".to_owned())
        }
        ("/metrics", Some(metrics)) => (StatusCode::OK, metrics.text()),
        _ => (StatusCode::NOT_FOUND, "not found".to_owned()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
