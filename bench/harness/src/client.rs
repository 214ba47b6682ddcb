//! An MCP client with a session.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// How a server is called.
#[derive(Clone, Debug)]
pub struct Client {
    address: SocketAddr,
    authorization: Option<Arc<str>>,
}

/// A connection, with a session once it is started.
pub struct Connection {
    client: Client,
    sender: SendRequest<Full<Bytes>>,
    session: Option<String>,
}

impl Client {
    /// A client of the server at this address, with these credentials.
    pub fn new(address: SocketAddr, authorization: Option<Arc<str>>) -> Self {
        Self { address, authorization }
    }

    /// A connection without a session.
    pub async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await.context("it does not listen")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Connection { client: self.clone(), sender, session: None })
    }
}

impl Connection {
    /// Starts a session, and uses it from here on.
    pub async fn start_session(&mut self) -> Result<()> {
        self.session = None;
        let response = self.respond(INITIALIZE.into()).await?;
        if !response.status().is_success() {
            bail!("cannot start a session: {}", response.status());
        }
        self.session =
            response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(Into::into);
        response.into_body().collect().await?;
        Ok(())
    }

    /// Completes the handshake.
    pub async fn initialized(&mut self) -> Result<()> {
        self.respond(INITIALIZED.into()).await?.into_body().collect().await?;
        Ok(())
    }

    /// Sends a request, and reads its result. An error that a server sends with the status 200 is an error here: it must not
    /// count as a call.
    pub async fn send(&mut self, message: &Bytes) -> Result<Bytes> {
        let response = self.respond(message.clone()).await?;
        if !response.status().is_success() {
            bail!("a request failed with {}", response.status());
        }
        let body = response.into_body().collect().await?.to_bytes();
        ensure_result(&body)?;
        Ok(body)
    }

    /// Opens the stream of the session, which the server sends messages on. It is closed with the connection.
    pub async fn listen(&mut self) -> Result<StatusCode> {
        let mut request = self.request(Bytes::new())?;
        *request.method_mut() = Method::GET;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?.status())
    }

    async fn respond(&mut self, message: Bytes) -> Result<Response<Incoming>> {
        let request = self.request(message)?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::post("/mcp")
            .header("host", self.client.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(authorization) = &self.client.authorization {
            request = request.header("authorization", &**authorization);
        }
        Ok(request.body(Full::new(body))?)
    }
}

/// The parts of a response that tell whether a call succeeded.
#[derive(Deserialize)]
struct Reply {
    result: Option<Outcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    #[serde(default)]
    is_error: bool,
}

/// The response is the whole body, or the last event of a stream.
fn ensure_result(body: &[u8]) -> Result<()> {
    let message = if body.starts_with(b"{") {
        body
    } else {
        let lines = body.split(|byte| *byte == b'\n').rev();
        lines.filter_map(|line| line.strip_prefix(b"data:")).find(|data| data.len() > 1).unwrap_or_default()
    };
    let reply = serde_json::from_slice(message);
    let succeeded = matches!(&reply, Ok(Reply { result: Some(outcome) }) if !outcome.is_error);
    ensure!(succeeded, "a request failed: {}", String::from_utf8_lossy(body).trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ensure_result;

    #[test]
    fn only_a_result_counts_as_a_call() {
        for result in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":false}}\r\n\r\n",
            "id: 0\ndata:\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
        ] {
            ensure_result(result.as_bytes()).unwrap();
        }
        for error in [
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}"#,
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true}}\n\n",
            r#"{"jsonrpc":"2.0","id":1}"#,
            "<html>",
            "",
        ] {
            ensure_result(error.as_bytes()).unwrap_err();
        }
    }
}
