//! A server with everything that the official conformance suite of MCP requires, under the suite's names. It uses the Rust SDK
//! of MCP, so that the proxy is tested with a third-party implementation.

mod inputs;
mod prompts;
mod resources;
mod server;
mod tools;

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ServiceExt,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService, stdio,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

use crate::server::{Fixture, Shared};

#[tokio::main]
async fn main() -> Result<()> {
    let shared = Shared::new()?;
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => {
            Fixture::new(shared).serve(stdio()).await?.waiting().await?;
            Ok(())
        }
        Some("http") => http(shared).await,
        _ => bail!("the argument is stdio or http"),
    }
}

/// Serves streamable HTTP on a free port, and prints its URL.
async fn http(shared: Arc<Shared>) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no port is free")?;
    println!("http://{}/mcp", listener.local_addr()?);
    // As a server on loopback should: other hosts and origins are rejected.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]);
    let service: StreamableHttpService<Fixture, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(Fixture::new(shared.clone())), Arc::default(), config);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
