//! `kubectl skep call`: a tool of a server, called through its proxy.

use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Value, json};

use super::forward::forward;
use crate::{
    cluster::{Cluster, title},
    mcp_client::{ClientError, call_tool},
    output::print,
};

/// Call a tool of a server, through its proxy like any client.
///
/// Connections go through the API server, as those of kubectl port-forward. The exit code is 1 if the tool reports an error.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The name of the server.
    name: String,

    /// The name of the tool.
    tool: String,

    /// The arguments of the tool, as JSON.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    arguments: String,

    /// The access token for the server.
    #[arg(long, value_name = "TOKEN", env = "SKEP_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// Print the whole result, as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(cluster: &Cluster, args: &Args) -> anyhow::Result<ExitCode> {
    let arguments: Value = serde_json::from_str(&args.arguments).context("--arguments is no JSON")?;
    let server = cluster.server(&args.name).await?;
    let address = forward(cluster, &server).await?;
    let result = match call_tool(address, args.token.as_deref(), &args.tool, &arguments).await {
        Ok(result) => result,
        Err(ClientError::Unavailable(why) | ClientError::Rejected(why)) => {
            anyhow::bail!("{}: {why}", title(&server));
        }
    };
    print(&if args.json { format!("{result:#}\n") } else { text(&result) })?;
    Ok(ExitCode::from(u8::from(result["isError"] == true)))
}

/// The texts of a result, and what else it has by its type.
fn text(result: &Value) -> String {
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let part = |part: &Value| match part["text"].as_str() {
        Some(text) => format!("{text}\n"),
        None => format!("({})\n", part["type"].as_str().unwrap_or("?")),
    };
    let text: String = content.iter().map(part).collect();
    match (text.as_str(), result.get("structuredContent")) {
        ("", Some(structured)) => format!("{:#}\n", json!(structured)),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_printed_as_its_text_or_its_structure() {
        let result = json!({"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "..."}]});
        assert_eq!(text(&result), "a\n(image)\n");
        assert_eq!(text(&json!({"content": [], "structuredContent": {"a": 1}})), "{\n  \"a\": 1\n}\n");
        assert_eq!(text(&json!({})), "");
    }
}
