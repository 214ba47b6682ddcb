//! What is done about a method of MCP.

use crate::{Action, Feature};

/// What is done about a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It passes, whoever asks.
    Always,
    /// It passes if the policies say so.
    Check(Action),
    /// It passes, and each item of the answer stays if its action would pass.
    FilterList(Feature),
    /// It does not pass.
    Deny,
}

/// What is done about a method.
///
/// What is not known is denied: a method that a later revision adds may do anything. So are those that a server, not a
/// client, sends (`sampling/…`, `elicitation/…`) and those that no policy can speak of (`tasks/…`).
///
/// `resources/templates/list` passes **as it is, unfiltered**: a template such as `file:///{path}` stands for resources
/// that may be permitted and others that may not, and no policy can be asked about it. Its names and descriptions are
/// therefore seen by everybody who may talk to the server. What is made of a template is a resource, and reading that
/// is checked.
pub fn treatment(method: &str) -> Treatment {
    match method {
        "tools/call" => Treatment::Check(Action::CallTool),
        "prompts/get" => Treatment::Check(Action::GetPrompt),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            Treatment::Check(Action::ReadResource)
        }
        "tools/list" => Treatment::FilterList(Feature::Tool),
        "prompts/list" => Treatment::FilterList(Feature::Prompt),
        "resources/list" => Treatment::FilterList(Feature::Resource),
        "initialize"
        | "ping"
        | "server/discover"
        | "subscriptions/listen"
        | "roots/list"
        | "logging/setLevel"
        | "completion/complete"
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
