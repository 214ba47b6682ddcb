//! Status fields that the CRDs of the cluster do not declare.
//!
//! The API server rejects an apply with such a field, and the whole status with it. The CRDs may be ToolHive's, or of an older
//! version: charts of CRDs are often upgraded later than programs. So these fields are left out of what is applied.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;
use skep_converge::Kind;
use tokio::sync::Notify;

/// The step of a path to the items of a list.
const ITEMS: &str = "[]";

/// A field of a status that is not declared.
#[derive(Clone, Debug, PartialEq)]
pub struct UndeclaredField {
    /// The names on the way to it, from the status on.
    path: Vec<String>,
    /// The values that its enum does not have. If there are none, the field itself is not declared.
    values: Vec<Value>,
}

impl fmt::Display for UndeclaredField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status.{}", self.path.join(".").replace(".[]", ITEMS))?;
        if !self.values.is_empty() {
            let values: Vec<String> = self.values.iter().map(ToString::to_string).collect();
            write!(f, " ({})", values.join(", "))?;
        }
        Ok(())
    }
}

/// The fields by kind. A kind whose CRD declares all of them has no entry.
pub type ByKind = BTreeMap<Kind, Arc<[UndeclaredField]>>;

/// What is known of the CRDs of the cluster.
#[derive(Default)]
pub struct UndeclaredFields {
    by_kind: RwLock<ByKind>,
    rejected: Notify,
}

impl UndeclaredFields {
    /// All of them.
    pub fn all(&self) -> ByKind {
        self.by_kind.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records what the CRDs do not declare now. Returns the kinds for which this changed.
    pub(crate) fn replace(&self, now: ByKind) -> Vec<Kind> {
        let mut by_kind = self.by_kind.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *by_kind, now);
        let changed = |kind: &&Kind| before.get(kind) != by_kind.get(kind);
        let mut kinds: Vec<Kind> = before.keys().chain(by_kind.keys()).filter(changed).copied().collect();
        kinds.dedup();
        kinds
    }

    /// Records that the API server rejected a status, because the CRD does not declare a field that it was known to declare.
    pub(crate) fn record_rejection(&self) {
        self.rejected.notify_one();
    }

    /// Waits for a rejection.
    pub(crate) async fn rejection(&self) {
        self.rejected.notified().await;
    }

    /// Removes the fields from a status.
    pub(crate) fn strip(&self, kind: Kind, status: &mut Value) {
        let fields = self.by_kind.read().unwrap_or_else(PoisonError::into_inner).get(&kind).cloned();
        for field in fields.iter().flat_map(|fields| fields.iter()) {
            remove(status, &field.path, &field.values);
        }
    }
}

fn remove(value: &mut Value, path: &[String], values: &[Value]) {
    let Some((step, rest)) = path.split_first() else { return };
    match value {
        Value::Array(items) if step == ITEMS => {
            items.iter_mut().for_each(|item| remove(item, rest, values));
        }
        Value::Object(fields) if rest.is_empty() => {
            let is_undeclared = |value: &Value| values.is_empty() || values.contains(value);
            if fields.get(step).is_some_and(is_undeclared) {
                fields.remove(step);
            }
        }
        Value::Object(fields) => {
            if let Some(field) = fields.get_mut(step) {
                remove(field, rest, values);
            }
        }
        _ => {}
    }
}

/// The fields of one schema that another does not declare.
pub(crate) fn undeclared(schema: &Value, declared: &Value) -> Vec<UndeclaredField> {
    let mut fields = Vec::new();
    compare(schema, declared, &mut Vec::new(), &mut fields);
    fields
}

fn compare(schema: &Value, declared: &Value, path: &mut Vec<String>, fields: &mut Vec<UndeclaredField>) {
    if declared["x-kubernetes-preserve-unknown-fields"] == true
        || declared["additionalProperties"].is_object()
    {
        return;
    }
    if let (Some(values), Some(known)) = (schema["enum"].as_array(), declared["enum"].as_array()) {
        let values: Vec<Value> = values.iter().filter(|value| !known.contains(value)).cloned().collect();
        if !values.is_empty() {
            fields.push(UndeclaredField { path: path.clone(), values });
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        match declared["properties"].get(name) {
            Some(declared) => compare(inner, declared, path, fields),
            None => fields.push(UndeclaredField { path: path.clone(), values: Vec::new() }),
        }
        path.pop();
    }
    if let (Some(items), Some(declared)) = (schema.get("items"), declared.get("items")) {
        path.push(ITEMS.into());
        compare(items, declared, path, fields);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skep_api::kinds::MCPServer;

    use super::*;
    use crate::resources::kind_of;

    fn object(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn only_what_is_not_declared_is_left_out() {
        let text = json!({"type": "string"});
        let phase = |phases: Value| json!({"type": "string", "enum": phases});
        let list = |item: Value| json!({"type": "array", "items": object(item)});
        let ours = object(json!({
            "phase": phase(json!(["Ready", "Stopped"])), "url": text, "replicas": text, "any": object(json!({"x": text})),
            "backends": list(json!({"name": text, "health": text})),
        }));
        let theirs = object(json!({
            "phase": phase(json!(["Ready"])), "url": text, "any": {"type": "object", "additionalProperties": text},
            "backends": list(json!({"name": text})),
        }));
        let fields = undeclared(&ours, &theirs);
        let mut texts: Vec<String> = fields.iter().map(ToString::to_string).collect();
        texts.sort();
        assert_eq!(texts, ["status.backends[].health", "status.phase (\"Stopped\")", "status.replicas"]);
        assert_eq!(undeclared(&ours, &ours), []);

        let (known, kind) = (UndeclaredFields::default(), kind_of::<MCPServer>());
        assert_eq!(known.replace([(kind, fields.into())].into()), [kind]);
        let stripped = |mut status: Value| {
            known.strip(kind, &mut status);
            status
        };
        let backends = json!([{"name": "a", "health": "b"}, {"name": "c"}]);
        assert_eq!(
            stripped(
                json!({"phase": "Stopped", "url": "u", "replicas": 1, "any": {"x": "y"}, "backends": backends})
            ),
            json!({"url": "u", "any": {"x": "y"}, "backends": [{"name": "a"}, {"name": "c"}]})
        );
        assert_eq!(stripped(json!({"phase": "Ready"})), json!({"phase": "Ready"}));
        assert_eq!(known.replace(ByKind::new()), [kind]);
        assert_eq!(stripped(json!({"replicas": 1})), json!({"replicas": 1}));
    }
}
