//! How each method of MCP is authorized.

use crate::{Action, Feature};

/// How a method is authorized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It passes for every caller.
    Always,
    /// It passes if the policies permit it.
    Check(Action),
    /// It passes if the policies permit this for each resource that it subscribes to.
    CheckEach(Action),
    /// It passes if the policies permit to get the prompt, or to read the resource, that its `ref` names.
    CheckReference,
    /// It passes, and the response keeps each item whose action would pass.
    FilterList(Feature),
    /// It does not pass.
    Deny,
}

/// How a method is authorized.
///
/// Unknown methods are denied: a method that a later revision adds may do anything. So are those that a server, not a
/// client, sends (`sampling/…`, `elicitation/…`) and those that no policy can name (`tasks/…`).
///
/// `resources/templates/list` passes **unfiltered**: a template such as `file:///{path}` describes resources
/// that may be permitted and others that may not, and no policy can decide about it. Its names and descriptions are
/// therefore visible to all callers of the server. Reading a resource that matches a template
/// is checked.
pub fn treatment(method: &str) -> Treatment {
    match method {
        "tools/call" => Treatment::Check(Action::CallTool),
        "prompts/get" => Treatment::Check(Action::GetPrompt),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            Treatment::Check(Action::ReadResource)
        }
        "subscriptions/listen" => Treatment::CheckEach(Action::ReadResource),
        "completion/complete" => Treatment::CheckReference,
        "tools/list" => Treatment::FilterList(Feature::Tool),
        "prompts/list" => Treatment::FilterList(Feature::Prompt),
        "resources/list" => Treatment::FilterList(Feature::Resource),
        "initialize"
        | "ping"
        | "server/discover"
        | "roots/list"
        | "logging/setLevel"
        | "features/list"
        | "resources/templates/list"
        | "notifications/initialized"
        | "notifications/message"
        | "notifications/progress"
        | "notifications/cancelled"
        | "notifications/roots/list_changed"
        | "notifications/tools/list_changed"
        | "notifications/prompts/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/resources/updated"
        | "notifications/tasks/status" => Treatment::Always,
        _ => Treatment::Deny,
    }
}
