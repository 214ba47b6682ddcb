//! The keys of Secrets and ConfigMaps that a configuration refers to.
//!
//! References are recognised by their shape, so that a new field cannot be forgotten: a field whose name ends in `Ref` or
//! `Refs` and whose value names a key.

use serde_json::{Map, Value};
use skep_config::{FieldError, FieldPath, paths};
use skep_world::{ReadError, Reader};

use crate::resources::{ConfigMaps, Secrets, missing_key};

/// One key of one object.
#[derive(Debug, PartialEq, Eq)]
struct KeyRef<'a> {
    field: FieldPath,
    kind: RefKind,
    name: &'a str,
    key: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
enum RefKind {
    Secret,
    ConfigMap,
}

/// The keys that do not exist.
pub(super) async fn missing(spec: &Value, reader: &mut Reader) -> Result<Vec<FieldError>, ReadError> {
    let mut missing = Vec::new();
    for KeyRef { field, kind, name, key } in key_refs(spec) {
        let message = match kind {
            RefKind::Secret => missing_key::<Secrets>(reader, name, key).await?,
            RefKind::ConfigMap => missing_key::<ConfigMaps>(reader, name, key).await?,
        };
        missing.extend(message.map(|message| FieldError::new(field, message)));
    }
    Ok(missing)
}

fn key_refs(spec: &Value) -> Vec<KeyRef<'_>> {
    let mut key_refs = Vec::new();
    collect(spec, &FieldPath::default(), &mut key_refs);
    key_refs
}

fn collect<'a>(value: &'a Value, path: &FieldPath, key_refs: &mut Vec<KeyRef<'a>>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = path.clone().join(name.clone());
                match value {
                    Value::Object(reference) if name.ends_with("Ref") => {
                        key_refs.extend(key_ref(name, reference, &path));
                    }
                    Value::Array(references) if name.ends_with("Refs") => {
                        for (index, reference) in references.iter().enumerate() {
                            let path = path.clone().index(index);
                            key_refs.extend(
                                reference.as_object().and_then(|object| key_ref(name, object, &path)),
                            );
                        }
                    }
                    _ => {}
                }
                collect(value, &path, key_refs);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &path.clone().index(index), key_refs);
            }
        }
        _ => {}
    }
}

fn key_ref<'a>(field: &str, reference: &'a Map<String, Value>, path: &FieldPath) -> Option<KeyRef<'a>> {
    let key = reference.get("key")?.as_str()?;
    let name = reference.get("name")?.as_str().filter(|name| !name.is_empty())?;
    if reference.get("optional") == Some(&Value::Bool(true)) {
        return None;
    }
    let (kind, key) = match field {
        "configMapRef" => (RefKind::ConfigMap, if key.is_empty() { paths::CA_FILE } else { key }),
        _ => (RefKind::Secret, key),
    };
    Some(KeyRef { field: path.clone(), kind, name, key })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_reference_to_a_key_is_listed_with_its_path() {
        let spec = json!({
            "tokenExchange": {"clientSecretRef": {"name": "a", "key": "k"}},
            "embeddedAuthServer": {
                "signingKeySecretRefs": [{"name": "b", "key": "1"}, {"name": "b", "key": "2"}],
                "upstreamProviders": [{"oauth2Config": {"clientSecretRef": {"name": "c", "key": "k"}}}],
            },
            "caBundleRef": {"configMapRef": {"name": "d", "key": ""}},
            "groupRef": {"name": "no key"},
            "otherRef": {"name": "e", "key": "k", "optional": true},
        });
        let mut paths: Vec<String> = key_refs(&spec)
            .iter()
            .map(|one| format!("{} {:?} {}/{}", one.field, one.kind, one.name, one.key))
            .collect();
        paths.sort();
        let expected = [
            "caBundleRef.configMapRef ConfigMap d/ca.crt",
            "embeddedAuthServer.signingKeySecretRefs[0] Secret b/1",
            "embeddedAuthServer.signingKeySecretRefs[1] Secret b/2",
            "embeddedAuthServer.upstreamProviders[0].oauth2Config.clientSecretRef Secret c/k",
            "tokenExchange.clientSecretRef Secret a/k",
        ];
        assert_eq!(paths, expected);
    }
}
