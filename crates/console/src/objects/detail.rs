//! What the page of an object shows.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use skep_gateway::{
    Connections,
    middleware::{Call, Traffic},
};

use super::{
    Child, Event, Object, Summary,
    configuration::{Setting, configuration},
};
use crate::{Restart, links::Link};

/// An object with all that is known of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Detail<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    pub(crate) traffic: Option<Traffic>,
    conditions: &'a [Value],
    manifest: Value,
    configuration: Vec<Setting>,
    /// Whether the viewer may see events of the cluster.
    pub(crate) sees_events: bool,
    /// Changes of the object itself and, for those who may see them, events of the cluster.
    pub(crate) events: Vec<&'a Event>,
    pub(crate) restarts: Vec<RestartInWords>,
    backends: Vec<Backend>,
    reported: Option<Vec<ReportedTool>>,
    /// Whether the viewer may see its calls.
    pub(crate) sees_calls: bool,
    pub(crate) calls: Vec<Arc<Call>>,
    /// The connections of its users, if it has an authorization server and the viewer may see its calls.
    pub(crate) connections: Option<Connections>,
    pub(crate) links: Vec<Link>,
    pub(crate) objects: Vec<Child>,
}

/// Why a container was restarted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RestartInWords {
    sentence: String,
    last_line: String,
}

impl From<Restart> for RestartInWords {
    fn from(restart: Restart) -> Self {
        Self { sentence: restart.sentence(), last_line: restart.last_line().to_owned() }
    }
}

/// A member of a group, or a backend of a virtual server.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Backend {
    name: String,
    phase: String,
    message: String,
    url: String,
    tools: Option<u64>,
    /// Which tools clients of the virtual server have from it, if that is reported.
    offers: Option<Vec<Offered>>,
    /// Its tools that they do not have, because another has the name.
    hidden: Vec<String>,
}

/// A tool of a backend, by the name that clients use and the one at the backend.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Offered {
    name: String,
    original_name: String,
}

/// A tool, as the status reports it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportedTool {
    name: Value,
    title: Value,
    read_only: Option<bool>,
    destructive: Option<bool>,
    digest: Value,
}

impl<'a> Detail<'a> {
    /// `visible` are the objects that the viewer may see.
    pub(crate) fn new(object: &'a Object, visible: &[Arc<Object>]) -> Self {
        let status = &object.manifest["status"];
        let mut manifest = object.manifest.clone();
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        Self {
            summary: &object.summary,
            traffic: None,
            conditions: status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default(),
            manifest,
            configuration: configuration(&object.key, &object.manifest, visible),
            sees_events: false,
            events: object.events.iter().filter(|event| !event.is_of_cluster).collect(),
            restarts: Vec::new(),
            backends: backends(object, visible),
            reported: reported(status),
            sees_calls: false,
            calls: Vec::new(),
            connections: None,
            links: Vec::new(),
            objects: Vec::new(),
        }
    }
}

/// The members of a group, and the backends of a virtual server as its pods have seen them.
fn backends(object: &Object, visible: &[Arc<Object>]) -> Vec<Backend> {
    let group = match object.key.kind.as_str() {
        "MCPGroup" => &object.key.name,
        "VirtualMCPServer" => &object.summary.group,
        _ => return Vec::new(),
    };
    let seen =
        object.manifest["status"]["discoveredBackends"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut backends: Vec<Backend> = seen
        .iter()
        .map(|backend| Backend {
            name: text(&backend["name"]),
            phase: text(&backend["status"]),
            message: text(&backend["message"]),
            url: text(&backend["url"]),
            tools: backend["toolCount"].as_u64(),
            offers: backend["toolCount"].is_u64().then(|| offered(backend)),
            hidden: backend["hiddenTools"].as_array().into_iter().flatten().map(text).collect(),
        })
        .collect();
    let is_member = |member: &&Arc<Object>| {
        member.key.namespace == object.key.namespace
            && member.summary.group == *group
            && member.key.kind != "VirtualMCPServer"
    };
    for member in visible.iter().filter(is_member) {
        let (name, summary) = (&member.key.name, &member.summary);
        match backends.iter_mut().find(|backend| backend.name == *name) {
            Some(backend) => backend.tools = backend.tools.or(summary.tools),
            None => backends.push(Backend {
                name: name.clone(),
                phase: summary.phase.clone(),
                message: summary.message.clone(),
                url: summary.url.clone(),
                tools: summary.tools,
                offers: None,
                hidden: Vec::new(),
            }),
        }
    }
    backends
}

fn offered(backend: &Value) -> Vec<Offered> {
    let tools = backend["tools"].as_array().into_iter().flatten();
    let tool = |tool: &Value| {
        let name = tool["name"].as_str()?.to_owned();
        let original_name = tool["originalName"].as_str().unwrap_or(&name).to_owned();
        Some(Offered { name, original_name })
    };
    tools.filter_map(tool).collect()
}

fn reported(status: &Value) -> Option<Vec<ReportedTool>> {
    let tools = status["server"]["tools"].as_array()?;
    let of_tool = |tool: &Value| {
        let has =
            |hint: &str| tool["hints"].as_array().is_some_and(|hints| hints.iter().any(|one| one == hint));
        ReportedTool {
            name: tool["name"].clone(),
            title: tool["title"].clone(),
            read_only: has("readOnly").then_some(true),
            destructive: has("destructive").then_some(true),
            digest: tool["digest"].clone(),
        }
    };
    Some(tools.iter().map(of_tool).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::{Key, Objects};

    #[test]
    fn the_members_of_a_group_are_shown_with_what_the_virtual_server_has_seen() {
        let objects = Objects::default();
        let server = |name: &str, namespace: &str, group: &str| {
            json!({
                "kind": "MCPServer", "metadata": {"name": name, "namespace": namespace},
                "spec": {"groupRef": {"name": group}}, "status": {"phase": "Ready", "server": {"toolCount": 2}},
            })
        };
        for manifest in
            [server("a", "n", "g"), server("b", "n", "g"), server("c", "n", "other"), server("d", "m", "g")]
        {
            objects.apply(manifest);
        }
        objects.apply(json!({
            "kind": "VirtualMCPServer", "metadata": {"name": "v", "namespace": "n"},
            "spec": {"config": {"groupRef": "g"}},
            "status": {"discoveredBackends": [
                {"name": "a", "status": "unavailable", "message": "refused", "url": "u"},
                {"name": "e", "status": "ready", "toolCount": 2, "hiddenTools": ["z"],
                 "tools": [{"name": "e_x", "originalName": "x"}, {"name": "y"}]},
            ]},
        }));
        let object = objects.find(&Key::new("VirtualMCPServer", "n", "v")).unwrap();
        let rows = |detail: &Detail<'_>| {
            let row = |one: &Backend| format!("{} {} {:?}", one.name, one.phase, one.tools);
            detail.backends.iter().map(row).collect::<Vec<_>>()
        };
        let mut visible = objects.all();
        let detail = Detail::new(&object, &visible);
        assert_eq!(rows(&detail), ["a unavailable Some(2)", "e ready Some(2)", "b Ready Some(2)"]);
        let known = serde_json::to_value(&detail.backends[1]).unwrap();
        assert_eq!(
            (&known["offers"], &known["hidden"]),
            (
                &json!([{"name": "e_x", "originalName": "x"}, {"name": "y", "originalName": "y"}]),
                &json!(["z"])
            )
        );
        assert_eq!(detail.backends[0].offers, None, "what is not reported is not guessed");
        visible.retain(|member| member.key.name != "b");
        assert_eq!(rows(&Detail::new(&object, &visible)), ["a unavailable Some(2)", "e ready Some(2)"]);
    }

    #[test]
    fn managed_fields_are_not_part_of_the_manifest() {
        let objects = Objects::default();
        objects.apply(json!({"kind": "MCPServer", "metadata": {"name": "a", "managedFields": []}}));
        let object = objects.find(&Key::new("MCPServer", "", "a")).unwrap();
        let detail = Detail::new(&object, &[]);
        assert_eq!(detail.manifest, json!({"kind": "MCPServer", "metadata": {"name": "a"}}));
    }
}
