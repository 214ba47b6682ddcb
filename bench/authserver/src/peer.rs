//! A connection from an address of its own.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpSocket;

/// The connection.
pub(crate) struct Peer {
    sender: SendRequest<Full<Bytes>>,
    pub(crate) server: SocketAddr,
}

impl Peer {
    /// Connects from the loopback address with this number.
    pub(crate) async fn connect(server: SocketAddr, number: usize) -> Result<Self> {
        let address =
            Ipv4Addr::from((u32::from(Ipv4Addr::LOCALHOST) & 0xff00_0000) + 2 + u32::try_from(number)?);
        let socket = TcpSocket::new_v4()?;
        socket
            .bind(SocketAddr::from((address, 0)))
            .with_context(|| format!("cannot connect from {address}"))?;
        let stream = socket.connect(server).await.context("it does not listen")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self { sender, server })
    }

    pub(crate) async fn get(&mut self, path: &str, cookies: &str) -> Result<Response<Bytes>> {
        self.send(Request::get(path).header(header::COOKIE, cookies), Bytes::new()).await
    }

    pub(crate) async fn post(
        &mut self,
        path: &str,
        cookies: &str,
        type_: &str,
        body: String,
    ) -> Result<Response<Bytes>> {
        let request = Request::post(path).header(header::COOKIE, cookies).header(header::CONTENT_TYPE, type_);
        self.send(request, body.into()).await
    }

    async fn send(&mut self, request: http::request::Builder, body: Bytes) -> Result<Response<Bytes>> {
        let request = request.header(header::HOST, self.server.to_string()).body(Full::new(body))?;
        self.sender.ready().await?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }
}

/// Fails unless a response has this status.
pub(crate) fn expect(response: &Response<Bytes>, status: StatusCode) -> Result<()> {
    if response.status() == status {
        return Ok(());
    }
    bail!("{}", described(response))
}

/// A response, for an error.
pub(crate) fn described(response: &Response<Bytes>) -> String {
    format!("{}: {}", response.status(), String::from_utf8_lossy(response.body()))
}
