//! The backends: servers of the Rust SDK of MCP, with fifty tools each.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How many tools each backend has.
const TOOLS: usize = 50;
/// How long a slow one takes for each response.
const SLOW: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Backend;

impl ServerHandler for Backend {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Vec<Value> = (0..TOOLS).map(tool).collect();
        serde_json::from_value(json!({"tools": tools}))
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("the answer to the question")]).into())
    }
}

fn tool(number: usize) -> Value {
    json!({
        "name": format!("ask_{number}"),
        "description": "Answers a question about what is measured here, in as much depth as it is asked for",
        "inputSchema": {
            "type": "object",
            "properties": {"question": {"type": "string"}, "depth": {"type": "integer"}},
            "required": ["question"],
        },
    })
}

/// Serves until the process ends. Its output is a line with all addresses.
pub(crate) async fn serve(count: usize, has_slow: bool) -> Result<()> {
    let mut addresses = Vec::new();
    for number in 1..=count {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        addresses.push(listener.local_addr()?.to_string());
        let is_slow = has_slow && number == count;
        tokio::spawn(async move { listen(listener, is_slow).await });
    }
    println!("{}", addresses.join(" "));
    std::future::pending().await
}

async fn listen(listener: TcpListener, is_slow: bool) -> Result<()> {
    let config = StreamableHttpServerConfig::default();
    let service: StreamableHttpService<Backend, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Backend), Arc::default(), config);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        let delayed = service_fn(move |request| {
            let service = service.clone();
            async move {
                if is_slow {
                    tokio::time::sleep(SLOW).await;
                }
                hyper::service::Service::call(&service, request).await
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), delayed));
    }
}
