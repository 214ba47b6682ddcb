//! A small MCP client.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

/// The connection ended before the response was complete.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;

/// A client.
pub(crate) struct Client {
    address: SocketAddr,
    pub(crate) session: String,
    /// The capabilities of one of 2026-07-28, which has no session.
    modern: Option<Value>,
    /// The address that it has.
    from: [u8; 4],
    /// The last event of a stream that it opens again.
    last_event: Option<String>,
    /// A header of all its requests.
    header: Option<(&'static str, String)>,
}

const LOCALHOST: [u8; 4] = [127, 0, 0, 1];

impl Client {
    pub(crate) async fn start(address: SocketAddr, capabilities: Value) -> Self {
        Self::without_session(address).started(capabilities).await
    }

    /// The same client with a session.
    pub(crate) async fn started(self, capabilities: Value) -> Self {
        let mut client = self;
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = client.send(Method::POST, Some(&body)).await;
        assert_eq!(response.status(), StatusCode::OK);
        client.session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        client
    }

    /// A client that has no session.
    pub(crate) fn without_session(address: SocketAddr) -> Self {
        Self {
            address,
            session: String::new(),
            modern: None,
            from: LOCALHOST,
            last_event: None,
            header: None,
        }
    }

    /// A client of 2026-07-28 with these capabilities.
    pub(crate) fn modern(address: SocketAddr, capabilities: Value) -> Self {
        Self { modern: Some(capabilities), ..Self::without_session(address) }
    }

    /// The same client with another address of this machine.
    pub(crate) fn from(self, address: [u8; 4]) -> Self {
        Self { from: address, ..self }
    }

    /// The same client at another replica.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            address,
            session: self.session.clone(),
            modern: self.modern.clone(),
            from: self.from,
            last_event: None,
            header: self.header.clone(),
        }
    }

    /// The same client with a header in all its requests.
    pub(crate) fn with_header(self, name: &'static str, value: &str) -> Self {
        Self { header: Some((name, value.to_owned())), ..self }
    }

    /// A page of the server.
    pub(crate) async fn page(&self, path: &str) -> String {
        let response = self.send_to(path, Method::GET, None).await;
        String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
    }

    pub(crate) async fn send(&self, method: Method, body: Option<&Value>) -> Response<Incoming> {
        self.send_to("/mcp", method, body).await
    }

    async fn send_to(&self, path: &str, method: Method, body: Option<&Value>) -> Response<Incoming> {
        self.try_send_to(path, method, body).await.unwrap()
    }

    async fn try_send_to(
        &self,
        path: &str,
        method: Method,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, Broken> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.from, 0).into())?;
        let stream = socket.connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let accept =
            if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("accept", accept)
            .header("content-type", "application/json");
        if let Some((name, value)) = &self.header {
            request = request.header(*name, value);
        }
        if let Some(id) = &self.last_event {
            request = request.header("last-event-id", id);
        }
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        if let (Some(_), Some(body)) = (&self.modern, body) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            request = request
                .header("mcp-protocol-version", "2026-07-28")
                .header("mcp-method", text(&body["method"]));
            let name = body["params"].get("name").or_else(|| body["params"].get("uri"));
            if let Some(name) = name {
                request = request.header("mcp-name", text(name));
            }
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        let response = sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await?;
        // The connection ends with the sender, and the body may still arrive.
        tokio::spawn(async move {
            sender.ready().await.ok();
        });
        Ok(response)
    }

    /// The status of the response to a call, and the response; an error if the server ends before that is complete.
    pub(crate) async fn try_call(&self, tool: &str) -> Result<(StatusCode, Value), Broken> {
        let params = json!({"name": tool, "arguments": {"n": 1}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let response = self.try_send_to("/mcp", Method::POST, Some(&body)).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, serde_json::from_slice(&body)?))
    }

    async fn post(&self, method: &str, mut params: Value) -> Response<Incoming> {
        if let Some(capabilities) = &self.modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send(Method::POST, Some(&body)).await
    }

    /// The messages of the response to a request.
    pub(crate) async fn open(&self, method: &str, params: Value) -> Events {
        Events::new(self.post(method, params).await)
    }

    /// The messages that belong to no request.
    pub(crate) async fn listen(&self) -> Events {
        Events::new(self.send(Method::GET, None).await)
    }

    /// The rest of a stream whose last event was this.
    pub(crate) async fn listen_after(&self, event: &str) -> Events {
        Events::new(self.send_after(event).await)
    }

    pub(crate) async fn send_after(&self, event: &str) -> Response<Incoming> {
        let client = Self { last_event: Some(event.to_owned()), ..self.at(self.address) };
        client.send(Method::GET, None).await
    }

    /// The response to a request, whatever comes before it.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        let response = self.post(method, params).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        serde_json::from_str(last.unwrap_or(&text)).unwrap_or_else(|_| panic!("{text}"))
    }

    pub(crate) async fn call(&self, tool: &str) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": {"n": 1}})).await
    }

    /// The names of all tools.
    pub(crate) async fn tools(&self) -> Vec<String> {
        let list = self.request("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) async fn end(&self) {
        assert_eq!(self.send(Method::DELETE, None).await.status(), StatusCode::OK);
    }
}

/// A stream of events.
pub(crate) struct Events {
    body: Incoming,
    text: String,
    /// The id of the last event that had one.
    pub(crate) last_id: Option<String>,
}

impl Events {
    fn new(response: Response<Incoming>) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new(), last_id: None }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data: Option<Value> = event
                    .lines()
                    .find_map(|line| line.strip_prefix("data: "))
                    .map(|data| serde_json::from_str(data).unwrap());
                let id = event.lines().find_map(|line| line.strip_prefix("id: ")).map(str::to_owned);
                self.last_id = id.or(self.last_id.take());
                self.text = rest.to_owned();
                match data {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let frame = self.body.frame().await?.ok()?;
            self.text += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
    }
}

/// The text of a result, and whether it is an error.
pub(crate) fn text(response: &Value) -> (&str, bool) {
    let result = &response["result"];
    (result["content"][0]["text"].as_str().unwrap_or_default(), result["isError"] == true)
}
