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

/// What a proxy knows.
pub(super) struct Report {
    /// What is known of the server.
    pub(super) finding: Finding,
    /// Whether callers can be authenticated, if there is an issuer of tokens.
    pub(super) issuer: Option<Result<(), String>>,
    /// The generation of the object that the proxy was started for; 0 if that is not known.
    pub(super) generation: i64,
}

/// Whether a proxy of a newer generation has reported. While a proxy is replaced, two of them run, and the older one may not
/// be able to use the server of the newer one, or not know of it yet.
///
/// An object that was deleted and created anew begins with the first generation: a report of a later one is of the old object.
pub(super) fn is_outdated(live: &Value, live_generation: i64, ours: i64) -> bool {
    let theirs = written(live, MCPInitialized::TYPE).and_then(|one| one["observedGeneration"].as_i64());
    theirs.is_some_and(|theirs| 0 < ours && ours < theirs && theirs <= live_generation)
}

/// The fields, if they are not what the live status has. An older CRD has no field for what the server offers.
pub(super) fn changed(live: &Value, report: &Report, is_older: bool, now: Timestamp) -> Option<Value> {
    let Report { finding, issuer, generation } = report;
    let [initialized, issuer_available] =
        [MCPInitialized::TYPE, IssuerAvailable::TYPE].map(|type_| written(live, type_));
    if matches!(finding, Finding::Initializing) && initialized.is_some() {
        // Another proxy knows more. Its finding holds until there is another one.
        return None;
    }
    let (reason, message) = initialization(finding);
    let mut desired = vec![condition(reason.into(), message, *generation, initialized, now)];
    desired.extend(issuer.as_ref().map(|issuer| {
        let (reason, message) = availability(issuer);
        condition(reason.into(), message, *generation, issuer_available, now)
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

/// A condition of the live status.
fn written<'a>(live: &'a Value, type_: &str) -> Option<&'a Value> {
    live["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
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

fn condition(
    reason: Reason,
    message: String,
    generation: i64,
    written: Option<&Value>,
    now: Timestamp,
) -> Value {
    let status = if reason.met { "True" } else { "False" };
    // The time is that of the change from another status.
    let since =
        written.filter(|written| written["status"] == status).map(|written| &written["lastTransitionTime"]);
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let since = since.and_then(Value::as_str).unwrap_or(&now);
    let mut condition = json!({
        "type": reason.type_, "status": status, "reason": reason.reason, "message": message,
        "lastTransitionTime": since,
    });
    if generation > 0 {
        condition["observedGeneration"] = generation.into();
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn report(finding: Finding) -> Report {
        Report { finding, issuer: None, generation: 0 }
    }

    fn described(tools: i32) -> Finding {
        Finding::Described(ServerReport { tool_count: Some(tools), ..ServerReport::default() })
    }

    #[test]
    fn nothing_is_written_that_the_status_has() {
        let (initializing, described) = (report(Finding::Initializing), report(described(2)));
        let first = changed(&Value::Null, &initializing, false, at(1)).unwrap();
        assert_eq!(first["conditions"][0]["reason"], "Initializing");
        assert_eq!(changed(&first, &initializing, false, at(2)), None);
        let second = changed(&first, &described, false, at(3)).unwrap();
        assert_eq!(
            (&second["conditions"][0]["status"], &second["server"]["toolCount"]),
            (&json!("True"), &json!(2))
        );
        assert_eq!(changed(&second, &described, false, at(4)), None);
        // A new proxy does not forget what an older one has found.
        assert_eq!(changed(&second, &initializing, false, at(5)), None);
        let failed = report(Finding::Failed(InspectError::Unreachable("it has ended".into())));
        let third = changed(&second, &failed, false, at(6)).unwrap();
        assert_eq!(
            (&third["conditions"][0]["reason"], &third["server"]["toolCount"]),
            (&json!("NoResponse"), &json!(2))
        );
        assert_eq!(third["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:06Z");
        assert_eq!(changed(&third, &failed, false, at(7)), None);
    }

    #[test]
    fn an_issuer_that_is_unavailable_is_reported_until_it_is_available_or_not_used() {
        let with = |issuer| Report { issuer, ..report(described(0)) };
        let unavailable = with(Some(Err("https://issuer cannot be reached".to_owned())));
        let first = changed(&Value::Null, &unavailable, false, at(1)).unwrap();
        let condition = &first["conditions"][1];
        assert_eq!((&condition["type"], &condition["status"]), (&json!("IssuerAvailable"), &json!("False")));
        assert_eq!(condition["message"], "no caller can be authenticated: https://issuer cannot be reached");
        assert_eq!(changed(&first, &unavailable, false, at(2)), None);
        let second = changed(&first, &with(Some(Ok(()))), false, at(3)).unwrap();
        assert_eq!(second["conditions"][1]["status"], "True");
        let third = changed(&second, &with(None), false, at(4)).unwrap();
        assert_eq!(third["conditions"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_crd_without_the_field_gets_the_conditions_and_then_nothing_more() {
        let described = report(described(2));
        let first = changed(&Value::Null, &described, true, at(1)).unwrap();
        assert!(
            first.get("server").is_none() && first["conditions"][0]["reason"] == "Initialized",
            "{first}"
        );
        assert_eq!(changed(&first, &described, true, at(2)), None);
    }

    #[test]
    fn a_report_of_a_newer_generation_is_kept_unless_it_is_of_an_object_that_was_deleted() {
        let second = Report { generation: 2, ..report(described(2)) };
        let live = changed(&Value::Null, &second, false, at(1)).unwrap();
        assert_eq!(live["conditions"][0]["observedGeneration"], 2);
        let third = Report { generation: 3, ..second };
        assert!(changed(&live, &third, false, at(2)).is_some(), "the generation of a report has no effect");
        // The generation of the object, that of the proxy, and whether its report is outdated.
        for (live_generation, ours, expected) in
            [(2, 1, true), (9, 1, true), (2, 2, false), (3, 3, false), (1, 1, false), (2, 0, false)]
        {
            assert_eq!(is_outdated(&live, live_generation, ours), expected, "{live_generation} {ours}");
        }
        assert!(!is_outdated(&Value::Null, 2, 1));
    }
}
