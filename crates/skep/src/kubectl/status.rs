//! `kubectl skep status`: all servers in a table.

use std::process::ExitCode;

use jiff::{SignedDuration, Timestamp};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams},
};
use skep_console::tool_count;

use crate::{
    cluster::{Cluster, servers},
    output::{print, table},
};

/// Show all servers with their phase, their tools, and what is wrong with them.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The servers of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

const HEAD: [&str; 7] = ["NAMESPACE", "KIND", "NAME", "PHASE", "TOOLS", "AGE", "MESSAGE"];
/// How much of a message is shown.
const MESSAGE: usize = 80;

pub(super) async fn run(cluster: &Cluster, args: &Args) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    for resource in servers() {
        let api: Api<DynamicObject> = match args.all_namespaces {
            true => Api::all_with(cluster.client.clone(), &resource),
            false => Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource),
        };
        let list = api.list(&ListParams::default()).await?;
        rows.extend(list.items.iter().map(|object| row(&resource.kind, object, Timestamp::now())));
    }
    if rows.is_empty() {
        let place = if args.all_namespaces {
            "the cluster".into()
        } else {
            format!("namespace {}", cluster.namespace)
        };
        eprintln!("No MCP servers found in {place}.");
    } else {
        print(&table(HEAD, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(kind: &str, object: &DynamicObject, now: Timestamp) -> [String; 7] {
    let status = &object.data["status"];
    let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let age = object.metadata.creation_timestamp.as_ref().map(|created| age(now.duration_since(created.0)));
    let tools = tool_count(status).map(|count| count.to_string());
    let message = text("message");
    let message = match message.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}...", &message[..end]),
        None => message,
    };
    [
        object.namespace().unwrap_or_default(),
        kind.to_owned(),
        object.name_any(),
        text("phase"),
        tools.unwrap_or_else(|| "-".into()),
        age.unwrap_or_default(),
        // A ready server has a message, too.
        if status["phase"] == "Ready" { String::new() } else { message },
    ]
}

/// As kubectl writes it, in its largest unit.
fn age(duration: SignedDuration) -> String {
    match duration.as_secs() {
        seconds @ ..120 => format!("{}s", seconds.max(0)),
        seconds @ ..7_200 => format!("{}m", seconds / 60),
        seconds @ ..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_has_what_is_wrong_and_no_control_characters() {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"phase": "Failed", "message": "no\u{1b}", "server": {"toolCount": 3}},
        }))
        .unwrap();
        let now = "2026-01-03T01:00:00Z".parse().unwrap();
        let text = table(HEAD, &[row("MCPServer", &object, now)]);
        let expected = "\
NAMESPACE  KIND       NAME  PHASE   TOOLS  AGE  MESSAGE
n          MCPServer  a     Failed  3      2d   no\u{fffd}
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_virtual_server_has_the_tools_of_all_its_backends() {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "all"},
            "status": {"discoveredBackends": [{"name": "a", "toolCount": 2}, {"name": "b"}, {"name": "c", "toolCount": 3}]},
        }))
        .unwrap();
        assert_eq!(row("VirtualMCPServer", &object, Timestamp::now())[4], "5");
    }

    #[test]
    fn ages_are_those_of_kubectl() {
        let ages = [0, 119, 120, 7_199, 7_200, 172_799, 172_800]
            .map(|seconds| age(SignedDuration::from_secs(seconds)));
        assert_eq!(ages, ["0s", "119s", "2m", "119m", "2h", "47h", "2d"]);
    }
}
