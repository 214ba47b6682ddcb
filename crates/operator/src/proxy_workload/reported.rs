//! What a proxy reports in the status of its object: what the server offers, and whether it responds as an MCP server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use skep_api::conditions::{MCPInitialized, Reason};

use super::NotReady;

/// The status fields that the proxy owns.
pub(crate) fn reported_by_proxy() -> Value {
    let key = format!("k:{}", json!({"type": MCPInitialized::TYPE}));
    json!({"f:server": {}, "f:conditions": {key: {}}})
}

/// Why a server whose pods run does not serve MCP, if its proxy has found that out. A proxy that reports nothing is another
/// version's.
pub(crate) fn not_initialized(conditions: &[Condition]) -> Option<NotReady> {
    let found = conditions.iter().find(|condition| condition.type_ == MCPInitialized::TYPE)?;
    let is = |reason: MCPInitialized| found.reason == Reason::from(reason).reason;
    if found.status == "True" || is(MCPInitialized::CredentialRequired) {
        return None;
    }
    let message = &found.message;
    Some(match is(MCPInitialized::NotMCP) {
        true => NotReady::Failed(format!("the server does not respond as an MCP server: {message}")),
        false => NotReady::Starting(message.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ready_if_it_responds_or_only_callers_can_tell_or_its_proxy_reports_nothing() {
        let reported = |reason: MCPInitialized| {
            let reason = Reason::from(reason);
            let status = if reason.met { "True" } else { "False" };
            let condition = json!({
                "type": reason.type_, "status": status, "reason": reason.reason, "message": "why",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            not_initialized(&[serde_json::from_value(condition).unwrap()])
        };
        assert!(not_initialized(&[]).is_none());
        assert!(reported(MCPInitialized::Initialized).is_none());
        assert!(reported(MCPInitialized::CredentialRequired).is_none());
        assert!(matches!(reported(MCPInitialized::Initializing), Some(NotReady::Starting(_))));
        assert!(
            matches!(reported(MCPInitialized::NoResponse), Some(NotReady::Starting(why)) if why == "why")
        );
        assert!(matches!(reported(MCPInitialized::NotMCP), Some(NotReady::Failed(_))));
    }
}
