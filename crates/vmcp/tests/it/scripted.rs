//! A fake backend whose responses a test writes: each request is passed to it, and responded to when the test does.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex as StdMutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc, oneshot},
    task::JoinHandle,
};

/// Which revisions it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Legacy,
    /// The same, and the test responds to requests for streams, too.
    LegacyWithStreams,
    Modern,
    /// HTTP+SSE.
    Sse,
    /// The same, and it responds to a request as such only when the test drops it, as a servlet does that has completed it.
    Servlet,
    /// Streamable HTTP, and it responds to an answer of the client only when the test drops it, or rejects it.
    LegacyHoldingAnswers,
}

impl Speaks {
    fn is_sse(self) -> bool {
        matches!(self, Self::Sse | Self::Servlet)
    }
}

/// What all connections of a backend share.
struct Shared {
    speaks: Speaks,
    sender: mpsc::UnboundedSender<Received>,
    /// The streams of sessions by their numbers, of a backend that speaks HTTP+SSE.
    streams: StdMutex<HashMap<usize, mpsc::UnboundedSender<String>>>,
}

/// What a backend of the older era announces on each of its streams that belong to no request.
pub(crate) fn update() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "kit://1"}})
}

/// A message that the backend received, and where its response goes, event by event.
pub(crate) struct Received {
    pub(crate) message: Value,
    pub(crate) headers: HeaderMap,
    respond: mpsc::UnboundedSender<String>,
    status: oneshot::Sender<u16>,
}

impl Received {
    /// Sends a message on the stream of the response.
    pub(crate) fn send(&self, message: Value) {
        self.send_raw(&event(&message.to_string()));
    }

    /// Sends this on the stream of the response, which ends when this is dropped.
    pub(crate) fn send_raw(&self, text: &str) {
        self.respond.send(text.to_owned()).ok();
    }

    /// The session that it was sent in.
    pub(crate) fn session(&self) -> &str {
        self.headers["mcp-session-id"].to_str().unwrap()
    }

    /// Responds with this status to a request that is held.
    pub(crate) fn reject(self, status: u16) {
        self.status.send(status).unwrap();
    }

    /// Ends the stream of the response without one. Returns the message.
    pub(crate) fn end(self) -> Value {
        self.message
    }

    /// Sends the result, after which the stream ends.
    pub(crate) fn result(self, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}));
    }

    /// The same for a result that is JSON already.
    pub(crate) fn result_text(self, result: &str) {
        let id = &self.message["id"];
        self.send_raw(&event(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)));
    }

    /// Whether the virtual server still reads the response.
    pub(crate) async fn is_abandoned(&self) {
        self.respond.closed().await;
    }
}

pub(crate) struct Scripted {
    address: SocketAddr,
    received: Mutex<mpsc::UnboundedReceiver<Received>>,
    task: JoinHandle<()>,
}

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Scripted {
    pub(crate) async fn start(speaks: Speaks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared { speaks, sender, streams: StdMutex::default() });
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = shared.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| respond(request, shared.clone()));
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { address, received: Mutex::new(received), task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The next message of this method, or with no method for a response. GET is a request for a stream.
    pub(crate) async fn next(&self, method: &str) -> Received {
        let mut received = self.received.lock().await;
        loop {
            let next = received.recv().await.unwrap();
            if next.message["method"].as_str().unwrap_or_default() == method {
                return next;
            }
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Handshake and lists have fixed responses; everything else is for the test.
async fn respond(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Reply, Infallible> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let (number, speaks) = (NUMBER.fetch_add(1, Ordering::Relaxed), shared.speaks);
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if head.method == Method::GET {
        message = json!({"method": "GET"});
    }
    let capabilities = json!({
        "tools": {}, "logging": {}, "resources": {"subscribe": true},
    });
    let result = match message["method"].as_str().unwrap_or_default() {
        _ if head.method == Method::DELETE => return Ok(status(200)),
        "GET" if speaks.is_sse() => None,
        "GET" if speaks == Speaks::Legacy => Some(update()),
        "server/discover" if speaks == Speaks::Modern => {
            Some(json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities}))
        }
        "server/discover" => return Ok(status(400)),
        "initialize" => Some(json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": {"name": "scripted", "version": "1"},
        })),
        "notifications/initialized" => return Ok(status(202)),
        "tools/list" => Some(json!({"tools": [
            {"name": "ask", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}},
        ]})),
        "resources/list" => Some(json!({"resources": [{"uri": "kit://1", "name": "one"}]})),
        "resources/templates/list" => Some(json!({"resourceTemplates": []})),
        _ => None,
    };
    let (mut events, responses) = mpsc::unbounded_channel();
    let has_response = message.get("id").is_some() && message.get("method").is_some();
    let session = head.uri.query().and_then(|query| query.strip_prefix("s=")?.parse::<usize>().ok());
    if let Some(session) = session {
        events = shared.streams.lock().unwrap()[&session].clone();
    }
    match result {
        Some(event) if head.method == Method::GET => events.send(self::event(&event.to_string())).unwrap(),
        Some(result) => {
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            events.send(event(&response.to_string())).unwrap()
        }
        None if head.method == Method::GET && speaks.is_sse() => {
            events.send(format!("event: endpoint\ndata: /messages?s={number}\n\n")).unwrap();
            shared.streams.lock().unwrap().insert(number, events);
        }
        None => {
            let is_stream = has_response || head.method == Method::GET;
            let (chosen, chosen_status) = oneshot::channel();
            let received = Received { message, headers: head.headers, respond: events, status: chosen };
            let is_held = match speaks {
                Speaks::Servlet => has_response,
                Speaks::LegacyHoldingAnswers => received.message.get("method").is_none(),
                _ => false,
            };
            shared.sender.send(received).ok();
            if is_held && let Ok(chosen) = chosen_status.await {
                return Ok(status(chosen));
            }
            if !is_stream {
                return Ok(status(202));
            }
        }
    }
    if session.is_some() {
        return Ok(status(202));
    }
    let events = stream::unfold(responses, |mut responses| async move {
        let text = responses.recv().await?;
        Some((Ok(Frame::data(Bytes::from(text))), responses))
    });
    let mut response = Response::new(StreamBody::new(events.boxed()).boxed_unsync());
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response.headers_mut().insert("mcp-session-id", format!("s{number}").parse().unwrap());
    Ok(response)
}

fn event(message: &str) -> String {
    format!("event: message\ndata: {message}\n\n")
}

fn status(status: u16) -> Reply {
    let mut response = Response::new(http_body_util::Empty::new().boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response
}
