//! The configuration of an object as it takes effect, and where each value comes from.

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use skep_api::refs::REFERENCES;

use super::{Key, Object};

/// How many values are shown.
const VALUES: usize = 500;

/// A value that takes effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Setting {
    /// The path of the field, without `spec`.
    field: String,
    value: Value,
    origin: Origin,
    /// The object that has it, if that is another one.
    from: String,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Origin {
    /// The spec of the object.
    Spec,
    /// Nothing has set it: the API server added it.
    Default,
    /// The spec of an object that it refers to.
    Reference,
}

/// The values of the spec, and of the specs that it refers to.
pub(super) fn configuration(key: &Key, manifest: &Value, visible: &[Arc<Object>]) -> Vec<Setting> {
    let set = fields_that_were_set(manifest);
    let mut settings = Vec::new();
    for (field, value) in leaves(&manifest["spec"]) {
        // A field of a list is owned with its element, whose path has other names.
        let root = field.split('[').next().unwrap_or(&field);
        let is_default = set.as_ref().is_some_and(|set| root == field && !set.contains(root));
        let origin = if is_default { Origin::Default } else { Origin::Spec };
        settings.push(Setting { field, value, origin, from: String::new() });
    }
    for referred in references(key, &manifest["spec"]) {
        let Some(object) = visible.iter().find(|object| object.key == referred) else { continue };
        let from = format!("{} {}", referred.kind, referred.name);
        for (field, value) in leaves(&object.manifest["spec"]) {
            settings.push(Setting { field, value, origin: Origin::Reference, from: from.clone() });
        }
    }
    settings.truncate(VALUES);
    settings
}

/// The fields of the spec that a manager owns. None if the object has no managed fields, as a file has none.
fn fields_that_were_set(manifest: &Value) -> Option<BTreeSet<String>> {
    let managers = manifest["metadata"]["managedFields"].as_array()?;
    let mut fields = BTreeSet::new();
    for manager in managers {
        add_owned(&manager["fieldsV1"]["f:spec"], "", &mut fields);
    }
    Some(fields)
}

fn add_owned(owned: &Value, path: &str, fields: &mut BTreeSet<String>) {
    let Some(members) = owned.as_object() else { return };
    for (name, inner) in members {
        let Some(name) = name.strip_prefix("f:") else { continue };
        let field = join(path, name);
        add_owned(inner, &field, fields);
        fields.insert(field);
    }
}

/// The values that are no objects, by their paths.
fn leaves(spec: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    add_leaves(spec, String::new(), &mut found);
    found
}

fn add_leaves(value: &Value, path: String, found: &mut Vec<(String, Value)>) {
    if found.len() > VALUES {
        return;
    }
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, inner)| add_leaves(inner, join(&path, name), found));
        }
        Value::Array(elements) if elements.iter().any(Value::is_object) => {
            let numbered = elements.iter().enumerate();
            numbered.for_each(|(index, inner)| add_leaves(inner, format!("{path}[{index}]"), found));
        }
        // A spec that is no object has no fields.
        _ if path.is_empty() => {}
        Value::Null => {}
        value => found.push((path, value.clone())),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The objects that a spec refers to, at any depth. A group is none: it has no configuration.
fn references(key: &Key, spec: &Value) -> BTreeSet<Key> {
    let mut found = BTreeSet::new();
    add_references(key, spec, &mut found);
    found
}

fn add_references(key: &Key, value: &Value, found: &mut BTreeSet<Key>) {
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                match REFERENCES.iter().find(|(field, kind)| field == name && *kind != "MCPGroup") {
                    Some((_, kind)) => {
                        let one_or_more = inner.as_array().map_or(std::slice::from_ref(inner), Vec::as_slice);
                        let names = one_or_more.iter().filter_map(|one| one["name"].as_str());
                        found.extend(names.map(|name| Key::new(kind, &key.namespace, name)));
                    }
                    None => add_references(key, inner, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|inner| add_references(key, inner, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::objects::Objects;

    fn shown(manifest: &Value, objects: &Objects) -> Vec<String> {
        let key = Key::of(manifest).unwrap();
        let line = |setting: Setting| {
            format!("{} = {} ({:?} {})", setting.field, setting.value, setting.origin, setting.from)
        };
        configuration(&key, manifest, &objects.all()).into_iter().map(line).collect()
    }

    #[test]
    fn values_of_the_spec_and_of_referenced_objects_are_shown_with_their_origin() {
        let objects = Objects::default();
        objects.apply(json!({
            "kind": "MCPToolConfig", "metadata": {"name": "t", "namespace": "n"}, "spec": {"toolsFilter": ["a", "b"]},
        }));
        let manifest = json!({
            "kind": "MCPServer", "metadata": {"name": "s", "namespace": "n"},
            "spec": {
                "transport": "stdio", "toolConfigRef": {"name": "t"}, "oidcConfigRef": {"name": "missing"},
                "env": [{"name": "A", "value": "1"}], "groupRef": {"name": "g"}, "labels": {},
            },
        });
        assert_eq!(
            shown(&manifest, &objects),
            [
                r#"env[0].name = "A" (Spec )"#,
                r#"env[0].value = "1" (Spec )"#,
                r#"groupRef.name = "g" (Spec )"#,
                "labels = {} (Spec )",
                r#"oidcConfigRef.name = "missing" (Spec )"#,
                r#"toolConfigRef.name = "t" (Spec )"#,
                r#"transport = "stdio" (Spec )"#,
                r#"toolsFilter = ["a","b"] (Reference MCPToolConfig t)"#,
            ]
        );
    }

    #[test]
    fn a_value_that_no_manager_owns_is_a_default() {
        let manifest = json!({
            "kind": "MCPServer",
            "metadata": {"name": "s", "managedFields": [
                {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:image": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}}},
            ]},
            "spec": {"image": "i", "transport": "stdio", "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "A"}]},
        });
        assert_eq!(
            shown(&manifest, &Objects::default()),
            [
                r#"env[0].name = "A" (Spec )"#,
                r#"image = "i" (Spec )"#,
                r#"resources.limits.cpu = "1" (Spec )"#,
                r#"transport = "stdio" (Default )"#,
            ]
        );
    }

    #[test]
    fn a_huge_spec_is_truncated() {
        let many: Vec<Value> = (0..5_000).map(|number| json!({"name": number})).collect();
        let manifest = json!({"kind": "MCPServer", "metadata": {"name": "s"}, "spec": {"env": many}});
        assert_eq!(shown(&manifest, &Objects::default()).len(), VALUES);
    }
}
