//! Policies that are valid, and do something else than their text suggests.

use serde_json::Value;
use skep_api::conditions::PolicyWarning;
use skep_authz::Document;
use skep_config::Json;

use crate::reconcile::Condition;

/// How many warnings a message lists.
const MAX_LISTED: usize = 5;
/// How much of each is listed. Names in policies can have any length.
const MAX_LENGTH: usize = 300;

/// The condition about policies that are valid and have no effect. `place` is where they are written.
pub(crate) fn warning(place: &str, document: &Json) -> Option<Condition> {
    let document = document.read::<Value>().ok()?;
    let warnings = Document::read(&document).and_then(|document| document.check()).ok()?;
    let listed = warnings.iter().take(MAX_LISTED).map(|warning| truncate(format!("{place}{warning}")));
    let mut message = listed.collect::<Vec<_>>().join("; ");
    if message.is_empty() {
        return None;
    }
    if let more @ 1.. = warnings.len().saturating_sub(MAX_LISTED) {
        message = format!("{message}; and {more} more");
    }
    Some(Condition::new(PolicyWarning::PolicyWithoutEffect, message))
}

fn truncate(text: String) -> String {
    match text.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EVERYTHING: &str = "permit(principal, action, resource);";

    fn message(policies: Vec<String>) -> Option<String> {
        let document = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": policies}});
        warning("config.", &Json::new(&document).unwrap()).map(|condition| {
            assert_eq!((condition.is_met, condition.reason), (true, "PolicyWithoutEffect"));
            condition.message
        })
    }

    #[test]
    fn policies_that_take_effect_have_no_warning() {
        assert_eq!(message(vec![EVERYTHING.into()]), None);
        let pdp = json!({"type": "httpv1", "pdp": {"http": {"url": "http://pdp"}, "claim_mapping": "mpe"}});
        assert_eq!(warning("", &Json::new(&pdp).unwrap()), None);
    }

    #[test]
    fn the_first_warnings_are_listed_and_the_others_counted() {
        let forbids = |user: &str| format!("forbid(principal == User::{user:?}, action, resource);");
        let policies = |count: usize| {
            [EVERYTHING.into()].into_iter().chain((0..count).map(|_| forbids("ann"))).collect()
        };
        let one = "config.policies[1]: the principal is never a User: use Client";
        assert_eq!(message(policies(1)).as_deref(), Some(one));
        let eight = message(policies(8)).unwrap();
        assert_eq!(eight.matches("; config.policies[").count(), MAX_LISTED - 1);
        assert!(eight.starts_with(one) && eight.ends_with("; and 3 more"), "{eight}");
        let long = format!("forbid(principal in Group::\"{}\", action, resource);", "é".repeat(1_000));
        let long = message(vec![EVERYTHING.into(), long]).unwrap();
        assert_eq!(long.chars().count(), MAX_LENGTH + 1);
    }
}
