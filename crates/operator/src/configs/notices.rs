//! What people are told about a configuration.

use kube::core::object::HasStatus;

use super::{
    Config, Inputs,
    status::{DELETION_BLOCKED, VALID, findings},
};
use crate::notice::{Notice, Severity};

/// What is new since the status was last written.
pub(super) fn notices<K: Config>(inputs: &Inputs<K>) -> Vec<Notice> {
    let before = inputs.object.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let was = |type_: &str| before.iter().find(|condition| condition.type_ == type_);
    let mut notices = Vec::new();
    for finding in findings(inputs) {
        let old = was(&finding.type_).map(|condition| condition.status.as_str());
        let (severity, reason, action) = match (finding.type_.as_ref(), finding.holds, old) {
            (VALID, false, Some("False")) | (VALID, true, Some("True") | None) => continue,
            (VALID, false, _) => (Severity::Warning, "ConfigInvalid", "Validate"),
            (VALID, true, _) => (Severity::Normal, "ConfigValid", "Validate"),
            (DELETION_BLOCKED, true, None) => (Severity::Warning, "DeletionBlocked", "Delete"),
            _ => continue,
        };
        notices.push(Notice { severity, reason: reason.into(), action, note: finding.message });
    }
    notices
}
