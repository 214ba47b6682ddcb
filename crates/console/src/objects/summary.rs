//! What the overview shows of an object.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::Key;

/// An object in a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    #[serde(flatten)]
    key: Key,
    /// The phase, or what its conditions amount to if it has none.
    pub(crate) phase: String,
    /// The reason of a problem.
    pub(crate) message: String,
    /// Since when it has that phase.
    pub(crate) since: Option<Timestamp>,
    /// The address for clients.
    pub(crate) url: String,
    transport: String,
    /// How many tools it has, if that is known.
    pub(crate) tools: Option<u64>,
    /// Its MCPGroup.
    pub(crate) group: String,
}

impl Summary {
    pub(super) fn new(key: &Key, manifest: &Value) -> Self {
        let (spec, status) = (&manifest["spec"], &manifest["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let decisive = decisive(status);
        let phase = match (status["phase"].as_str(), decisive) {
            (Some(phase), _) => phase.to_owned(),
            (None, Some(condition)) if condition["status"] == "True" => text(&condition["type"]),
            (None, Some(condition)) => text(&condition["reason"]),
            (None, None) => String::new(),
        };
        let message = match (status["message"].as_str(), decisive) {
            (Some(message), _) => message.to_owned(),
            (None, Some(condition)) if condition["status"] != "True" => text(&condition["message"]),
            (None, _) => String::new(),
        };
        let group = [&spec["groupRef"]["name"], &spec["config"]["groupRef"], &spec["groupRef"]];
        Self {
            key: key.clone(),
            phase,
            message,
            since: decisive.and_then(|condition| condition["lastTransitionTime"].as_str()?.parse().ok()),
            url: text(&status["url"]),
            transport: text(&spec["transport"]),
            tools: tool_count(status),
            group: group.into_iter().find_map(Value::as_str).unwrap_or_default().to_owned(),
        }
    }
}

/// How many tools clients see, by the status of an object: those that a proxy has reported, or those of all backends of a
/// virtual server.
pub fn tool_count(status: &Value) -> Option<u64> {
    let of_backends = || {
        let backends = status["discoveredBackends"].as_array()?;
        let counts: Vec<u64> = backends.iter().filter_map(|backend| backend["toolCount"].as_u64()).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    };
    status["server"]["toolCount"].as_u64().or_else(of_backends)
}

/// The condition that says whether the object is as wished.
fn decisive(status: &Value) -> Option<&Value> {
    let conditions = status["conditions"].as_array()?;
    ["Ready", "Valid"]
        .into_iter()
        .find_map(|type_| conditions.iter().find(|condition| condition["type"] == type_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn summary(manifest: Value) -> Summary {
        Summary::new(&Key::of(&manifest).unwrap(), &manifest)
    }

    #[test]
    fn a_server_is_summarised_by_its_status() {
        let summary = summary(json!({
            "kind": "MCPServer", "metadata": {"name": "a", "namespace": "n"},
            "spec": {"transport": "stdio", "groupRef": {"name": "g"}},
            "status": {
                "phase": "Ready", "url": "http://a", "server": {"toolCount": 3},
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}],
            },
        }));
        assert_eq!(
            serde_json::to_value(&summary).unwrap(),
            json!({
                "kind": "MCPServer", "namespace": "n", "name": "a", "phase": "Ready", "message": "",
                "since": "2026-01-02T03:04:05Z", "url": "http://a", "transport": "stdio", "tools": 3, "group": "g",
            })
        );
    }

    #[test]
    fn a_virtual_server_has_the_tools_of_its_backends() {
        let tools = |backends: Value| {
            let manifest = json!({
                "kind": "VirtualMCPServer", "metadata": {"name": "a"}, "status": {"discoveredBackends": backends},
            });
            summary(manifest).tools
        };
        assert_eq!(
            tools(json!([{"name": "a", "toolCount": 2}, {"name": "b"}, {"name": "c", "toolCount": 1}])),
            Some(3)
        );
        assert_eq!(tools(json!([{"name": "a"}])), None);
    }

    #[test]
    fn a_configuration_without_a_phase_is_summarised_by_its_condition() {
        let of = |status: &str, reason: &str| {
            let summary = summary(json!({
                "kind": "MCPToolConfig", "metadata": {"name": "a"},
                "status": {"conditions": [
                    {"type": "Valid", "status": status, "reason": reason, "message": "spec.x is wrong"},
                ]},
            }));
            (summary.phase, summary.message)
        };
        assert_eq!(of("True", "Ok"), ("Valid".to_owned(), String::new()));
        assert_eq!(of("False", "Wrong"), ("Wrong".to_owned(), "spec.x is wrong".to_owned()));
    }

    #[test]
    fn an_object_without_a_status_has_an_empty_summary() {
        let summary =
            summary(json!({"kind": "MCPGroup", "metadata": {"name": "a"}, "status": "what is this"}));
        assert_eq!((summary.phase.as_str(), summary.tools), ("", None));
    }
}
