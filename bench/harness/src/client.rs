//! An MCP client with a session.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
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

    /// Sends a message, and reads the response.
    pub async fn send(&mut self, message: &Bytes) -> Result<Bytes> {
        let response = self.respond(message.clone()).await?;
        if !response.status().is_success() {
            bail!("a request failed with {}", response.status());
        }
        Ok(response.into_body().collect().await?.to_bytes())
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
