//! A server of streamable HTTP that counts its connections and streams.

use std::{
    collections::HashSet,
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The counters.
#[derive(Default)]
pub(super) struct Counts {
    connections: AtomicUsize,
    streams: AtomicUsize,
    written: AtomicUsize,
    calls: AtomicUsize,
    /// The sessions that were ended.
    ended: Mutex<HashSet<HeaderValue>>,
}

pub(super) struct Backend {
    pub(super) address: SocketAddr,
    counts: Arc<Counts>,
}

impl Counts {
    /// Whether the session was ended before; this may end it.
    fn has_ended(&self, session: &HeaderValue, method: &Method) -> bool {
        let mut ended = self.ended.lock().unwrap();
        match *method {
            Method::DELETE => !ended.insert(session.clone()),
            _ => ended.contains(session),
        }
    }
}

/// One more, for as long as this lives.
struct Counted(Arc<Counts>, fn(&Counts) -> &AtomicUsize);

impl Counted {
    fn new(counts: &Arc<Counts>, which: fn(&Counts) -> &AtomicUsize) -> Self {
        which(counts).fetch_add(1, Ordering::SeqCst);
        Self(counts.clone(), which)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.1)(&self.0).fetch_sub(1, Ordering::SeqCst);
    }
}

/// The same piece again and again, as often as it is polled.
struct Pieces {
    piece: Bytes,
    left: usize,
    stays: bool,
    stream: Counted,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match (self.left, self.stays) {
            (0, true) => Poll::Pending,
            (0, false) => Poll::Ready(None),
            _ => {
                self.left -= 1;
                self.stream.0.written.fetch_add(self.piece.len(), Ordering::SeqCst);
                Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
            }
        }
    }
}

impl Backend {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::<Counts>::default();
        let shared = counts.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let counts = shared.clone();
                tokio::spawn(async move {
                    let _connection = Counted::new(&counts, |counts| &counts.connections);
                    let service = service_fn(|request| answer(request, counts.clone()));
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { address, counts }
    }

    /// The connections that are open.
    pub(super) fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// The responses that have not ended.
    pub(super) fn streams(&self) -> usize {
        self.counts.streams.load(Ordering::SeqCst)
    }

    /// The bytes of responses that were read from it.
    pub(super) fn written(&self) -> usize {
        self.counts.written.load(Ordering::SeqCst)
    }

    pub(super) fn calls(&self) -> usize {
        self.counts.calls.load(Ordering::SeqCst)
    }
}

/// `initialize` starts a session, `hang` gets no response, `large` and GET get one that depends on the path.
async fn answer(
    request: Request<Incoming>,
    counts: Arc<Counts>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Ok(Response::default()) };
    let message: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    let stream = || Counted::new(&counts, |counts| &counts.streams);
    let mut response = Response::new(());
    let json = |result: Value| {
        Full::from(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
            .boxed_unsync()
    };
    let session = parts.headers.get("mcp-session-id");
    let body = match (&parts.method, message["method"].as_str().unwrap_or_default()) {
        (method, _) if session.is_some_and(|session| counts.has_ended(session, method)) => {
            *response.status_mut() = StatusCode::NOT_FOUND;
            Full::default().boxed_unsync()
        }
        (&Method::GET, _) => {
            response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
            let (piece, left) = match parts.uri.path() {
                "/flood" => (
                    format!(
                        "data: {}\n\n",
                        json!({"jsonrpc": "2.0", "method": "n", "params": {"x": "x".repeat(60 << 10)}})
                    ),
                    8 << 10,
                ),
                _ => ("data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n".into(), 1),
            };
            Pieces { piece: piece.into(), left, stays: true, stream: stream() }.boxed_unsync()
        }
        (&Method::DELETE, _) => Full::default().boxed_unsync(),
        (_, "initialize") => {
            let id = uuid::Uuid::new_v4().to_string();
            response.headers_mut().insert("mcp-session-id", id.parse().unwrap());
            json(json!({"protocolVersion": "2025-11-25"}))
        }
        (_, "hang") => {
            let _hangs = stream();
            std::future::pending().await
        }
        (_, "large") => {
            let piece = Bytes::from(vec![b' '; 64 << 10]);
            Pieces { piece, left: 4 << 10, stays: false, stream: stream() }.boxed_unsync()
        }
        _ if message.get("id").is_none() => {
            *response.status_mut() = StatusCode::ACCEPTED;
            Full::default().boxed_unsync()
        }
        _ => {
            counts.calls.fetch_add(1, Ordering::SeqCst);
            json(json!({"echo": message["params"]}))
        }
    };
    if !response.headers().contains_key("content-type") {
        response.headers_mut().insert("content-type", "application/json".parse().unwrap());
    }
    Ok(response.map(|()| body))
}
