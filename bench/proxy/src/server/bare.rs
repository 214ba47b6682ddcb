//! A server that only responds, as fast as possible: the worst case for a proxy.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const RESULT: &[u8] =
    br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"the answer to the question"}],"isError":false}}"#;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}}"#;

/// Serves until the process ends.
pub(super) async fn run(listener: TcpListener) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)));
    }
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let starts = body.windows(12).any(|window| window == br#""initialize""#);
    let mut response =
        Response::new(Full::new(Bytes::from_static(if starts { INITIALIZED } else { RESULT })));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if starts {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let id = format!("00000000-0000-4000-8000-{number:012x}");
        if let Ok(id) = id.parse() {
            response.headers_mut().insert("mcp-session-id", id);
        }
    }
    Ok(response)
}
