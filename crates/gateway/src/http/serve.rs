//! The listener: it accepts connections, limits them, and shuts down gracefully.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, sync::Arc};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tracing::{Instrument, Span, debug, info, warn};

use super::{Body, access_log};
use crate::{limits, workers::Workers};

/// What a listener serves.
pub trait Service: Send + Sync + 'static {
    /// Responds to a request of the client at this address.
    fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send;

    /// Whether clients are to use another connection for their next request.
    fn is_leaving(&self) -> bool;

    /// Does what is to be done beside requests, until it is stopped.
    fn run(&self) -> impl Future<Output = ()> + Send;

    /// Ends the streams of clients that only listen. Requests in flight are completed.
    fn close_streams(&self);

    /// Stops what it has started, and returns whether [`run`](Self::run) is to be waited for.
    fn stop(&self) -> bool;

    /// Sends the last traces and metrics.
    fn flush(&self) -> impl Future<Output = ()> + Send;
}

/// Serves until `stop` is done, and then lets requests in flight complete.
pub async fn serve<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    mut workers: Workers,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let connections = Arc::new(Semaphore::new(limits::CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::IDLE_TIME).max_buf_size(limits::HEAD);
    let mut running = tokio::spawn({
        let service = service.clone();
        async move { service.run().await }.in_current_span()
    });
    tokio::pin!(stop);
    loop {
        let place = tokio::select! {
            place = connections.clone().acquire_owned() => place.map_err(io::Error::other)?,
            () = &mut stop => break,
        };
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // It was closed before it was accepted, or there are too many open files: the next may succeed.
                    warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        stream.set_nodelay(true).ok();
        let (service, http, watcher) = (service.clone(), http.clone(), graceful.watcher());
        let span = Span::current();
        let served = move |stream| {
            let responder = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(access_log::respond(&*service, request, peer).await) }
            });
            let connection = watcher.watch(http.serve_connection(TokioIo::new(stream), responder));
            let served = async move {
                if let Err(error) = connection.await {
                    debug!(%error, "a connection ended with an error");
                }
                drop(place);
            };
            served.instrument(span)
        };
        if let Err(error) = workers.serve(stream, served) {
            warn!(%error, "failed to serve a connection");
        }
    }
    drop(listener);
    service.close_streams();
    if tokio::time::timeout(limits::DRAIN_TIME, graceful.shutdown()).await.is_err() {
        info!("timeout waiting for requests in flight");
    }
    if service.stop() && tokio::time::timeout(limits::END_TIME, &mut running).await.is_err() {
        warn!("timeout waiting for the server to stop");
    }
    running.abort();
    service.flush().await;
    Ok(())
}
