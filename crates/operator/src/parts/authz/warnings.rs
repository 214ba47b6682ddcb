//! Policies that can be enforced, and do something else than it looks like.

use serde_json::Value;
use skep_authz::Document;
use skep_config::Json;

use crate::conditions::Finding;

/// Warnings that a message has room for.
const TOLD: usize = 5;
/// How much of each is told. Names in policies can be as long as one likes.
const LONGEST: usize = 300;

/// What is odd about a document that is valid. `place` is where its policies are written.
pub(crate) fn warning(place: &str, document: &Json) -> Option<Finding> {
    let document = document.read::<Value>().ok()?;
    let warnings = Document::read(&document).and_then(|document| document.check()).ok()?;
    let told = warnings.iter().take(TOLD).map(|warning| short(format!("{place}{warning}")));
    let mut message = told.collect::<Vec<_>>().join("; ");
    if message.is_empty() {
        return None;
    }
    if let more @ 1.. = warnings.len().saturating_sub(TOLD) {
        message = format!("{message}; and {more} more");
    }
    Some(Finding::yes("PolicyWarning", "PolicyWithoutEffect", message))
}

fn short(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
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
        warning("config.", &Json::new(&document).unwrap()).map(|finding| {
            assert_eq!((finding.holds, finding.reason.as_str()), (true, "PolicyWithoutEffect"));
            finding.message
        })
    }

    #[test]
    fn nothing_is_said_of_what_does_as_it_looks() {
        assert_eq!(message(vec![EVERYTHING.into()]), None);
        let pdp = json!({"type": "httpv1", "pdp": {"http": {"url": "http://pdp"}, "claim_mapping": "mpe"}});
        assert_eq!(warning("", &Json::new(&pdp).unwrap()), None);
    }

    #[test]
    fn the_first_warnings_are_told_and_the_others_counted() {
        let forbids = |user: &str| format!("forbid(principal == User::{user:?}, action, resource);");
        let policies = |count: usize| {
            [EVERYTHING.into()].into_iter().chain((0..count).map(|_| forbids("ann"))).collect()
        };
        let one = "config.policies[1]: the principal is never a User: use Client";
        assert_eq!(message(policies(1)).as_deref(), Some(one));
        let eight = message(policies(8)).unwrap();
        assert_eq!(eight.matches("; config.policies[").count(), TOLD - 1);
        assert!(eight.starts_with(one) && eight.ends_with("; and 3 more"), "{eight}");
        let long = format!("forbid(principal in Group::\"{}\", action, resource);", "é".repeat(1_000));
        let long = message(vec![EVERYTHING.into(), long]).unwrap();
        assert_eq!(long.chars().count(), LONGEST + 1);
    }
}
