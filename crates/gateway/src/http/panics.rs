//! Panics: each ends what it happens in, and nothing else.

use std::{
    future::pending,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{oneshot, watch},
};

use super::{Body, Service, response, serve};
use crate::{Workers, request_context};

/// Panics in the response to `/panic`, in the body of `/body`, and the first time that it runs.
struct Fragile {
    runs: AtomicUsize,
    ran: watch::Sender<usize>,
}

impl Service for Fragile {
    async fn respond(&self, request: Request<Incoming>, _: SocketAddr) -> Response<Body> {
        match request.uri().path() {
            "/panic" => panic!("a defect"),
            "/body" => {
                let broken = stream::once(async { panic!("a defect") });
                Response::new(Body::Made(broken.boxed()))
            }
            _ => response::empty(StatusCode::NO_CONTENT),
        }
    }

    fn is_draining(&self) -> bool {
        false
    }

    async fn run(&self) {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        assert!(run > 0, "a defect");
        self.ran.send_replace(run);
        pending().await
    }

    fn close_streams(&self) {}

    fn stop(&self) -> bool {
        false
    }

    async fn flush(&self) {}
}

async fn get(stream: &mut TcpStream, path: &str) -> String {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await.unwrap();
    String::from_utf8(answer[..read].to_vec()).unwrap()
}

#[tokio::test]
async fn a_panic_ends_one_request_or_one_connection_and_what_runs_beside_is_started_again() {
    skep_panics::report();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (ran, mut runs) = watch::channel(0);
    let service = Arc::new(Fragile { runs: AtomicUsize::new(0), ran });
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, service, Workers::beside_this_thread().unwrap(), async {
        stopped.await.ok();
    }));
    let before = skep_panics::COUNT.get();
    for _ in 0..4 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let answer = get(&mut connection, "/panic").await;
        assert!(answer.starts_with("HTTP/1.1 500 ") && answer.contains("internal error"), "{answer}");
        assert!(!answer.contains("a defect"), "{answer}");
        let answer = get(&mut connection, "/").await;
        assert!(answer.starts_with("HTTP/1.1 204 "), "the connection goes on: {answer}");
        assert!(request_context().is_none());
        let mut broken = TcpStream::connect(address).await.unwrap();
        get(&mut broken, "/body").await;
        assert!(get(&mut connection, "/").await.starts_with("HTTP/1.1 204 "), "others go on");
    }
    assert!(skep_panics::COUNT.get() - before >= 8);
    tokio::time::timeout(Duration::from_secs(30), runs.wait_for(|run| *run == 1)).await.unwrap().unwrap();
    drop(stop);
    serving.await.unwrap().unwrap();
}
