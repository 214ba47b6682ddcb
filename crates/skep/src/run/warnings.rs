//! Warnings from the status of an object.

use serde_json::Value;

/// Conditions with an unexpected status. The one that blocks the object is reported by its message already.
pub(super) fn warnings(status: &Value, blocked: bool) -> Vec<String> {
    let message = status["message"].as_str().unwrap_or_default();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let warnings = conditions.filter(|condition| is_warning(condition)).filter_map(|condition| {
        let (type_, text) = (condition["type"].as_str()?, condition["message"].as_str()?);
        (!blocked || text != message).then(|| format!("{type_}: {text}"))
    });
    warnings.collect()
}

/// Most conditions should be true. Readiness is shown by the table.
fn is_warning(condition: &Value) -> bool {
    let type_ = condition["type"].as_str().unwrap_or_default();
    let is_a_warning = ["Warning", "Ignored", "Capped", "Synthesized"].iter().any(|end| type_.ends_with(end));
    let unexpected = if is_a_warning { "True" } else { "False" };
    type_ != "Ready" && condition["status"] == unexpected
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_unexpected_conditions_are_warnings() {
        let condition =
            |type_: &str, status: &str| json!({"type": type_, "status": status, "message": type_});
        let conditions = [
            condition("Ready", "False"),
            condition("GroupRefValidated", "False"),
            condition("OIDCConfigRefValidated", "True"),
            condition("SessionStorageWarning", "False"),
            condition("PolicyWarning", "True"),
            condition("StdioReplicaCapped", "True"),
        ];
        let status = json!({"message": "GroupRefValidated", "conditions": conditions});
        let expected = ["PolicyWarning: PolicyWarning", "StdioReplicaCapped: StdioReplicaCapped"];
        assert_eq!(warnings(&status, true), expected);
        assert_eq!(warnings(&status, false).len(), 3);
    }
}
