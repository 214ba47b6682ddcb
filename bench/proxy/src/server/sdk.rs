//! A typical server with the Rust SDK of MCP: one tool, sessions, responses as events.

use std::sync::Arc;

use anyhow::Result;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

#[derive(Clone)]
struct Answerer;

impl ServerHandler for Answerer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("the answer to the question")]).into())
    }
}

/// Serves until the process ends.
pub(super) async fn run(listener: TcpListener) -> Result<()> {
    let config = StreamableHttpServerConfig::default();
    let service: StreamableHttpService<Answerer, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Answerer), Arc::default(), config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
