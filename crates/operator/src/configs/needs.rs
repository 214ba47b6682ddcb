//! What a configuration needs of the cluster: Secrets and ConfigMaps, with their keys.
//!
//! They are found in the spec by their shape, so that a new field cannot be forgotten: a field whose name ends in
//! `Ref` or `Refs` and whose value names a key.

use serde_json::{Map, Value};
use skep_config::paths;
use skep_world::{ReadError, Reader};

use crate::watched::{ConfigMaps, Secrets};

/// One key of one object.
#[derive(Debug, PartialEq, Eq)]
struct Need<'a> {
    field: String,
    kind: NeedKind,
    name: &'a str,
    key: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
enum NeedKind {
    Secret,
    ConfigMap,
}

/// What is not there, in sentences that say what to do.
pub(super) async fn missing(spec: &Value, reader: &mut Reader) -> Result<Vec<String>, ReadError> {
    let mut missing = Vec::new();
    for Need { field, kind, name, key } in needs(spec) {
        let (kind, has_key) = match kind {
            NeedKind::Secret => {
                let keys = reader.content::<Secrets>(name).await?;
                ("Secret", keys.map(|keys| keys.iter().any(|known| known == key)))
            }
            NeedKind::ConfigMap => {
                let data = reader.content::<ConfigMaps>(name).await?;
                ("ConfigMap", data.map(|data| data.contains_key(key)))
            }
        };
        match has_key {
            Some(true) => {}
            Some(false) => missing.push(format!("{field}: the {kind} {name} has no key {key}: add it")),
            None => missing.push(format!("{field}: there is no {kind} {name}: create it with the key {key}")),
        }
    }
    Ok(missing)
}

fn needs(spec: &Value) -> Vec<Need<'_>> {
    let mut found = Vec::new();
    walk(spec, "", &mut found);
    found
}

fn walk<'a>(value: &'a Value, path: &str, found: &mut Vec<Need<'a>>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match value {
                    Value::Object(reference) if name.ends_with("Ref") => {
                        found.extend(need(name, reference, &path));
                    }
                    Value::Array(references) if name.ends_with("Refs") => {
                        for (index, reference) in references.iter().enumerate() {
                            let path = format!("{path}[{index}]");
                            found.extend(reference.as_object().and_then(|object| need(name, object, &path)));
                        }
                    }
                    _ => {}
                }
                walk(value, &path, found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

fn need<'a>(field: &str, reference: &'a Map<String, Value>, path: &str) -> Option<Need<'a>> {
    let key = reference.get("key")?.as_str()?;
    let name = reference.get("name")?.as_str().filter(|name| !name.is_empty())?;
    if reference.get("optional") == Some(&Value::Bool(true)) {
        return None;
    }
    let (kind, key) = match field {
        "configMapRef" => (NeedKind::ConfigMap, if key.is_empty() { paths::CA_FILE } else { key }),
        _ => (NeedKind::Secret, key),
    };
    Some(Need { field: path.into(), kind, name, key })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_reference_to_a_key_is_found_with_its_place() {
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
        let mut found: Vec<String> = needs(&spec)
            .iter()
            .map(|need| format!("{} {:?} {}/{}", need.field, need.kind, need.name, need.key))
            .collect();
        found.sort();
        let expected = [
            "caBundleRef.configMapRef ConfigMap d/ca.crt",
            "embeddedAuthServer.signingKeySecretRefs[0] Secret b/1",
            "embeddedAuthServer.signingKeySecretRefs[1] Secret b/2",
            "embeddedAuthServer.upstreamProviders[0].oauth2Config.clientSecretRef Secret c/k",
            "tokenExchange.clientSecretRef Secret a/k",
        ];
        assert_eq!(found, expected);
    }
}
