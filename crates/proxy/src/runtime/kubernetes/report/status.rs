//! The fields of the status that are the proxy's own. Nothing here does I/O.

use jiff::Timestamp;
use serde_json::{Value, json};
use skep_api::{
    conditions::{IssuerAvailable, MCPInitialized, Reason},
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

/// The fields, if they are not what the live status has. An older CRD has no field for what the server offers.
pub(super) fn changed(
    live: &Value,
    finding: &Finding,
    issuer: Option<&Result<(), String>>,
    is_older: bool,
    now: Timestamp,
) -> Option<Value> {
    let conditions = live["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let written = |type_: &str| conditions.iter().find(|condition| condition["type"] == type_);
    let [initialized, issuer_available] = [MCPInitialized::TYPE, IssuerAvailable::TYPE].map(written);
    if matches!(finding, Finding::Initializing) && initialized.is_some() {
        // Another proxy knows more. Its finding holds until there is another one.
        return None;
    }
    let (reason, message) = initialization(finding);
    let mut desired = vec![condition(reason.into(), message, initialized, now)];
    desired.extend(issuer.map(|issuer| {
        let (reason, message) = availability(issuer);
        condition(reason.into(), message, issuer_available, now)
    }));
    let server = match finding {
        _ if is_older => Value::Null,
        Finding::Described(report) => json!(report),
        // What it offered before is still the best that is known.
        Finding::Initializing | Finding::Failed(_) => live["server"].clone(),
    };
    let is_same = initialized.into_iter().chain(issuer_available).eq(&desired) && live["server"] == server;
    let server = (!server.is_null()).then_some(server);
    (!is_same).then(|| match server {
        Some(server) => json!({"conditions": desired, "server": server}),
        None => json!({"conditions": desired}),
    })
}

fn availability(issuer: &Result<(), String>) -> (IssuerAvailable, String) {
    match issuer {
        Ok(()) => (IssuerAvailable::KeysFetched, "callers can be authenticated".into()),
        Err(cause) => {
            (IssuerAvailable::IssuerUnavailable, format!("no caller can be authenticated: {cause}"))
        }
    }
}

fn initialization(finding: &Finding) -> (MCPInitialized, String) {
    match finding {
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
    }
}

fn condition(reason: Reason, message: String, written: Option<&Value>, now: Timestamp) -> Value {
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
        let first = changed(&Value::Null, &Finding::Initializing, None, false, at(1)).unwrap();
        assert_eq!(first["conditions"][0]["reason"], "Initializing");
        assert_eq!(changed(&first, &Finding::Initializing, None, false, at(2)), None);
        let second = changed(&first, &described, None, false, at(3)).unwrap();
        assert_eq!(
            (&second["conditions"][0]["status"], &second["server"]["toolCount"]),
            (&json!("True"), &json!(2))
        );
        assert_eq!(changed(&second, &described, None, false, at(4)), None);
        // A new proxy does not forget what an older one has found.
        assert_eq!(changed(&second, &Finding::Initializing, None, false, at(5)), None);
        let failed = Finding::Failed(InspectError::Unreachable("it has ended".into()));
        let third = changed(&second, &failed, None, false, at(6)).unwrap();
        assert_eq!(
            (&third["conditions"][0]["reason"], &third["server"]["toolCount"]),
            (&json!("NoResponse"), &json!(2))
        );
        assert_eq!(third["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:06Z");
        assert_eq!(changed(&third, &failed, None, false, at(7)), None);
    }

    #[test]
    fn an_issuer_that_is_unavailable_is_reported_until_it_is_available_or_not_used() {
        let described = Finding::Described(ServerReport::default());
        let unavailable = Err("https://issuer cannot be reached".to_owned());
        let first = changed(&Value::Null, &described, Some(&unavailable), false, at(1)).unwrap();
        let condition = &first["conditions"][1];
        assert_eq!((&condition["type"], &condition["status"]), (&json!("IssuerAvailable"), &json!("False")));
        assert_eq!(condition["message"], "no caller can be authenticated: https://issuer cannot be reached");
        assert_eq!(changed(&first, &described, Some(&unavailable), false, at(2)), None);
        let second = changed(&first, &described, Some(&Ok(())), false, at(3)).unwrap();
        assert_eq!(second["conditions"][1]["status"], "True");
        let third = changed(&second, &described, None, false, at(4)).unwrap();
        assert_eq!(third["conditions"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_crd_without_the_field_gets_the_conditions_and_then_nothing_more() {
        let described = Finding::Described(ServerReport { tool_count: Some(2), ..ServerReport::default() });
        let first = changed(&Value::Null, &described, None, true, at(1)).unwrap();
        assert!(
            first.get("server").is_none() && first["conditions"][0]["reason"] == "Initialized",
            "{first}"
        );
        assert_eq!(changed(&first, &described, None, true, at(2)), None);
    }
}
