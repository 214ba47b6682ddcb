//! Sets of fields, as `managedFields` writes them: which of them would lose their last owner, and objects without
//! those.
//!
//! `{"f:a": {".": {}, "f:b": {}}}` contains `a` and `a.b`. A leaf is `{}`: a value, or a list or map that is owned as
//! a whole.

use serde_json::{Map, Value, json};

use crate::owned::Selector;

/// The fields of both sets.
pub(crate) fn union(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            let itself = one.is_empty() || other.is_empty();
            for (key, inner) in other {
                let inner = match one.remove(&key) {
                    Some(before) => union(before, inner),
                    None => inner,
                };
                one.insert(key, inner);
            }
            if itself && !one.is_empty() {
                one.insert(".".into(), json!({}));
            }
            Value::Object(one)
        }
        (one, _) => one,
    }
}

/// The fields of one set that are not in the other. `None` if there are none.
pub(crate) fn without(set: &Value, other: Option<&Value>) -> Option<Value> {
    let Some(other) = other else { return Some(set.clone()) };
    let mut left = Map::new();
    if contains_itself(set) && !contains_itself(other) {
        left.insert(".".into(), json!({}));
    }
    for (key, inner) in set.as_object().into_iter().flatten().filter(|(key, _)| *key != ".") {
        if let Some(inner) = without(inner, other.get(key)) {
            left.insert(key.clone(), inner);
        }
    }
    (!left.is_empty()).then_some(Value::Object(left))
}

/// The fields of a set without those below the leaves of another, and those alone. Each is `None` if it is empty.
pub(crate) fn split(set: &Value, other: &Value) -> (Option<Value>, Option<Value>) {
    let (mut outside, mut inside) = (Map::new(), Map::new());
    for (key, inner) in set.as_object().into_iter().flatten() {
        let (out, within) = match other.get(key).filter(|_| key != ".") {
            Some(Value::Object(leaf)) if leaf.is_empty() => (None, Some(inner.clone())),
            Some(other) => split(inner, other),
            None => (Some(inner.clone()), None),
        };
        outside.extend(out.map(|out| (key.clone(), out)));
        inside.extend(within.map(|within| (key.clone(), within)));
    }
    let set = |fields: Map<String, Value>| (!fields.is_empty()).then_some(Value::Object(fields));
    (set(outside), set(inside))
}

fn contains_itself(set: &Value) -> bool {
    set.as_object().is_some_and(|fields| fields.is_empty() || fields.contains_key("."))
}

/// Removes the fields from the value. Returns whether the whole value is to be removed.
pub(crate) fn strip(value: &mut Value, set: &Value) -> bool {
    let Some(fields) = set.as_object() else { return false };
    if fields.is_empty() {
        return true;
    }
    match value {
        Value::Object(map) => {
            for (key, inner) in fields {
                let Some(name) = key.strip_prefix("f:") else { continue };
                if map.get_mut(name).is_some_and(|child| strip(child, inner)) {
                    map.remove(name);
                }
            }
        }
        Value::Array(items) => {
            let selectors: Vec<_> =
                fields.iter().filter_map(|(key, inner)| Some((Selector::parse(key)?, inner))).collect();
            // Each item is located before its fields are removed, because they identify it.
            items.retain_mut(|item| {
                let selected = selectors.iter().find(|(selector, _)| selector.matches(item));
                !selected.is_some_and(|(_, inner)| strip(item, inner))
            });
        }
        _ => {}
    }
    // What remains has an owner.
    let is_empty = match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    contains_itself(set) && is_empty
}

/// Removes the fields from the value, and the maps and lists that are empty without them: an empty map that is applied is
/// owned as a whole.
pub(crate) fn cut(value: &mut Value, set: &Value) {
    strip(value, set);
    remove_empty(value, set);
}

fn remove_empty(value: &mut Value, set: &Value) {
    let fields = set.as_object().into_iter().flatten();
    match value {
        Value::Object(map) => {
            for (name, inner) in fields.filter_map(|(key, inner)| Some((key.strip_prefix("f:")?, inner))) {
                let Some(child) = map.get_mut(name) else { continue };
                remove_empty(child, inner);
                if child.as_object().is_some_and(Map::is_empty) || child.as_array().is_some_and(Vec::is_empty)
                {
                    map.remove(name);
                }
            }
        }
        Value::Array(items) => {
            for (selector, inner) in fields.filter_map(|(key, inner)| Some((Selector::parse(key)?, inner))) {
                items
                    .iter_mut()
                    .filter(|item| selector.matches(item))
                    .for_each(|item| remove_empty(item, inner));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_without_the_fields_is_removed_as_well() {
        let mut object = json!({"data": {"a": "1"}, "labels": {"b": "2", "c": "3"}, "kept": {}});
        cut(&mut object, &json!({"f:data": {"f:a": {}}, "f:labels": {"f:b": {}}}));
        assert_eq!(object, json!({"labels": {"c": "3"}, "kept": {}}));
    }

    #[test]
    fn a_set_is_split_at_the_leaves_of_another() {
        let key = r#"k:{"type":"Degraded"}"#;
        let set = json!({
            "f:phase": {}, "f:backends": {".": {}, "k:1": {"f:name": {}}},
            "f:conditions": {".": {}, key: {"f:type": {}}, "k:2": {}},
        });
        let (outside, inside) = split(&set, &json!({"f:backends": {}, "f:conditions": {key: {}}}));
        assert_eq!(outside, Some(json!({"f:phase": {}, "f:conditions": {".": {}, "k:2": {}}})));
        let expected =
            json!({"f:backends": {".": {}, "k:1": {"f:name": {}}}, "f:conditions": {key: {"f:type": {}}}});
        assert_eq!(inside, Some(expected));
        assert_eq!(split(&set, &json!({})), (Some(set.clone()), None));
    }

    #[test]
    fn fields_of_the_previous_owner_alone_are_removed_and_fields_of_others_stay() {
        let theirs = json!({
            "f:labels": {".": {}, "f:old": {}, "f:kept": {}},
            "f:annotations": {".": {}, "f:only": {}},
            "f:args": {},
            "f:env": {
                ".": {},
                r#"k:{"name":"REMOVED"}"#: {".": {}, "f:name": {}, "f:value": {}},
                r#"k:{"name":"KEPT"}"#: {".": {}, "f:name": {}, "f:value": {}},
            },
        });
        let ours = json!({
            "f:labels": {"f:kept": {}},
            "f:env": {r#"k:{"name":"KEPT"}"#: {".": {}, "f:name": {}, "f:value": {}}},
        });
        let removed = without(&theirs, Some(&ours)).unwrap();
        let mut object = json!({
            "labels": {"old": "1", "kept": "2", "foreign": "3"},
            "annotations": {"only": "1"},
            "args": ["a", "b"],
            "env": [{"name": "REMOVED", "value": "1"}, {"name": "KEPT", "value": "2"}],
        });
        assert!(!strip(&mut object, &removed));
        let left = json!({"labels": {"kept": "2", "foreign": "3"}, "env": [{"name": "KEPT", "value": "2"}]});
        assert_eq!(object, left);
        assert_eq!(without(&ours, Some(&theirs)), None);
    }
}
