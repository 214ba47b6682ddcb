//! The listener: it accepts connections, limits them, and shuts down gracefully.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::Instant,
};
use tracing::{Instrument, Span, debug, info, warn};

use super::{
    Body, access_log,
    connection::{self, Activity},
    framing::head_length,
    places::{ConnectionLimits, Connections},
    response,
    write_timeout::WriteTimeout,
};
use crate::{joined_writes::JoinedWrites, limits, workers::Workers};

/// What a listener serves.
pub trait Service: Send + Sync + 'static {
    /// Responds to a request of the client at this address.
    fn respond(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
    ) -> impl Future<Output = Response<Body>> + Send;

    /// Whether clients are to use another connection for their next request.
    fn is_draining(&self) -> bool;

    /// Does the work that no request waits for, until it is stopped. It is called again after a panic.
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
    workers: Workers,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_within(ConnectionLimits::default(), listener, service, workers, stop).await
}

/// The same within other limits.
pub async fn serve_within<S: Service>(
    connections: ConnectionLimits,
    listener: TcpListener,
    service: Arc<S>,
    mut workers: Workers,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let places = Connections::new(connections);
    let (ending, _) = watch::channel(());
    let mut http = http1::Builder::new();
    // The time for a head is limited by `connection`.
    http.header_read_timeout(None);
    let mut running = tokio::spawn({
        let service = service.clone();
        async move { skep_panics::restart("beside requests", || service.run()).await }.in_current_span()
    });
    let mut serve = |(stream, peer): (TcpStream, SocketAddr)| {
        let Some(place) = places.take(peer) else {
            debug!(%peer, "connection closed: there are too many");
            return;
        };
        stream.set_nodelay(true).ok();
        let (service, mut http, ended) = (service.clone(), http.clone(), ending.subscribe());
        // hyper stops reading when it has this much of a head that is not complete, so one that ends within its last read may be longer.
        http.max_buf_size(place.head);
        let longest = place.head;
        let span = Span::current();
        let served = move |stream| {
            // Requests share what belongs to their connection: if they shared the service, all threads would write to its counter.
            let (shared, is_reserved) = (Arc::new((service, Activity::new())), place.is_reserved);
            let (seen, read) = (shared.clone(), shared.clone());
            let responder = service_fn(move |request: Request<Incoming>| {
                shared.1.begin();
                let shared = shared.clone();
                async move {
                    let (service, activity) = &*shared;
                    let is_too_long = head_length(&request) > longest;
                    let mut response = if is_too_long {
                        response::empty(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
                    } else if is_reserved && request.uri().path() != HEALTH {
                        too_many()
                    } else {
                        access_log::respond(&**service, request, peer).await
                    };
                    if is_reserved || is_too_long {
                        // It is for one probe, and must not be held.
                        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    }
                    activity.end();
                    Ok::<_, Infallible>(response)
                }
            });
            let stream = JoinedWrites(stream);
            let stream = TokioIo::new(WriteTimeout::new(stream, limits::WRITE_TIME, move || read.1.read()));
            let connection = http.serve_connection(stream, responder);
            let time = if is_reserved { limits::PROBE_HEAD_TIME } else { limits::FIRST_HEAD_TIME };
            let served = async move {
                if let Err(error) = connection::serve(connection, &seen.1, time, ended).await {
                    debug!(%error, "a connection ended with an error");
                }
                drop(place);
            };
            served.instrument(span)
        };
        if let Err(error) = workers.serve(stream, served) {
            warn!(%error, "failed to serve a connection");
        }
    };
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            accepted = accept(&listener) => serve(accepted),
            () = &mut stop => break,
        }
    }
    let stopped = Instant::now();
    // A client whose connection is accepted last must not lose its request.
    while service.is_draining()
        && stopped.elapsed() < limits::LATE_TIME
        && let Ok(accepted) = tokio::time::timeout(limits::QUIET_TIME, accept(&listener)).await
    {
        serve(accepted);
    }
    drop(listener);
    service.close_streams();
    if tokio::time::timeout_at(stopped + limits::DRAIN_TIME, end_connections(&ending)).await.is_err() {
        info!("timeout waiting for requests in flight");
    }
    if service.stop() && tokio::time::timeout(limits::END_TIME, &mut running).await.is_err() {
        warn!("timeout waiting for the server to stop");
    }
    running.abort();
    service.flush().await;
    Ok(())
}

/// The next connection.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                // It was closed before it was accepted, or there are too many open files: the next may succeed.
                warn!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The path that probes request. Services respond to it without authentication.
const HEALTH: &str = "/health";

/// The response on a connection that is accepted for probes only.
fn too_many() -> Response<Body> {
    let mut response = response::text(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n");
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Ends all connections after their requests in flight.
async fn end_connections(ending: &watch::Sender<()>) {
    ending.send_replace(());
    ending.closed().await;
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        task::JoinHandle,
        time::{sleep, timeout},
    };

    use super::*;

    /// A service in a pod that has received SIGTERM.
    struct Leaving;

    impl Service for Leaving {
        async fn respond(&self, _: Request<Incoming>, _: SocketAddr) -> Response<Body> {
            response::text(StatusCode::OK, "served")
        }

        fn is_draining(&self) -> bool {
            true
        }

        async fn run(&self) {
            std::future::pending().await
        }

        fn close_streams(&self) {}

        fn stop(&self) -> bool {
            false
        }

        async fn flush(&self) {}
    }

    /// A listener that is leaving already, and its address.
    async fn leave() -> (JoinHandle<io::Result<()>>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (tokio::spawn(serve(listener, Arc::new(Leaving), Workers::default(), async {})), address)
    }

    #[tokio::test]
    async fn connections_that_arrive_late_are_served_until_no_more_arrive() {
        let (serving, address) = leave().await;
        for _ in 0..15 {
            let mut client = TcpStream::connect(address).await.unwrap();
            // On a busy machine a request arrives some time after its connection.
            sleep(limits::QUIET_TIME / 10).await;
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut response = String::new();
            client.read_to_string(&mut response).await.unwrap();
            assert!(response.ends_with("served"), "{response:?}");
        }
        timeout(limits::LATE_TIME, serving).await.unwrap().unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
    }

    #[tokio::test]
    async fn a_stranger_who_connects_again_and_again_does_not_keep_a_pod_from_leaving() {
        let (serving, address) = leave().await;
        let stranger = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok(connection) = TcpStream::connect(address).await {
                held.push(connection);
                sleep(limits::QUIET_TIME / 10).await;
            }
        });
        timeout(limits::DRAIN_TIME, serving).await.unwrap().unwrap().unwrap();
        stranger.await.unwrap();
    }
}
