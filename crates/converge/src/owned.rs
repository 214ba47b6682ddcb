//! The values that a field manager owns in a live object.

use serde_json::{Map, Value};

/// The live values at the paths of a `fieldsV1` set, in the shape of the object. Nothing if none of them is there.
pub(crate) fn owned(live: &Value, fields: &Value) -> Option<Value> {
    let fields = fields.as_object()?;
    // A leaf: owned as a whole.
    if fields.is_empty() {
        return Some(live.clone());
    }
    match live {
        Value::Object(map) => Some(Value::Object(members(map, fields))),
        Value::Array(items) => Some(Value::Array(elements(items, fields))),
        // The shape has changed under the manager, so none of its fields is there.
        _ => None,
    }
}

fn members(live: &Map<String, Value>, fields: &Map<String, Value>) -> Map<String, Value> {
    let named = fields.iter().filter_map(|(key, inner)| Some((key.strip_prefix("f:")?, inner)));
    named.filter_map(|(name, inner)| Some((name.to_owned(), owned(live.get(name)?, inner)?))).collect()
}

/// Elements of a list are known by their keys (`k:{"name":"x"}`) or, in a set, by their values (`v:"x"`). They stay
/// in the order of the live list.
fn elements(live: &[Value], fields: &Map<String, Value>) -> Vec<Value> {
    let selectors: Vec<(Selector, &Value)> =
        fields.iter().filter_map(|(key, inner)| Some((Selector::parse(key)?, inner))).collect();
    live.iter()
        .filter_map(|element| {
            let (_, inner) = selectors.iter().find(|(selector, _)| selector.matches(element))?;
            owned(element, inner)
        })
        .collect()
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
    fn only_own_fields_are_taken_and_foreign_ones_left() {
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
                "f:gone": {},
            },
        });
        let expected = json!({
            "metadata": {"labels": {"ours": "a"}},
            "spec": {"containers": [{"name": "main", "image": "ours"}], "args": ["x", "y"], "finalizers": ["b"]},
        });
        assert_eq!(owned(&live, &fields), Some(expected));
    }
}
