//! The tools of the search itself.

use serde_json::json;
use skep_api::vmcp::Optimizer;

pub(crate) const FIND_TOOL: &str = "find_tool";
pub(crate) const CALL_TOOL: &str = "call_tool";

/// Models use a tool when its description names the moment to do so.
const FIND_DESCRIPTION: &str = "Find tools that can do what you need. Many more tools exist than you can see. Call this \
    before you conclude that something cannot be done, and whenever a request needs data or actions outside of this \
    conversation: files, messages, web pages, databases, calendars, code, services. Describe one action at a time, and search \
    again with other words if nothing fits. Returns names, descriptions and input schemas: call a tool that you have found \
    with call_tool.";
const CALL_DESCRIPTION: &str = "Call a tool by the name that find_tool returned, with parameters that fit its inputSchema. The \
    result is that of the tool. Search with find_tool first if you do not know the exact name and parameters.";

/// Both as clients see them, in the order of their names.
pub(super) fn own_tools(config: &Optimizer) -> Vec<String> {
    let text = |text: &Option<String>, default: &str| {
        text.as_deref().filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
    };
    let call = json!({
        "name": CALL_TOOL,
        "description": text(&config.call_tool_description, CALL_DESCRIPTION),
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_name": {"type": "string", "description": "The name of the tool, exactly as find_tool returned it"},
                "parameters": {
                    "type": "object",
                    "description": "The arguments of the tool, as its inputSchema describes them; {} if it has none",
                },
            },
            "required": ["tool_name", "parameters"],
        },
    });
    let find = json!({
        "name": FIND_TOOL,
        "description": text(&config.find_tool_description, FIND_DESCRIPTION),
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_description": {
                    "type": "string",
                    "description": "What the tool should do, in one sentence: \"send an email with an attachment\"",
                },
                "tool_keywords": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Words that its name or description may have: a service, an object, a verb",
                },
            },
            "required": ["tool_description"],
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    });
    vec![call.to_string(), find.to_string()]
}
