//! The configuration of an object as it takes effect, and where each value comes from.

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use skep_api::refs::REFERENCES;

use super::{
    Key, Object,
    defaults::{Defaults, defaults},
};

/// The annotation of kubectl with what was applied from the client's side.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
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

/// The values of the spec with the defaults of what it leaves out, and those of the specs that it refers to.
pub(super) fn configuration(key: &Key, manifest: &Value, visible: &[Arc<Object>]) -> Vec<Setting> {
    let none = Defaults::new();
    let defaults = defaults(&key.kind).unwrap_or(&none);
    let set = fields_that_were_set(manifest);
    let mut settings = Vec::new();
    let setting = |field, value, origin| Setting { field, value, origin, from: String::new() };
    let spec = leaves(&manifest["spec"]);
    for (field, value) in &spec {
        let is_default =
            defaults.get(field) == Some(value) && set.as_ref().is_some_and(|set| !set.contains(field));
        let origin = if is_default { Origin::Default } else { Origin::Spec };
        settings.push(setting(field.clone(), value.clone(), origin));
    }
    // The defaults within an object apply if there is one.
    let is_left_out = |field: &str| {
        let parent = field.rsplit_once('.').map_or("", |(parent, _)| parent);
        let has_parent = parent.is_empty() || spec.iter().any(|(other, _)| is_within(other, parent));
        has_parent && !spec.iter().any(|(other, _)| is_within(other, field))
    };
    for (field, value) in defaults.iter().filter(|(field, _)| is_left_out(field)) {
        settings.push(setting(field.clone(), value.clone(), Origin::Default));
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

/// Whether a field is this one, or within it.
fn is_within(field: &str, outer: &str) -> bool {
    field.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The fields of the spec that were set for sure: those that were applied. An update owns defaults, too. None if nothing was
/// applied by an API server, as for a file, in which everything was set.
fn fields_that_were_set(manifest: &Value) -> Option<BTreeSet<String>> {
    let managers = manifest["metadata"]["managedFields"].as_array()?;
    let mut fields = BTreeSet::new();
    for manager in managers.iter().filter(|manager| manager["operation"] == "Apply") {
        add_owned(&manager["fieldsV1"]["f:spec"], "", &mut fields);
    }
    let applied = manifest["metadata"]["annotations"][LAST_APPLIED].as_str();
    let applied = applied.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
    fields.extend(leaves(&applied["spec"]).into_iter().map(|(field, _)| field));
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
        let mut lines: Vec<_> = configuration(&key, manifest, &objects.all()).into_iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn values_of_the_spec_and_of_referenced_objects_are_shown_with_their_origin() {
        let objects = Objects::default();
        objects.apply(json!({
            "kind": "MCPToolConfig", "metadata": {"name": "t", "namespace": "n"}, "spec": {"toolsFilter": ["a", "b"]},
        }));
        let manifest = json!({
            "kind": "MCPGroup", "metadata": {"name": "s", "namespace": "n"},
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
                r#"toolsFilter = ["a","b"] (Reference MCPToolConfig t)"#,
                r#"transport = "stdio" (Spec )"#,
            ]
        );
    }

    /// The origin of `transport`, whose default is stdio.
    fn origin(metadata: Value, spec: Value) -> Option<Origin> {
        let manifest = json!({"kind": "MCPServer", "metadata": metadata, "spec": spec});
        let settings = configuration(&Key::new("MCPServer", "", "s"), &manifest, &[]);
        settings.into_iter().find(|setting| setting.field == "transport").map(|setting| setting.origin)
    }

    #[test]
    fn a_default_is_what_was_not_set_for_sure() {
        let spec = json!({"transport": "stdio"});
        let managed = |operation: &str| {
            let fields = json!({"f:spec": {"f:transport": {}}});
            json!({"managedFields": [{"manager": "kubectl", "operation": operation, "fieldsV1": fields}]})
        };
        assert_eq!(origin(managed("Apply"), spec.clone()), Some(Origin::Spec));
        assert_eq!(origin(managed("Update"), spec.clone()), Some(Origin::Default));
        let mut applied = managed("Update");
        applied["annotations"] = json!({LAST_APPLIED: json!({"spec": spec}).to_string()});
        assert_eq!(origin(applied, spec.clone()), Some(Origin::Spec));
        assert_eq!(origin(managed("Update"), json!({"transport": "sse"})), Some(Origin::Spec));
        // A file.
        assert_eq!(origin(json!({}), spec), Some(Origin::Spec));
        assert_eq!(origin(json!({}), json!({})), Some(Origin::Default));
    }

    #[test]
    fn a_huge_spec_is_truncated() {
        let many: Vec<Value> = (0..5_000).map(|number| json!({"name": number})).collect();
        let manifest = json!({"kind": "MCPGroup", "metadata": {"name": "s"}, "spec": {"env": many}});
        assert_eq!(shown(&manifest, &Objects::default()).len(), VALUES);
    }
}
