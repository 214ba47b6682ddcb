//! `kubectl skep tools`: the tools of a server, as its status reports them.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::Value;
use skep_console::tool_count;

use crate::{
    cluster::{Cluster, title},
    output::{print, table},
};

/// Show the tools of a server, as its proxy has seen them, or those of a virtual server with their backends.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The name of the server.
    name: String,
}

/// The columns for a virtual server.
const ROUTES: [&str; 3] = ["NAME", "BACKEND", "NAME THERE"];
const HEAD: [&str; 4] = ["NAME", "TITLE", "HINTS", "DIGEST"];

pub(super) async fn run(cluster: &Cluster, args: &Args) -> anyhow::Result<ExitCode> {
    let object = cluster.server(&args.name).await?;
    if let Some(backends) = object.data["status"]["discoveredBackends"].as_array() {
        let routes: Vec<[String; 3]> = backends.iter().flat_map(routes).collect();
        print(&table(ROUTES, &routes))?;
        let count = tool_count(&object.data["status"]).unwrap_or_default();
        if count > routes.len() as u64 {
            eprintln!("{} of {count} tools", routes.len());
        }
        return Ok(ExitCode::SUCCESS);
    }
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

/// The tools that a virtual server has from a backend.
fn routes(backend: &Value) -> impl Iterator<Item = [String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tools = backend["tools"].as_array().into_iter().flatten();
    tools.map(move |tool| {
        let name = text(&tool["name"]);
        let original = tool["originalName"].as_str().map_or_else(|| name.clone(), str::to_owned);
        [name, text(&backend["name"]), original]
    })
}

fn row(tool: &Value) -> [String; 4] {
    let text = |field: &str| tool[field].as_str().unwrap_or_default().to_owned();
    let hints: Vec<&str> = tool["hints"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    [text("name"), text("title"), hints.join(","), text("digest").chars().take(12).collect()]
}
