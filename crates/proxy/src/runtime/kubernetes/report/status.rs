//! The fields of the status that are the proxy's own. Nothing here does I/O.

use jiff::Timestamp;
use serde_json::{Value, json};
use skep_api::{
    conditions::{MCPInitialized, Reason},
    server_report::ServerReport,
};

use crate::InspectError;

/// What is known of the server.
pub(super) enum Finding {
    /// Nothing yet.
    Initializing,
    /// What it offers.
    Described(ServerReport),
    /// Why that is not known.
    Failed(InspectError),
}

impl From<Result<ServerReport, InspectError>> for Finding {
    fn from(inspected: Result<ServerReport, InspectError>) -> Self {
        inspected.map_or_else(Self::Failed, Self::Described)
    }
}

/// The fields, if they are not what the live status has.
pub(super) fn changed(live: &Value, finding: &Finding, now: Timestamp) -> Option<Value> {
    let conditions = live["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let written = conditions.iter().find(|condition| condition["type"] == MCPInitialized::TYPE);
    if matches!(finding, Finding::Initializing) && written.is_some() {
        // Another proxy knows more. Its finding holds until there is another one.
        return None;
    }
    let condition = condition(finding, written, now);
    let server = match finding {
        Finding::Described(report) => json!(report),
        // What it offered before is still the best that is known.
        Finding::Initializing | Finding::Failed(_) => live["server"].clone(),
    };
    let is_same = written == Some(&condition) && live["server"] == server;
    let server = (!server.is_null()).then_some(server);
    (!is_same).then(|| match server {
        Some(server) => json!({"conditions": [condition], "server": server}),
        None => json!({"conditions": [condition]}),
    })
}

fn condition(finding: &Finding, written: Option<&Value>, now: Timestamp) -> Value {
    let (reason, message) = match finding {
        Finding::Initializing => (MCPInitialized::Initializing, "the server has not responded yet".into()),
        Finding::Described(_) => (MCPInitialized::Initialized, "the server responds as an MCP server".into()),
        Finding::Failed(error @ InspectError::Unreachable(_)) => {
            (MCPInitialized::NoResponse, error.to_string())
        }
        Finding::Failed(error @ InspectError::Invalid(_)) => (MCPInitialized::NotMCP, error.to_string()),
        Finding::Failed(error @ InspectError::CredentialRequired(_)) => (
            MCPInitialized::CredentialRequired,
            format!("the server was not queried for what it offers: {error}"),
        ),
    };
    let reason = Reason::from(reason);
    let status = if reason.met { "True" } else { "False" };
    // The time is that of the change from another status.
    let since =
        written.filter(|written| written["status"] == status).map(|written| &written["lastTransitionTime"]);
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let since = since.and_then(Value::as_str).unwrap_or(&now);
    json!({
        "type": reason.type_, "status": status, "reason": reason.reason, "message": message,
        "lastTransitionTime": since,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn nothing_is_written_that_the_status_has() {
        let report = ServerReport { tool_count: Some(2), ..ServerReport::default() };
        let described = Finding::Described(report.clone());
        let first = changed(&Value::Null, &Finding::Initializing, at(1)).unwrap();
        assert_eq!(first["conditions"][0]["reason"], "Initializing");
        assert_eq!(changed(&first, &Finding::Initializing, at(2)), None);
        let second = changed(&first, &described, at(3)).unwrap();
        assert_eq!(
            (&second["conditions"][0]["status"], &second["server"]["toolCount"]),
            (&json!("True"), &json!(2))
        );
        assert_eq!(changed(&second, &described, at(4)), None);
        // A new proxy does not forget what an older one has found.
        assert_eq!(changed(&second, &Finding::Initializing, at(5)), None);
        let failed = Finding::Failed(InspectError::Unreachable("it has ended".into()));
        let third = changed(&second, &failed, at(6)).unwrap();
        assert_eq!(
            (&third["conditions"][0]["reason"], &third["server"]["toolCount"]),
            (&json!("NoResponse"), &json!(2))
        );
        assert_eq!(third["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:06Z");
        assert_eq!(changed(&third, &failed, at(7)), None);
    }
}
