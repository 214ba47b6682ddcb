//! A fake backend whose responses a test writes: each request is passed to it, and responded to when the test does.

use std::{convert::Infallible, net::SocketAddr};

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
    sync::{Mutex, mpsc},
    task::JoinHandle,
};

/// Which revisions it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Legacy,
    Modern,
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
}

impl Received {
    /// Sends a message on the stream of the response.
    pub(crate) fn send(&self, message: Value) {
        self.respond.send(message.to_string()).ok();
    }

    /// Sends the result, after which the stream ends.
    pub(crate) fn result(self, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": self.message["id"], "result": result}));
    }

    /// The same for a result that is JSON already.
    pub(crate) fn result_text(self, result: &str) {
        let id = &self.message["id"];
        self.respond.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)).ok();
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
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let sender = sender.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| respond(request, speaks, sender.clone()));
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { address, received: Mutex::new(received), task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The next message of this method, or with no method for a response.
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
async fn respond(
    request: Request<Incoming>,
    speaks: Speaks,
    sender: mpsc::UnboundedSender<Received>,
) -> Result<Reply, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let capabilities = json!({
        "tools": {}, "logging": {}, "resources": {"subscribe": true},
    });
    let result = match message["method"].as_str().unwrap_or_default() {
        _ if head.method == Method::DELETE => return Ok(status(200)),
        _ if head.method == Method::GET => Some(update()),
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
    let (events, responses) = mpsc::unbounded_channel();
    let is_request = message.get("id").is_some() && message.get("method").is_some();
    match result {
        Some(event) if head.method == Method::GET => events.send(event.to_string()).unwrap(),
        Some(result) => {
            let response = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            events.send(response.to_string()).unwrap()
        }
        None => {
            sender.send(Received { message, headers: head.headers, respond: events }).ok();
            if !is_request {
                return Ok(status(202));
            }
        }
    }
    let events = stream::unfold(responses, |mut responses| async move {
        let message = responses.recv().await?;
        Some((Ok(Frame::data(Bytes::from(format!("event: message\ndata: {message}\n\n")))), responses))
    });
    let mut response = Response::new(StreamBody::new(events.boxed()).boxed_unsync());
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    response.headers_mut().insert("mcp-session-id", "s1".parse().unwrap());
    Ok(response)
}

fn status(status: u16) -> Reply {
    let mut response = Response::new(http_body_util::Empty::new().boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
    response
}
