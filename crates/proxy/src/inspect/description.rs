//! What is remembered of a server: bounded, whatever it sends.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use serde_json::Value;
use sha2::{Digest, Sha256};
use skep_api::server_report::{ReportedTool, ServerReport};
use skep_mcp::{Envelope, List, Message, Outcome, Raw, Verdict, filtered_in};

/// How many pages of a list are read.
pub(super) const PAGES: usize = 100;
/// How many tools are listed.
const TOOLS: usize = 200;
/// How large the definition of a tool may be that is parsed as a whole.
const DEFINITION: usize = 1 << 20;
/// How long a text may be.
const TEXT: usize = 128;

/// A list of MCP.
pub(super) struct ListMethod {
    pub(super) method: &'static str,
    /// The capability that declares it.
    pub(super) capability: &'static str,
    list: List,
    /// Whether servers that declare it may not have it.
    pub(super) is_optional: bool,
}

const fn list(method: &'static str, capability: &'static str, list: List) -> ListMethod {
    ListMethod { method, capability, list, is_optional: false }
}

pub(super) const LISTS: [ListMethod; 4] = [
    list("tools/list", "tools", List::Tools),
    list("prompts/list", "prompts", List::Prompts),
    list("resources/list", "resources", List::Resources),
    ListMethod {
        is_optional: true,
        ..list("resources/templates/list", "resources", List::ResourceTemplates)
    },
];

/// What a server has sent, so far.
#[derive(Default)]
pub(super) struct Description {
    server: ServerReport,
    counts: HashMap<List, i32>,
    tools: BTreeMap<String, ReportedTool>,
}

impl Description {
    pub(super) fn new(server: &ServerReport) -> Self {
        Self { server: server.clone(), ..Self::default() }
    }

    /// Adds one page of a list, and returns the cursor of the next. A page may be large, so it is read item by item.
    pub(super) fn add(&mut self, list: &ListMethod, page: &[u8]) -> Option<String> {
        let envelope = Envelope::parse(page).ok()?;
        let (mut count, tools) = (0, &mut self.tools);
        let read = filtered_in(&envelope, list.list, |item| {
            count += 1;
            if list.list == List::Tools {
                tools.extend(tool(item.raw()).map(|tool| (tool.name.clone(), tool)));
                // The first ones by name, whatever their order.
                if tools.len() > TOOLS {
                    tools.pop_last();
                }
            }
            Verdict::Keep
        });
        let total = self.counts.entry(list.list).or_default();
        *total = i32::saturating_add(*total, count);
        read.ok()?;
        cursor_in(&envelope)
    }

    pub(super) fn report(self) -> ServerReport {
        let count = |list| self.counts.get(&list).copied();
        ServerReport {
            tool_count: count(List::Tools),
            prompt_count: count(List::Prompts),
            resource_count: count(List::Resources),
            resource_template_count: count(List::ResourceTemplates).filter(|count| *count > 0),
            tools: self.tools.into_values().collect(),
            ..self.server
        }
    }
}

/// The cursor of the page after this one.
pub(super) fn next_cursor(page: &[u8]) -> Option<String> {
    cursor_in(&Envelope::parse(page).ok()?)
}

fn cursor_in(page: &Envelope<'_>) -> Option<String> {
    let Message::Response { outcome: Outcome::Result(result), .. } = page.message() else { return None };
    result.get("nextCursor").and_then(Raw::as_text).map(Cow::into_owned).filter(|next| !next.is_empty())
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

fn tool(definition: Raw<'_>) -> Option<ReportedTool> {
    if definition.as_str().len() > DEFINITION {
        // It is not parsed as a whole.
        let name = definition.get("name").and_then(Raw::as_text)?;
        let digest = hex(definition.as_str());
        return Some(ReportedTool { name: truncated(&name), digest, ..ReportedTool::default() });
    }
    described(&serde_json::from_str(definition.as_str()).ok()?)
}

fn described(definition: &Value) -> Option<ReportedTool> {
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
    hex(&definition.to_string())
}

fn hex(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
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

    fn page(result: &Value) -> Vec<u8> {
        json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string().into_bytes()
    }

    #[test]
    fn a_report_is_bounded_whatever_a_server_sends() {
        let mut description = Description::default();
        let long = "x".repeat(1_000);
        let tools: Vec<Value> =
            (0..5_000).map(|n| json!({"name": format!("t{n:04}\u{7}{long}"), "title": long})).collect();
        let next = description.add(&LISTS[0], &page(&json!({"tools": tools, "nextCursor": "more"})));
        assert_eq!(next.as_deref(), Some("more"));
        assert_eq!(
            description.add(&LISTS[1], &page(&json!({"prompts": "none", "nextCursor": "more"}))),
            None
        );
        let report = description.report();
        assert_eq!(
            (report.tool_count, report.prompt_count, report.tools.len()),
            (Some(5_000), Some(0), TOOLS)
        );
        assert!(report.tools[199].name.starts_with("t0199x"));
        assert!(serde_json::to_string(&report).unwrap().len() < 100_000);
    }

    /// Parsed as a whole, these few bytes would take a hundred times as many.
    #[test]
    fn a_hostile_definition_is_not_parsed_as_a_whole() {
        let bomb = format!(r#"{{"name":"bomb","inputSchema":[{}0]}}"#, "0,".repeat(DEFINITION / 2));
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{bomb},{{"name":"fine"}}]}}}}"#);
        let mut description = Description::default();
        description.add(&LISTS[0], message.as_bytes());
        let report = description.report();
        let names: Vec<&str> = report.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names, report.tool_count), (vec!["bomb", "fine"], Some(2)));
        assert!(report.tools.iter().all(|tool| tool.digest.len() == 16));
    }

    #[test]
    fn a_digest_changes_with_the_definition_and_not_with_the_order_of_its_keys() {
        let tool = |text: &str| tool(Raw::spelled(text).unwrap()).unwrap();
        let one = tool(r#"{"name":"a","inputSchema":{"x":1,"y":2},"annotations":{"readOnlyHint":true}}"#);
        let same = tool(r#"{"annotations":{"readOnlyHint":true},"inputSchema":{"y":2,"x":1},"name":"a"}"#);
        let other = tool(r#"{"name":"a","inputSchema":{"x":1,"y":3}}"#);
        assert_eq!(one, same);
        assert_ne!(one.digest, other.digest);
        assert_eq!((one.hints, other.hints), (vec!["readOnly".to_owned()], Vec::new()));
    }
}
