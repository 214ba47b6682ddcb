//! A client of the proxy, with a session.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use skep_mcp::sse;

use crate::fixture::{Answer, Fixture, call};

pub(crate) const STREAM: (&str, &str) = ("accept", "application/json, text/event-stream");

/// How long a test waits.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn initialize(version: &str, capabilities: Value) -> String {
    let client = json!({"name": "t", "version": "1"});
    call(
        "initialize",
        json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}),
    )
}

/// A client in a session of streamable HTTP.
pub(crate) struct Client<'a> {
    fixture: &'a Fixture,
    pub(crate) session: String,
}

impl<'a> Client<'a> {
    pub(crate) async fn new(fixture: &'a Fixture) -> Self {
        Self::with_capabilities(fixture, json!({"sampling": {}, "roots": {}, "elicitation": {}})).await
    }

    pub(crate) async fn with_capabilities(fixture: &'a Fixture, capabilities: Value) -> Self {
        let answer = fixture.post(&[], &initialize("2025-11-25", capabilities)).await;
        assert_eq!(answer.status, StatusCode::OK, "{:?}", answer.body);
        let session = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let client = Self { fixture, session };
        let ready = client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        assert_eq!(ready.status, StatusCode::ACCEPTED);
        client
    }

    /// Sends a message, and reads the whole response.
    pub(crate) async fn post(&self, body: &str) -> Answer {
        self.fixture.post(&[("mcp-session-id", &self.session)], body).await
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> Value {
        self.post(&call(method, params)).await.json()
    }

    /// Sends a request, and returns the stream of the response.
    pub(crate) async fn stream(&self, body: &str) -> Events {
        Events::new(send(self.fixture, Method::POST, "/mcp", &[STREAM, self.header()], body).await)
    }

    /// Opens the stream of the session.
    pub(crate) async fn listen(&self) -> Events {
        Events::new(send(self.fixture, Method::GET, "/mcp", &[STREAM, self.header()], "").await)
    }

    fn header(&self) -> (&str, &str) {
        ("mcp-session-id", &self.session)
    }
}

pub(crate) async fn send(
    fixture: &Fixture,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Response<Incoming> {
    let mut request = Request::builder().method(method).uri(format!("http://{}{path}", fixture.address));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap();
    tokio::time::timeout(PATIENCE, fixture.client.request(request)).await.expect("no response").unwrap()
}

/// A stream of events.
pub(crate) struct Events {
    body: Incoming,
    decoder: sse::Decoder,
}

impl Events {
    pub(crate) fn new(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), decoder: sse::Decoder::new(64 << 20) }
    }

    /// The kind and the data of the next event, or nothing at the end.
    pub(crate) async fn event(&mut self) -> Option<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        loop {
            if let Some(frame) = self.decoder.frame().unwrap() {
                if let sse::Frame::Event(event) = frame {
                    let kind = event.kind().map_or_else(|| "message".into(), text);
                    return Some((kind, text(event.data().unwrap())));
                }
                continue;
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("no event")?;
            self.decoder.feed(&frame.ok()?.into_data().unwrap());
        }
    }

    /// The next message, as it is spelled.
    pub(crate) async fn text(&mut self) -> Option<String> {
        self.event().await.map(|(_, data)| data)
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.text().await.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// Checks that this is the next message: no other has been sent before.
    pub(crate) async fn expect(&mut self, expected: Value) {
        assert_eq!(self.next().await, Some(expected));
    }
}
