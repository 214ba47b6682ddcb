//! What a status would say that somebody should know of.

use serde_json::Value;

/// What is odd about an object: conditions that should be otherwise. One that blocks it is told by its message already.
pub(super) fn findings(status: &Value, blocked: bool) -> Vec<String> {
    let message = status["message"].as_str().unwrap_or_default();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let told = conditions.filter(|condition| is_odd(condition)).filter_map(|condition| {
        let (type_, said) = (condition["type"].as_str()?, condition["message"].as_str()?);
        (!blocked || said != message).then(|| format!("{type_}: {said}"))
    });
    told.collect()
}

/// Most conditions should be true. That it is not ready is what the table is for.
fn is_odd(condition: &Value) -> bool {
    let type_ = condition["type"].as_str().unwrap_or_default();
    let is_a_warning = ["Warning", "Ignored", "Capped"].iter().any(|end| type_.ends_with(end));
    let odd = if is_a_warning { "True" } else { "False" };
    type_ != "Ready" && condition["status"] == odd
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_somebody_should_look_at_is_told() {
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
        let warnings = ["PolicyWarning: PolicyWarning", "StdioReplicaCapped: StdioReplicaCapped"];
        assert_eq!(findings(&status, true), warnings);
        assert_eq!(findings(&status, false).len(), 3);
    }
}
