//! A small MCP client for skep's own proxies.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use skep_mcp::{header::MCP_SESSION_ID, sse};
use tokio::net::TcpStream;

/// The maximum size of a response.
const LONGEST: usize = 8 << 20;
/// The maximum number of pages of a list.
const PAGES: usize = 50;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// The server is unavailable, which may be temporary.
    Unavailable(String),
    /// The server rejects the request.
    Rejected(String),
}

/// Whether the proxy at this address considers the server available; none if it does not check.
pub(crate) async fn health(proxy: SocketAddr) -> Option<Result<(), String>> {
    let (_, _, body) = send(proxy, Method::GET, "/health", &HeaderMap::new(), None).await.ok()?;
    let health: Value = serde_json::from_slice(&body).ok()?;
    let available = health["mcp"]["available"].as_bool()?;
    Some(if available { Ok(()) } else { Err(health["mcp"]["error"].as_str().unwrap_or_default().into()) })
}

/// The names of the tools at this address.
pub(crate) async fn tools(proxy: SocketAddr) -> Result<Vec<String>, ClientError> {
    let session = Session::open(proxy, None).await?;
    let mut names = Vec::new();
    let mut params = json!({});
    for _ in 0..PAGES {
        let page = session.call("tools/list", params).await?;
        let tools = page["tools"].as_array().into_iter().flatten();
        names.extend(tools.filter_map(|tool| tool["name"].as_str()).map(ToOwned::to_owned));
        match page["nextCursor"].as_str() {
            Some(next) => params = json!({"cursor": next}),
            None => break,
        }
    }
    session.end().await;
    Ok(names)
}

/// The result of a tool at this address.
pub(crate) async fn call_tool(
    proxy: SocketAddr,
    token: Option<&str>,
    tool: &str,
    arguments: &Value,
) -> Result<Value, ClientError> {
    let session = Session::open(proxy, token).await?;
    let result = session.call("tools/call", json!({"name": tool, "arguments": arguments})).await;
    session.end().await;
    result
}

/// A session of streamable HTTP.
struct Session {
    proxy: SocketAddr,
    headers: HeaderMap,
}

impl Session {
    async fn open(proxy: SocketAddr, token: Option<&str>) -> Result<Self, ClientError> {
        let mut session = Self { proxy, headers: HeaderMap::new() };
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse();
            let value = value.map_err(|_| ClientError::Rejected("the token is no header".into()))?;
            session.headers.insert(header::AUTHORIZATION, value);
        }
        let client = json!({"name": "skep", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let (headers, initialized) = session.request("initialize", params).await?;
        if let Some(id) = headers.get(MCP_SESSION_ID) {
            session.headers.insert(MCP_SESSION_ID, id.clone());
        }
        let version = initialized["protocolVersion"].as_str().and_then(|version| version.parse().ok());
        let version = version.map(|version| (http::HeaderName::from_static("mcp-protocol-version"), version));
        session.headers.extend(version);
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        send(proxy, Method::POST, "/mcp", &session.headers, Some(&ready)).await?;
        Ok(session)
    }

    /// Calls a method, and returns the result.
    async fn call(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        Ok(self.request(method, params).await?.1)
    }

    async fn request(&self, method: &str, params: Value) -> Result<(HeaderMap, Value), ClientError> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let sent = send(self.proxy, Method::POST, "/mcp", &self.headers, Some(&request)).await;
        let (status, headers, body) = sent?;
        let response: Value = serde_json::from_slice(&body).unwrap_or_default();
        if response["result"].is_object() {
            return Ok((headers, response["result"].clone()));
        }
        let why = response["error"]["message"].as_str().unwrap_or("it does not speak MCP");
        let why = format!("{method} fails with {status}: {why}");
        let unavailable = matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE);
        Err(if unavailable { ClientError::Unavailable(why) } else { ClientError::Rejected(why) })
    }

    async fn end(&self) {
        if self.headers.contains_key(MCP_SESSION_ID) {
            // A server may not support this.
            send(self.proxy, Method::DELETE, "/mcp", &self.headers, None).await.ok();
        }
    }
}

/// Sends one request over a new connection.
pub(crate) async fn send(
    proxy: SocketAddr,
    method: Method,
    path: &str,
    headers: &HeaderMap,
    body: Option<&Value>,
) -> Result<(StatusCode, HeaderMap, Bytes), ClientError> {
    let unavailable = |error: &dyn std::fmt::Display| ClientError::Unavailable(error.to_string());
    let stream = TcpStream::connect(proxy).await.map_err(|error| unavailable(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| unavailable(&error))?;
    let connection = tokio::spawn(connection);
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().map_err(|error| unavailable(&error))?;
    let own = [
        (header::HOST, proxy.to_string()),
        (header::ACCEPT, "application/json, text/event-stream".into()),
        (header::CONTENT_TYPE, "application/json".into()),
    ];
    *request.headers_mut() = headers.clone();
    for (name, value) in own {
        request.headers_mut().insert(name, value.parse().map_err(|error| unavailable(&error))?);
    }
    let response = sender.send_request(request).await.map_err(|error| unavailable(&error))?;
    let (parts, body) = response.into_parts();
    let streams = parts
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|type_| type_.as_bytes().starts_with(b"text/event-stream"));
    let body = if streams { event(body).await } else { whole(body).await };
    connection.abort();
    Ok((parts.status, parts.headers, body?))
}

async fn whole(body: Incoming) -> Result<Bytes, ClientError> {
    let limited = http_body_util::Limited::new(body, LONGEST);
    let whole = limited.collect().await.map_err(|error| ClientError::Unavailable(error.to_string()))?;
    Ok(whole.to_bytes())
}

/// The response in a stream. Other messages before it are skipped.
async fn event(mut body: Incoming) -> Result<Bytes, ClientError> {
    let mut decoder = sse::Decoder::new(LONGEST);
    let broken = || ClientError::Unavailable("the stream ends without a response".into());
    loop {
        while let Some(frame) = decoder.frame().map_err(|_| broken())? {
            let sse::Frame::Event(event) = frame else { continue };
            let Some(data) = event.data() else { continue };
            let message: Value = serde_json::from_slice(data).unwrap_or_default();
            if message["id"] == 1 && message["method"].is_null() {
                return Ok(Bytes::copy_from_slice(data));
            }
        }
        let frame = body.frame().await.ok_or_else(broken)?.map_err(|_| broken())?;
        if let Ok(data) = frame.into_data() {
            decoder.feed(&data);
        }
    }
}
