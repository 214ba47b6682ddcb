//! `skep explain --why-pods`: what changed that replaced the pods of a server, and why containers restarted.
//!
//! All of it is read from the cluster, which keeps the templates of the last revisions, who wrote which fields when, and events for
//! some time. What it no longer has is not known.

mod causes;
mod changes;
mod facts;
mod revisions;
mod text;

use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;
use skep_console::{Restart, restarts};

use super::Format;
use crate::{cluster::Cluster, output::print};
use facts::Facts;
use revisions::Revision;

/// Why the pods of a server are as they are.
#[derive(Debug, PartialEq, Serialize)]
struct Explained {
    server: String,
    workloads: Vec<Workload>,
    /// Containers that ended and were started again, in pods that stayed.
    restarts: Vec<Restart>,
    /// Warnings about the server and what belongs to it, newest first.
    warnings: Vec<Warning>,
}

/// A Deployment or StatefulSet.
#[derive(Debug, PartialEq, Serialize)]
struct Workload {
    kind: &'static str,
    name: String,
    /// What each revision changed, newest first.
    revisions: Vec<Revision>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Warning {
    time: String,
    object: String,
    reason: String,
    message: String,
}

/// Explains the pods of the server of this name.
pub(super) async fn run(cluster: &Cluster, name: &str, output: Format) -> anyhow::Result<ExitCode> {
    let facts = Facts::read(cluster, name).await?;
    let explained = explained(&facts);
    print(&match output {
        Format::Text => text::explanation(&explained),
        Format::Json => format!("{:#}\n", serde_json::to_value(&explained)?),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn explained(facts: &Facts) -> Explained {
    let workloads = facts.workloads.iter().map(|workload| Workload {
        kind: workload.kind,
        name: workload.name.clone(),
        revisions: revisions::revisions(workload, facts),
    });
    Explained {
        server: facts.title(),
        workloads: workloads.collect(),
        restarts: facts.pods.iter().flat_map(restarts).collect(),
        warnings: facts.events.iter().filter(|event| event["type"] == "Warning").map(warning).collect(),
    }
}

fn warning(event: &Value) -> Warning {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let about = &event["involvedObject"];
    Warning {
        time: text(facts::event_time(event)),
        object: format!("{} {}", text(&about["kind"]), text(&about["name"])),
        reason: text(&event["reason"]),
        message: text(&event["message"]),
    }
}
