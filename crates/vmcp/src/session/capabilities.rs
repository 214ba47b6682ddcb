//! The capabilities of clients. Most clients have the same, so each is kept once; strangers may send very many.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Map, Value};
use skep_mcp::{Kind, Raw};

use crate::limits;

/// What servers can request of clients.
const KNOWN: [&str; 3] = ["elicitation", "roots", "sampling"];

/// The extension that has tasks since 2026-07-28.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The capabilities of all clients.
#[derive(Default)]
pub(crate) struct AllCapabilities(Mutex<HashSet<Arc<str>>>);

impl AllCapabilities {
    /// What a client has declared, as JSON. If it is very long, or very many clients have declared something else, only what
    /// servers can request is kept.
    pub(crate) fn declared(&self, raw: Option<Raw<'_>>) -> Arc<str> {
        let Some(raw) = raw.filter(|raw| raw.kind() == Kind::Object) else { return self.kept("{}") };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= limits::DIFFERENT_CAPABILITIES {
            known.retain(|capabilities| Arc::strong_count(capabilities) > 1);
        }
        let relayed = (raw.as_str().len() <= limits::CLIENT_CAPABILITIES).then(|| relayed(raw));
        let has_room = known.len() < limits::DIFFERENT_CAPABILITIES
            || relayed.as_deref().is_some_and(|relayed| known.contains(relayed));
        drop(known);
        if let Some(relayed) = relayed.filter(|_| has_room) {
            return self.kept(&relayed);
        }
        let requested: Map<String, Value> = KNOWN
            .into_iter()
            .filter(|name| raw.get(name).is_some())
            .map(|name| (name.to_owned(), Value::Object(Map::new())))
            .collect();
        self.kept(&Value::Object(requested).to_string())
    }

    fn kept(&self, text: &str) -> Arc<str> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(capabilities) = known.get(text) {
            return capabilities.clone();
        }
        let capabilities: Arc<str> = text.into();
        known.insert(capabilities.clone());
        capabilities
    }
}

/// What of the capabilities the virtual server relays. Tasks it does not: a backend would respond with one that its client could
/// not ask for.
fn relayed(raw: Raw<'_>) -> Cow<'_, str> {
    let has_tasks = raw.get("tasks").is_some()
        || raw.get("extensions").is_some_and(|extensions| extensions.get(TASKS).is_some());
    if !has_tasks {
        return raw.as_str().into();
    }
    let mut declared: Value = serde_json::from_str(raw.as_str()).unwrap_or_default();
    if let Some(declared) = declared.as_object_mut() {
        declared.remove("tasks");
        declared.get_mut("extensions").and_then(Value::as_object_mut).map(|all| all.remove(TASKS));
    }
    declared.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(all: &AllCapabilities, text: &str) -> Arc<str> {
        all.declared(Raw::spelled(text))
    }

    #[test]
    fn the_same_capabilities_are_kept_once_and_a_flood_of_others_is_reduced() {
        let all = AllCapabilities::default();
        let first = declared(&all, r#"{"roots":{"listChanged":true}}"#);
        assert!(Arc::ptr_eq(&first, &declared(&all, r#"{"roots":{"listChanged":true}}"#)));
        let flood: Vec<Arc<str>> = (0..3 * limits::DIFFERENT_CAPABILITIES)
            .map(|number| declared(&all, &format!(r#"{{"sampling":{{}},"x{number}":1}}"#)))
            .collect();
        assert!(all.0.lock().unwrap().len() <= limits::DIFFERENT_CAPABILITIES + 8);
        assert_eq!(flood.last().map(|last| &**last), Some(r#"{"sampling":{}}"#));
        drop(flood);
        let later = r#"{"experimental":{}}"#;
        assert_eq!(&*declared(&all, later), later, "there is room again when they have left");
        let long = format!(r#"{{"elicitation":{{"x":"{}"}}}}"#, "x".repeat(limits::CLIENT_CAPABILITIES));
        assert_eq!(&*declared(&all, &long), r#"{"elicitation":{}}"#);
        assert_eq!(&*declared(&all, "[]"), "{}");
    }

    #[test]
    fn tasks_are_not_declared_to_backends() {
        let all = AllCapabilities::default();
        for (text, relayed) in [
            (r#"{"tasks":{"list":{}},"roots":{}}"#, r#"{"roots":{}}"#),
            (
                r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{}}}"#,
                r#"{"extensions":{"io.modelcontextprotocol/ui":{}}}"#,
            ),
        ] {
            assert_eq!(&*declared(&all, text), relayed);
        }
    }
}
