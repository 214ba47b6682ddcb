//! The listener: connections in, and a good end.

use std::{convert::Infallible, future::Future, io, sync::Arc};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{net::TcpListener, sync::Semaphore};
use tracing::{Instrument, Span, debug, info, warn};

use crate::{Proxy, access, limits, workers::Workers};

/// Serves until `stop` is done, and then lets the requests that are on their way end.
pub async fn serve(
    listener: TcpListener,
    proxy: Arc<Proxy>,
    mut workers: Workers,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let connections = Arc::new(Semaphore::new(limits::CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::IDLE_TIME).max_buf_size(limits::HEAD);
    let mut housekeeping = tokio::spawn({
        let proxy = proxy.clone();
        async move { proxy.housekeeping().await }.in_current_span()
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
                    // One that is gone before it was accepted, or a file too many: the next may do better.
                    warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = &mut stop => break,
        };
        stream.set_nodelay(true).ok();
        let (proxy, http, watcher) = (proxy.clone(), http.clone(), graceful.watcher());
        let span = Span::current();
        let served = move |stream| {
            let service = service_fn(move |request| {
                let proxy = proxy.clone();
                async move { Ok::<_, Infallible>(access::answered(&proxy, request, peer).await) }
            });
            let connection = watcher.watch(http.serve_connection(TokioIo::new(stream), service));
            let served = async move {
                if let Err(error) = connection.await {
                    debug!(%error, "a connection ended early");
                }
                drop(place);
            };
            served.instrument(span)
        };
        if let Err(error) = workers.serve(stream, served) {
            warn!(%error, "a connection cannot be served");
        }
    }
    drop(listener);
    proxy.close();
    if tokio::time::timeout(limits::DRAIN_TIME, graceful.shutdown()).await.is_err() {
        info!("some requests did not end in time");
    }
    if proxy.stop() && tokio::time::timeout(limits::END_TIME, &mut housekeeping).await.is_err() {
        warn!("the server did not end in time");
    }
    housekeeping.abort();
    proxy.flush().await;
    Ok(())
}
