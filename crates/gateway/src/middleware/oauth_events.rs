//! What happens at the authorization server in this process: entries of the audit log, and a counter.

use std::{net::IpAddr, sync::LazyLock};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};

/// The name and the help of the counter.
pub(super) const METRIC: (&str, &str) = (
    "skep_oauth_events",
    "Logins, consents, refreshes, revocations and registrations at the authorization server",
);

/// The types of events, as the audit log and the label `event` name them.
pub(super) const OAUTH_TYPES: [&str; 7] = [
    "oauth_login",
    "oauth_consent",
    "oauth_refresh",
    "oauth_token_reuse",
    "oauth_revocation",
    "oauth_session_end",
    "oauth_registration",
];
/// How they go.
const OUTCOMES: [&str; 3] = ["success", "denied", "failure"];

/// Something that has happened. No token is part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OauthEvent<'a> {
    /// One of the types.
    pub type_: &'static str,
    /// `success`, `denied` or `failure`.
    pub outcome: &'static str,
    /// The user, if that is known.
    pub user: &'a str,
    /// The id of the client, if that is known.
    pub client: &'a str,
    /// The address of the client or browser, if there was a request of one.
    pub peer: Option<IpAddr>,
}

/// What has happened since the process began.
pub(super) static COUNTS: LazyLock<Family<Counted, Counter>> = LazyLock::new(Family::default);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Counted {
    pub(super) event: &'static str,
    pub(super) outcome: &'static str,
}

impl OauthEvent<'_> {
    pub(super) fn count(&self) {
        COUNTS.get_or_create(&Counted { event: self.type_, outcome: self.outcome }).inc();
    }
}

/// All counters that there can be.
pub(super) fn all() -> impl Iterator<Item = Counted> {
    OAUTH_TYPES
        .into_iter()
        .flat_map(|event| OUTCOMES.into_iter().map(move |outcome| Counted { event, outcome }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};
    use skep_config::run_config::{self, AuditParameters};

    use super::{super::audit::Audit, *};

    /// What the audit log has after these events.
    async fn entries(config: Value, events: &[OauthEvent<'_>]) -> Vec<Value> {
        let file = std::env::temp_dir().join(format!("skep-audit-{}", uuid::Uuid::new_v4()));
        let mut config: run_config::Audit = serde_json::from_value(config).unwrap();
        config.log_file = file.display().to_string();
        let parameters = AuditParameters { config_data: Some(config), ..AuditParameters::default() };
        let audit = Audit::new(&parameters, false).unwrap();
        let record = audit.oauth_events();
        events.iter().for_each(&record);
        audit.flush().await;
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn event(type_: &'static str, client: &'static str) -> OauthEvent<'static> {
        let peer = Some(IpAddr::from([203, 0, 113, 9]));
        OauthEvent { type_, outcome: "denied", user: "ann", client, peer }
    }

    #[tokio::test]
    async fn an_event_is_an_entry_of_the_audit_log_like_any_other() {
        let found =
            entries(json!({"component": "c"}), &[event("oauth_login", "https://app.example/c")]).await;
        let [entry] = &*found else { panic!("{found:?}") };
        let parts = [
            ("level", json!("AUDIT")),
            ("type", json!("oauth_login")),
            ("outcome", json!("denied")),
            ("component", json!("c")),
            ("source", json!({"type": "network", "value": "203.0.113.9"})),
            ("subjects", json!({"user_id": "ann", "user": "ann"})),
            ("target", json!({"type": "client", "name": "https://app.example/c"})),
        ];
        for (name, value) in parts {
            assert_eq!(entry[name], value, "{name}");
        }
    }

    #[tokio::test]
    async fn types_that_are_excluded_or_not_named_are_not_written_and_long_texts_are_short() {
        let events = [event("oauth_login", "a"), event("oauth_refresh", "b")];
        let types = async |config: Value| {
            let found = entries(config, &events).await;
            found.into_iter().map(|entry| entry["type"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(types(json!({"excludeEventTypes": ["oauth_refresh"]})).await, ["oauth_login"]);
        assert_eq!(types(json!({"eventTypes": ["oauth_refresh"]})).await, ["oauth_refresh"]);
        let long = event("oauth_registration", Box::leak("x".repeat(1 << 20).into_boxed_str()));
        let found = entries(json!({}), &[long]).await;
        assert!(found[0]["target"]["name"].as_str().unwrap().len() <= crate::limits::AUDIT_TEXT);
    }

    #[test]
    fn each_event_counts_by_its_type_and_outcome() {
        let counted = Counted { event: "oauth_token_reuse", outcome: "denied" };
        let count = || COUNTS.get(&counted).map_or(0, |counter| counter.get());
        let before = count();
        event("oauth_token_reuse", "c").count();
        assert_eq!(count(), before + 1);
        assert!(all().any(|one| one == counted) && all().count() == 21);
    }
}
