//! A small MCP client.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// A client with a session.
pub(crate) struct Client {
    address: SocketAddr,
    pub(crate) session: String,
}

impl Client {
    pub(crate) async fn start(address: SocketAddr, capabilities: Value) -> Self {
        let mut client = Self { address, session: String::new() };
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
        Self { address, session: String::new() }
    }

    /// The same client at another replica.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self { address, session: self.session.clone() }
    }

    pub(crate) async fn send(&self, method: Method, body: Option<&Value>) -> Response<Incoming> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let accept =
            if method == Method::GET { "text/event-stream" } else { "application/json, text/event-stream" };
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("accept", accept)
            .header("content-type", "application/json");
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        let response =
            sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
        // The connection ends with the sender, and the body may still arrive.
        tokio::spawn(async move {
            sender.ready().await.ok();
        });
        response
    }

    /// The response to a request, whatever comes before it.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let response = self.send(Method::POST, Some(&body)).await;
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

/// The text of a result, and whether it is an error.
pub(crate) fn text(response: &Value) -> (&str, bool) {
    let result = &response["result"];
    (result["content"][0]["text"].as_str().unwrap_or_default(), result["isError"] == true)
}
