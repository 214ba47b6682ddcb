//! What is remembered of a server: bounded, whatever it sends.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use skep_api::server_report::{ReportedTool, ServerReport};

/// How many pages of a list are read.
pub(super) const PAGES: usize = 100;
/// How many tools are listed.
const TOOLS: usize = 200;
/// How long a text may be.
const TEXT: usize = 128;

/// A list of MCP.
pub(super) struct ListMethod {
    pub(super) method: &'static str,
    /// The capability that declares it.
    pub(super) capability: &'static str,
    /// The field of its result.
    field: &'static str,
    /// Whether servers that declare it may not have it.
    pub(super) is_optional: bool,
}

const fn list(method: &'static str, capability: &'static str, field: &'static str) -> ListMethod {
    ListMethod { method, capability, field, is_optional: false }
}

pub(super) const LISTS: [ListMethod; 4] = [
    list("tools/list", "tools", "tools"),
    list("prompts/list", "prompts", "prompts"),
    list("resources/list", "resources", "resources"),
    ListMethod { is_optional: true, ..list("resources/templates/list", "resources", "resourceTemplates") },
];

/// What a server has sent, so far.
#[derive(Default)]
pub(super) struct Description {
    server: ServerReport,
    counts: BTreeMap<&'static str, i32>,
    tools: BTreeMap<String, ReportedTool>,
}

impl Description {
    pub(super) fn new(server: &ServerReport) -> Self {
        Self { server: server.clone(), ..Self::default() }
    }

    /// Adds one page of a list.
    pub(super) fn add(&mut self, list: &ListMethod, page: &Value) {
        let items = page[list.field].as_array().map(Vec::as_slice).unwrap_or_default();
        *self.counts.entry(list.field).or_default() += i32::try_from(items.len()).unwrap_or(i32::MAX);
        if list.field == "tools" {
            self.tools.extend(items.iter().filter_map(tool).map(|tool| (tool.name.clone(), tool)));
            // The first ones by name, whatever their order.
            while self.tools.len() > TOOLS {
                self.tools.pop_last();
            }
        }
    }

    pub(super) fn report(self) -> ServerReport {
        let count = |field: &str| self.counts.get(field).copied();
        ServerReport {
            tool_count: count("tools"),
            prompt_count: count("prompts"),
            resource_count: count("resources"),
            resource_template_count: count("resourceTemplates").filter(|count| *count > 0),
            tools: self.tools.into_values().collect(),
            ..self.server
        }
    }
}

/// The name, the version and the revisions that a server declares.
pub(super) fn server(info: &Value, versions: &[&str]) -> ServerReport {
    ServerReport {
        name: text(&info["name"]),
        version: text(&info["version"]),
        protocol_versions: versions.iter().map(|version| truncated(version)).collect(),
        ..ServerReport::default()
    }
}

fn tool(definition: &Value) -> Option<ReportedTool> {
    const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    let annotations = &definition["annotations"];
    let hints = HINTS.into_iter().filter(|hint| annotations[*hint] == true);
    Some(ReportedTool {
        name: text(&definition["name"])?,
        title: text(&definition["title"]).or_else(|| text(&annotations["title"])),
        hints: hints.map(|hint| hint.trim_end_matches("Hint").to_owned()).collect(),
        digest: digest(definition),
    })
}

/// A digest that is the same for the same definition, in whatever order its keys are.
fn digest(definition: &Value) -> String {
    let mut definition = definition.clone();
    definition.sort_all_objects();
    let digest = Sha256::digest(definition.to_string());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(truncated)
}

/// The start of a text, without control characters.
fn truncated(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_is_bounded_whatever_a_server_sends() {
        let mut description = Description::default();
        let long = "x".repeat(1_000);
        let tools: Vec<Value> =
            (0..5_000).map(|n| json!({"name": format!("t{n:04}\u{7}{long}"), "title": long})).collect();
        description.add(&LISTS[0], &json!({"tools": tools}));
        description.add(&LISTS[1], &json!({"prompts": "none"}));
        let report = description.report();
        assert_eq!(
            (report.tool_count, report.prompt_count, report.tools.len()),
            (Some(5_000), Some(0), TOOLS)
        );
        assert!(report.tools[199].name.starts_with("t0199x"));
        assert!(serde_json::to_string(&report).unwrap().len() < 100_000);
    }

    #[test]
    fn a_digest_changes_with_the_definition_and_not_with_the_order_of_its_keys() {
        let one = tool(
            &json!({"name": "a", "inputSchema": {"x": 1, "y": 2}, "annotations": {"readOnlyHint": true}}),
        );
        let same = tool(
            &json!({"annotations": {"readOnlyHint": true}, "inputSchema": {"y": 2, "x": 1}, "name": "a"}),
        );
        let other = tool(&json!({"name": "a", "inputSchema": {"x": 1, "y": 3}}));
        assert_eq!(one, same);
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_ne!(one.digest, other.digest);
        assert_eq!((one.hints, other.hints), (vec!["readOnly".to_owned()], Vec::new()));
    }
}
