//! A session of the proxy itself.

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use skep_api::server_report::ServerReport;
use skep_gateway::{
    http::{Body, events::is_stream},
    message::Exchange,
};
use skep_mcp::{
    Envelope, Kind, Message, Outcome, Raw, Revision,
    header::{MCP_METHOD, MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
};

use tracing::debug;

use super::{
    InspectError,
    description::server,
    events::{Events, whole},
};
use crate::server::Server;

/// How large a result may be that is no list.
const RESULT: usize = 1 << 20;

/// A session with the server, or none where it needs none.
pub(super) struct Client<'a> {
    upstream: &'a Server,
    /// The request of a caller that this is done for.
    caller: Option<&'a Exchange>,
    /// The path of messages.
    path: String,
    /// Where the responses arrive, in the HTTP+SSE transport of 2024.
    stream: Option<Events>,
    session: Option<HeaderValue>,
    revision: Option<String>,
    capabilities: Value,
    server: ServerReport,
    /// The id of the last request.
    id: u64,
}

impl<'a> Client<'a> {
    /// Initializes a session; a server of 2026-07-28 alone needs none.
    pub(super) async fn open(
        upstream: &'a Server,
        caller: Option<&'a Exchange>,
    ) -> Result<Self, InspectError> {
        let mut client = Self {
            upstream,
            caller,
            path: "/mcp".into(),
            stream: None,
            session: None,
            revision: None,
            capabilities: Value::Null,
            server: ServerReport::default(),
            id: 0,
        };
        if upstream.is_http_sse() {
            client.listen().await?;
        }
        match client.initialize().await {
            Err(InspectError::Invalid(reason)) if !client.discover().await => {
                Err(InspectError::Invalid(reason))
            }
            Err(InspectError::Invalid(_)) | Ok(()) => Ok(client),
            Err(error) => Err(error),
        }
    }

    /// What the server declares of itself.
    pub(super) fn server(&self) -> &ServerReport {
        &self.server
    }

    pub(super) fn has_capability(&self, name: &str) -> bool {
        self.capabilities[name].is_object()
    }

    /// One page of a list, as a message.
    pub(super) async fn list(&mut self, method: &str, cursor: Option<&str>) -> Result<Bytes, InspectError> {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        self.message(method, params).await
    }

    /// Ends the session, as far as that is possible.
    pub(super) async fn close(mut self) {
        if self.session.is_some() {
            self.send(Method::DELETE, Value::Null).await.ok();
        }
    }

    /// Opens the stream of a server of 2024, which announces where messages are sent.
    async fn listen(&mut self) -> Result<(), InspectError> {
        self.path = "/sse".into();
        let response = self.send(Method::GET, Value::Null).await?;
        let mut stream = Events::new(response.into_body());
        loop {
            let (kind, data) = stream.next().await?;
            if kind == "endpoint" {
                self.path = path_of(&String::from_utf8_lossy(&data));
                self.stream = Some(stream);
                return Ok(());
            }
        }
    }

    async fn initialize(&mut self) -> Result<(), InspectError> {
        let latest = Revision::V2025_11_25.name();
        let client = json!({"name": "skep-proxy", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": latest, "capabilities": {}, "clientInfo": client});
        let result = self.request("initialize", params).await?;
        let revision = result["protocolVersion"].as_str().unwrap_or(latest).to_owned();
        self.server = server(&result["serverInfo"], &[&revision]);
        self.capabilities = result["capabilities"].clone();
        self.revision = Some(revision);
        self.send(Method::POST, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(())
    }

    /// Whether the server speaks a revision without sessions.
    async fn discover(&mut self) -> bool {
        self.revision = Some(Revision::V2026_07_28.name().into());
        let Ok(result) = self.request("server/discover", json!({})).await else { return false };
        let versions = result["supportedVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let versions: Vec<&str> = versions.iter().filter_map(Value::as_str).collect();
        let info = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        self.server = server(info, &versions);
        self.capabilities = result["capabilities"].clone();
        true
    }

    /// Sends a request, and returns its result, which is small.
    async fn request(&mut self, method: &str, params: Value) -> Result<Value, InspectError> {
        let message = self.message(method, params).await?;
        let too_large =
            || InspectError::Invalid(format!("{method}: the result is larger than {RESULT} bytes"));
        let message = Some(message).filter(|message| message.len() <= RESULT).ok_or_else(too_large)?;
        let mut message: Value = serde_json::from_slice(&message).unwrap_or_default();
        Ok(message["result"].take())
    }

    /// Sends a request, and returns the message with its result.
    async fn message(&mut self, method: &str, mut params: Value) -> Result<Bytes, InspectError> {
        self.id += 1;
        if self.is_modern() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.name(),
                "io.modelcontextprotocol/clientInfo": {"name": "skep-proxy", "version": env!("CARGO_PKG_VERSION")},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let message = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        let response = self.send(Method::POST, message).await?;
        if let Some(session) = response.headers().get(MCP_SESSION_ID).filter(|_| method == "initialize") {
            self.session = Some(session.clone());
        }
        let is_stream = is_stream(response.headers());
        let answer = match &mut self.stream {
            Some(stream) => stream.response(self.id).await?,
            None if is_stream => Events::new(response.into_body()).response(self.id).await?,
            None => whole(response.into_body()).await?,
        };
        check(method, &answer)?;
        Ok(answer)
    }

    fn is_modern(&self) -> bool {
        self.revision.as_deref() == Some(Revision::V2026_07_28.name())
    }

    /// Sends a request of HTTP, as one that has passed through the middlewares.
    async fn send(&mut self, method: Method, message: Value) -> Result<Response<Body>, InspectError> {
        let invalid = |_| InspectError::Invalid(format!("{:?} is no path", self.path));
        let (mut head, ()) =
            Request::builder().method(method).uri(&self.path).body(()).map_err(invalid)?.into_parts();
        head.headers = self.headers(&message);
        let response = self.upstream.send_own(head, self.caller, message).boxed();
        let response = response.await.map_err(|rejection| {
            debug!(?rejection, "the server cannot be inspected");
            InspectError::Unreachable("the server cannot be reached".into())
        })?;
        match response.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(InspectError::CredentialRequired(status.as_u16()))
            }
            status if status.is_server_error() => {
                Err(InspectError::Unreachable(format!("the server responds with {}", status.as_u16())))
            }
            // Since 2026-07-28, an error of JSON-RPC has a status, too.
            status if status.is_success() || is_json(response.headers()) => Ok(response),
            status => Err(InspectError::Invalid(format!("the server responds with {}", status.as_u16()))),
        }
    }

    fn headers(&self, message: &Value) -> HeaderMap {
        let mut headers = self.caller.map(Exchange::credentials).unwrap_or_default();
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accept);
        if !message.is_null() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        let revision = self.revision.as_deref().and_then(|revision| HeaderValue::from_str(revision).ok());
        if let Some(revision) = revision {
            headers.insert(MCP_PROTOCOL_VERSION, revision);
        }
        if let Some(method) = message["method"].as_str().filter(|_| self.is_modern()) {
            headers.extend(
                HeaderValue::from_str(method)
                    .ok()
                    .map(|method| (http::HeaderName::from_static(MCP_METHOD), method)),
            );
        }
        if let Some(session) = &self.session {
            headers.insert(MCP_SESSION_ID, session.clone());
        }
        headers
    }
}

/// Why a message is no result, if it is none.
fn check(method: &str, message: &[u8]) -> Result<(), InspectError> {
    let not_json = |_| InspectError::Invalid("a response is not JSON".into());
    let envelope = Envelope::parse(message).map_err(not_json)?;
    let reason = match envelope.message() {
        Message::Response { outcome: Outcome::Result(result), .. } if result.kind() == Kind::Object => {
            return Ok(());
        }
        Message::Response { outcome: Outcome::Error(error), .. } => {
            error.get("message").and_then(Raw::as_text)
        }
        _ => None,
    };
    let reason = reason.unwrap_or("the response has no result".into());
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(200).collect();
    Err(InspectError::Invalid(format!("{method}: {reason}")))
}

/// The path of an address, which may be relative.
fn path_of(address: &str) -> String {
    let path = address.split_once("://").and_then(|(_, rest)| rest.find('/').map(|start| &rest[start..]));
    path.unwrap_or(address).to_owned()
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.starts_with("application/json"))
}
