//! Clients, each with its own connection, one request after another.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"question":"what is measured here?","depth":3},"_meta":{"progressToken":1}}}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const INITIALIZE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

/// How it is called.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) time: Duration,
    pub(crate) authorization: Option<Arc<str>>,
}

/// The results.
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    /// How long each request took, sorted.
    pub(crate) times: Vec<Duration>,
}

impl Measured {
    pub(crate) fn rate(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The time that this share of the requests did not exceed.
    pub(crate) fn at(&self, share: f64) -> Duration {
        let index = (self.times.len() as f64 * share) as usize;
        self.times.get(index.min(self.times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

impl Load {
    /// The same for a moment, before it is measured.
    pub(crate) fn warm_up(&self) -> Self {
        Self { time: Duration::from_secs(1), ..self.clone() }
    }

    /// Ten times as many connections.
    pub(crate) fn overload(&self) -> Self {
        Self { connections: self.connections * 10, ..self.clone() }
    }

    /// Calls a tool for a given time, in one session per connection.
    pub(crate) async fn run(&self, address: SocketAddr) -> Result<Measured> {
        let (start, time) = (Instant::now(), self.time);
        let mut callers = JoinSet::new();
        for _ in 0..self.connections {
            let authorization = self.authorization.clone();
            callers.spawn(async move {
                let caller = Caller { address, authorization };
                let mut connection = connect(address).await?;
                let session = caller.start_session(&mut connection).await?;
                let initialized = caller.request(INITIALIZED, session.as_deref())?;
                connection.send_request(initialized).await?.into_body().collect().await?;
                let mut times = Vec::new();
                while start.elapsed() < time {
                    let before = Instant::now();
                    let request = caller.request(CALL, session.as_deref())?;
                    let response = connection.send_request(request).await?;
                    if !response.status().is_success() {
                        bail!("a call failed with {}", response.status());
                    }
                    response.into_body().collect().await?;
                    times.push(before.elapsed());
                }
                Ok(times)
            });
        }
        let mut times = Vec::new();
        while let Some(caller) = callers.join_next().await {
            times.extend(caller??);
        }
        let elapsed = start.elapsed();
        times.sort_unstable();
        Ok(Measured { elapsed, times })
    }
}

/// Starts this many sessions, and leaves them open.
pub(crate) async fn sessions(address: SocketAddr, count: usize, load: &Load) -> Result<()> {
    let mut callers = JoinSet::new();
    let connections = load.connections;
    for _ in 0..connections {
        let caller = Caller { address, authorization: load.authorization.clone() };
        callers.spawn(async move {
            let mut connection = connect(address).await?;
            for _ in 0..count / connections {
                caller.start_session(&mut connection).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(())
}

async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.context("the proxy does not listen")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// One of the callers.
struct Caller {
    address: SocketAddr,
    authorization: Option<Arc<str>>,
}

impl Caller {
    async fn start_session(&self, connection: &mut SendRequest<Full<Bytes>>) -> Result<Option<String>> {
        let response = connection.send_request(self.request(INITIALIZE, None)?).await?;
        if !response.status().is_success() {
            bail!("cannot start a session: {}", response.status());
        }
        let id = response.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).map(Into::into);
        response.into_body().collect().await?;
        Ok(id)
    }

    fn request(&self, body: &'static [u8], session: Option<&str>) -> Result<Request<Full<Bytes>>> {
        let mut request = Request::post("/mcp")
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", &**authorization);
        }
        Ok(request.body(Full::new(Bytes::from_static(body)))?)
    }
}
