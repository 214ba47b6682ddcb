//! The description of the tool that runs scripts, which names the tools that the caller can use in them.

use std::fmt::Write;

use http::Response;
use http_body_util::BodyExt;
use skep_gateway::{http::Body, message::Exchange};
use skep_mcp::{Method, Raw};

use super::tools_in;
use crate::{
    catalog::described,
    front::Front,
    limits,
    scripts::{EXECUTE_TOOL_SCRIPT, INTRODUCTION},
};

impl Front {
    /// The response, in which a list of tools has the description for those in it: what the caller may not use has been
    /// removed.
    pub(in crate::front) async fn with_description(
        &self,
        exchange: &Exchange,
        response: Response<Body>,
    ) -> Response<Body> {
        let is_list =
            exchange.message.as_ref().is_some_and(|message| message.method == Some(Method::ToolsList));
        if self.scripts.is_none() || !is_list {
            return response;
        }
        let (head, body) = response.into_parts();
        let Ok(body) = body.collect().await else {
            return Response::from_parts(head, Body::Whole(Default::default()));
        };
        let body = body.to_bytes();
        let changed = described_list(&body).unwrap_or_else(|| body.clone().into());
        Response::from_parts(head, Body::Whole(changed.into()))
    }
}

/// A list of tools with the description, if it has the tool.
fn described_list(body: &[u8]) -> Option<Vec<u8>> {
    let tools = tools_in(body);
    let own = tools.iter().find(|tool| runs_scripts(tool))?;
    let (before, after) = (body.get(..own.range().start)?, body.get(own.range().end..)?);
    Some([before, described_tool(&tools)?.as_bytes(), after].concat())
}

/// The tool that runs scripts, with the description for all others of these, if it is one of them.
pub(super) fn described_tool(tools: &[Raw<'_>]) -> Option<String> {
    let own = tools.iter().find(|tool| runs_scripts(tool))?;
    let others = tools.iter().filter(|tool| !runs_scripts(tool));
    Some(described(own.as_str(), &description(others)).into())
}

/// Whether this is the tool that runs scripts.
pub(in crate::front) fn runs_scripts(tool: &Raw<'_>) -> bool {
    tool.get("name").and_then(Raw::as_text).as_deref() == Some(EXECUTE_TOOL_SCRIPT)
}

/// What a model should know about the tool, and about the tools that it can call with it.
fn description<'a>(tools: impl Iterator<Item = &'a Raw<'a>>) -> String {
    let mut text = format!("{INTRODUCTION}\n\nTools:");
    let mut missing = 0;
    for tool in tools {
        let line = line(*tool);
        if missing > 0 || text.len() + line.len() > limits::SCRIPT_DESCRIPTION {
            missing += 1;
        } else {
            text.push_str(&line);
        }
    }
    if missing > 0 {
        write!(text, "\nand {missing} more: the list of tools has them all").ok();
    }
    text
}

/// A tool as a function, with the start of its description.
fn line(tool: Raw<'_>) -> String {
    let name = tool.get("name").and_then(Raw::as_text).unwrap_or_default();
    let schema = tool.get("inputSchema");
    let required = schema.and_then(|schema| schema.get("required")).and_then(|names| names.items().ok());
    let required: Vec<_> = required.unwrap_or_default().into_iter().filter_map(Raw::as_text).collect();
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(|all| all.entries().ok());
    let parameters =
        properties.unwrap_or_default().into_iter().take(limits::SCRIPT_PARAMETERS).map(|(key, _)| {
            let key = key.decoded();
            let is_required = required.contains(&key);
            if is_required { key.to_string() } else { format!("{key}=None") }
        });
    let parameters: Vec<String> = parameters.collect();
    let description = tool.get("description").and_then(Raw::as_text).unwrap_or_default();
    let first = description.lines().next().unwrap_or_default();
    let short: String = first.chars().take(limits::SCRIPT_TOOL_DESCRIPTION).collect();
    let more = if first.len() > short.len() { "…" } else { "" };
    let mut line = "\n- ".to_owned();
    match skep_script::identifier(&name) {
        Some(identifier) => {
            write!(line, "{identifier}({})", parameters.join(", ")).ok();
            if identifier != name {
                write!(line, " [{name}]").ok();
            }
        }
        None => {
            let arguments: Vec<String> = std::iter::once(format!("{name:?}")).chain(parameters).collect();
            write!(line, "call_tool({})", arguments.join(", ")).ok();
        }
    }
    if !short.is_empty() {
        write!(line, ": {short}{more}").ok();
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::scripts::tool;

    fn list(others: Vec<Value>) -> String {
        let own: Value = serde_json::from_str(&tool()).unwrap();
        let tools: Vec<Value> = others.into_iter().chain([own]).collect();
        json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string()
    }

    fn description_in(list: &str) -> String {
        let list: Value = serde_json::from_slice(&described_list(list.as_bytes()).unwrap()).unwrap();
        let tools = list["result"]["tools"].as_array().unwrap();
        tools.last().unwrap()["description"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_description_has_each_tool_as_a_function() {
        let schema = json!({"properties": {"id": {}, "limit": {}}, "required": ["id"]});
        let long = "x".repeat(200);
        let list = list(vec![
            json!({"name": "a.b", "description": "Reads\nall of it", "inputSchema": schema}),
            json!({"name": "c", "description": long}),
            json!({"name": "d"}),
            json!({"name": "len", "inputSchema": {"properties": {"x": {}}}}),
        ]);
        let description = description_in(&list);
        let lines: Vec<&str> = description.lines().rev().take(4).collect();
        let shortened = format!("- c(): {}…", "x".repeat(80));
        assert_eq!(
            lines,
            ["- call_tool(\"len\", x=None)", "- d()", &shortened, "- a_b(id, limit=None) [a.b]: Reads"]
        );
    }

    /// A tool of a backend may contain the same text, where it is none of the list.
    #[test]
    fn the_tool_of_the_list_is_described_and_no_copy_of_it() {
        let copy: Value = serde_json::from_str(&tool()).unwrap();
        let list = list(vec![json!({"_meta": {"x": copy}, "name": "a"})]);
        let described: Value = serde_json::from_slice(&described_list(list.as_bytes()).unwrap()).unwrap();
        assert_eq!(described["result"]["tools"][0]["_meta"]["x"], copy);
        assert!(description_in(&list).ends_with("- a()"));
    }

    #[test]
    fn the_description_is_no_longer_than_its_limit() {
        let tools = (0..5_000).map(|number| json!({"name": format!("tool_{number}"), "description": "d"}));
        let description = description_in(&list(tools.collect()));
        assert!(description.len() < limits::SCRIPT_DESCRIPTION + 100);
        assert!(description.ends_with(" more: the list of tools has them all"), "{description}");
        assert_eq!(described_list(br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#), None);
    }
}
