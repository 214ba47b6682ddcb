//! `kubectl skep tools`: the tools of a server, as its status reports them.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;

use super::{Cluster, title};
use crate::output::{print, table};

/// Show the tools of a server, as its proxy has seen them.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The name of the server.
    name: String,
}

const HEAD: [&str; 4] = ["NAME", "TITLE", "HINTS", "DIGEST"];

pub(super) async fn run(cluster: &Cluster, args: &Args) -> anyhow::Result<ExitCode> {
    let object = cluster.server(&args.name).await?;
    let report = &object.data["status"]["server"];
    let Some(tools) = report["tools"].as_array() else {
        let conditions = object.data["status"]["conditions"].as_array();
        let initialized = conditions.into_iter().flatten().find(|one| one["type"] == "MCPInitialized");
        let why = initialized.and_then(|condition| condition["message"].as_str());
        bail!(
            "the tools of {} are not known: {}",
            title(&object),
            why.unwrap_or("its status has no report of its proxy")
        );
    };
    print(&table(HEAD, &tools.iter().map(row).collect::<Vec<_>>()))?;
    let count = report["toolCount"].as_u64().unwrap_or_default();
    if count > tools.len() as u64 {
        eprintln!("{} of {count} tools", tools.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn row(tool: &Value) -> [String; 4] {
    let text = |field: &str| tool[field].as_str().unwrap_or_default().to_owned();
    let hints: Vec<&str> = tool["hints"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    [text("name"), text("title"), hints.join(","), text("digest").chars().take(12).collect()]
}
