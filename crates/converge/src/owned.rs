//! The values that a field manager owns in a live object.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The live values at the paths of a `fieldsV1` set, in the shape of the object. `None` if none of them exists.
pub(crate) fn owned(live: &Value, fields: &Value) -> Option<Value> {
    let fields = fields.as_object()?;
    // A leaf: owned as a whole.
    if fields.is_empty() {
        return Some(live.clone());
    }
    match live {
        Value::Object(map) => Some(Value::Object(members(map, fields))),
        Value::Array(items) => Some(Value::Array(elements(items, fields))),
        // The value has another type now, so none of the manager's fields exists.
        _ => None,
    }
}

fn members(live: &Map<String, Value>, fields: &Map<String, Value>) -> Map<String, Value> {
    let named = fields.iter().filter_map(|(key, inner)| Some((key.strip_prefix("f:")?, inner)));
    named.filter_map(|(name, inner)| Some((name.to_owned(), owned(live.get(name)?, inner)?))).collect()
}

/// Elements of a list are identified by their keys (`k:{"name":"x"}`) or, in a set, by their values (`v:"x"`). They
/// keep the order of the live list. A status may list thousands of referrers, so each element is looked up once.
fn elements(live: &[Value], fields: &Map<String, Value>) -> Vec<Value> {
    let mut names: Vec<Vec<String>> = Vec::new();
    let mut by_identity: HashMap<String, &Value> = HashMap::new();
    for (key, inner) in fields {
        let Some(selector) = Selector::parse(key) else { continue };
        if let Selector::Keys(keys) = &selector {
            let of_keys: Vec<String> = keys.keys().cloned().collect();
            if !names.contains(&of_keys) {
                names.push(of_keys);
            }
        }
        by_identity.insert(selector.identity(), inner);
    }
    let find = |element: &Value| {
        let by_keys = names.iter().find_map(|names| by_identity.get(&keys_of(element, names)?));
        by_keys.or_else(|| by_identity.get(&element.to_string())).copied()
    };
    live.iter().filter_map(|element| owned(element, find(element)?)).collect()
}

/// An element's values under these names, as a text. `None` if it lacks one.
fn keys_of(element: &Value, names: &[String]) -> Option<String> {
    let keys = names.iter().map(|name| Some((name.clone(), element.get(name)?.clone())));
    Some(Value::Object(keys.collect::<Option<_>>()?).to_string())
}

pub(crate) enum Selector {
    Keys(Map<String, Value>),
    Value(Value),
}

impl Selector {
    pub(crate) fn parse(key: &str) -> Option<Self> {
        if let Some(keys) = key.strip_prefix("k:") {
            return serde_json::from_str(keys).ok().map(Self::Keys);
        }
        key.strip_prefix("v:").and_then(|value| serde_json::from_str(value).ok()).map(Self::Value)
    }

    /// The keys or the value, as a text.
    fn identity(self) -> String {
        match self {
            Self::Keys(keys) => Value::Object(keys).to_string(),
            Self::Value(value) => value.to_string(),
        }
    }

    pub(crate) fn matches(&self, element: &Value) -> bool {
        match self {
            Self::Keys(keys) => keys.iter().all(|(key, value)| element.get(key) == Some(value)),
            Self::Value(value) => element == value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_own_fields_are_extracted() {
        let live = json!({
            "metadata": {"labels": {"ours": "a", "theirs": "b"}},
            "spec": {
                "replicas": 3,
                "containers": [
                    {"name": "sidecar", "image": "theirs"},
                    {"name": "main", "image": "ours", "terminationMessagePath": "/dev/log"},
                ],
                "args": ["x", "y"],
                "finalizers": ["a", "b"],
            },
        });
        let fields = json!({
            "f:metadata": {"f:labels": {"f:ours": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:name": {}, "f:image": {}}},
                "f:args": {},
                "f:finalizers": {"v:\"b\"": {}},
                "f:removed": {},
            },
        });
        let expected = json!({
            "metadata": {"labels": {"ours": "a"}},
            "spec": {"containers": [{"name": "main", "image": "ours"}], "args": ["x", "y"], "finalizers": ["b"]},
        });
        assert_eq!(owned(&live, &fields), Some(expected));
    }
}
