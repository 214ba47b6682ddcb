//! What a proxy reports in the status of its object: what the server offers, whether it responds as an MCP server, and whether
//! callers can be authenticated.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use skep_api::conditions::{IssuerAvailable, MCPInitialized, Reason};

use super::NotReady;

/// The status fields that the proxy owns.
pub(crate) fn reported_by_proxy() -> Value {
    let key = |type_: &str| format!("k:{}", json!({"type": type_}));
    json!({"f:server": {}, "f:conditions": {key(MCPInitialized::TYPE): {}, key(IssuerAvailable::TYPE): {}}})
}

/// Why a server whose pods run does not serve callers, if its proxy has found that out. A proxy that reports nothing is another
/// version's.
pub(crate) fn not_serving(conditions: &[Condition]) -> Option<NotReady> {
    not_initialized(conditions).or_else(|| no_issuer(conditions))
}

fn no_issuer(conditions: &[Condition]) -> Option<NotReady> {
    let is_unmet =
        |condition: &&Condition| condition.type_ == IssuerAvailable::TYPE && condition.status != "True";
    let unmet = conditions.iter().find(is_unmet)?;
    Some(NotReady::Starting(unmet.message.clone()))
}

fn not_initialized(conditions: &[Condition]) -> Option<NotReady> {
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
        fn reported(reason: impl Into<Reason>) -> Option<NotReady> {
            let reason = reason.into();
            let status = if reason.met { "True" } else { "False" };
            let condition = json!({
                "type": reason.type_, "status": status, "reason": reason.reason, "message": "why",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            not_serving(&[serde_json::from_value(condition).unwrap()])
        }
        assert!(not_serving(&[]).is_none());
        assert!(reported(IssuerAvailable::KeysFetched).is_none());
        assert!(matches!(reported(IssuerAvailable::IssuerUnavailable), Some(NotReady::Starting(_))));
        assert!(reported(MCPInitialized::Initialized).is_none());
        assert!(reported(MCPInitialized::CredentialRequired).is_none());
        assert!(matches!(reported(MCPInitialized::Initializing), Some(NotReady::Starting(_))));
        assert!(
            matches!(reported(MCPInitialized::NoResponse), Some(NotReady::Starting(why)) if why == "why")
        );
        assert!(matches!(reported(MCPInitialized::NotMCP), Some(NotReady::Failed(_))));
    }
}
