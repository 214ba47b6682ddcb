//! A client with the Rust SDK of MCP: `skep-fixture-client URL PLAN`. It executes the plan, and prints the results.

use std::{
    cmp::Ordering,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{CallToolRequestParams, ProgressNotificationParam, ProtocolVersion},
    service::NotificationContext,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Records the server's progress notifications.
#[derive(Clone, Default)]
struct Client(Arc<Mutex<Vec<[Option<f64>; 2]>>>);

impl Client {
    /// Sorted by progress: the SDK handles notifications concurrently.
    fn progress(&self) -> Vec<[Option<f64>; 2]> {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        progress.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        progress
    }
}

impl ClientHandler for Client {
    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push([Some(progress.progress), progress.total]);
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (url, plan) = (args.next().context("no URL")?, args.next().context("no plan")?);
    let plan: Value = serde_json::from_str(&plan)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let handler = Client::default();
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let client = handler
        .clone()
        .serve_with_lifecycle(StreamableHttpClientTransport::from_config(config), lifecycle)
        .await?;
    let mut tools: Vec<_> = client.list_all_tools().await?.into_iter().map(|tool| tool.name).collect();
    tools.sort();
    let echoed = client.call_tool(of::<CallToolRequestParams>(&plan["echo"])?).await?.content;
    let done = client.call_tool(of::<CallToolRequestParams>(&plan["slow"])?).await?.content;
    // The last one may arrive after the response.
    for _ in 0..500 {
        if handler.progress().len() as u64 >= plan["steps"].as_u64().unwrap_or_default() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let read = client.read_resource(of(&json!({"uri": plan["resource"]}))?).await?.contents;
    let messages = client.get_prompt(of(&plan["prompt"])?).await?.messages;
    let server = client.peer_info();
    println!(
        "{}",
        json!({
            "server": server.as_ref().and_then(|server| Some(server.server_info.as_ref()?.name.clone())),
            "protocol": server.as_ref().map(|server| server.protocol_version.clone()),
            "tools": tools, "echoed": echoed, "progress": handler.progress(), "done": done, "read": read,
            "messages": messages,
        })
    );
    client.cancel().await?;
    Ok(())
}

fn of<T: DeserializeOwned>(value: &Value) -> Result<T> {
    Ok(serde_json::from_value(value.clone())?)
}
