//! Which objects refer to which, by name and within a namespace. "Who refers to me" is a look-up in an index.

use serde_json::Value;
use skep_api::{
    kinds::{ApiKind, MCPRemoteProxy, MCPServer, MCPServerEntry, VirtualMCPServer},
    refs::{REFERENCES, WorkloadReference},
};
use skep_world::{ReadError, Reader};

use super::{Custom, kind_of};

/// How many objects a status lists. Each is stored twice, in the status and in its managed fields, and an object of more than 1.5 MiB
/// cannot be stored.
const LISTED: usize = 2000;

/// Those that a status lists.
pub(crate) fn listed<T: Clone>(all: &[T]) -> Vec<T> {
    all.iter().take(LISTED).cloned().collect()
}

/// The index key of the objects that refer to the object of that kind and name.
pub(crate) fn reference_key<K: ApiKind>(name: &str) -> String {
    key(kind_of::<K>().kind, name)
}

fn key(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// The index keys of all objects that a spec refers to. References are recognised by the name of their field, so that a
/// new one cannot be forgotten: a test holds [`REFERENCES`] to the schemas.
pub(super) fn reference_keys(spec: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    collect(spec, &mut keys);
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn collect(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                match REFERENCES.iter().find(|(name, _)| field == name) {
                    Some((_, kind)) => {
                        let references = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                        let names = references.iter().filter_map(|reference| reference["name"].as_str());
                        keys.extend(names.map(|name| key(kind, name)));
                    }
                    None => collect(value, keys),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, keys)),
        _ => {}
    }
}

/// Calls a macro with each kind that can refer to configurations.
macro_rules! for_each_referrer {
    ($callback:ident) => {
        $callback!(MCPServer, MCPRemoteProxy, MCPServerEntry, VirtualMCPServer)
    };
}

/// The workloads that refer to an object, sorted by kind and name. The reader is requeued when one is added or
/// removed.
pub(crate) fn referrers<K: ApiKind>(reader: &mut Reader, name: &str) -> Vec<WorkloadReference> {
    let key = reference_key::<K>(name);
    let mut all = Vec::new();
    macro_rules! add {
        ($($kind:ty),+) => { $(
            let names = reader.members::<Custom<$kind>>(&key).into_iter();
            all.extend(names.map(|name| WorkloadReference { kind: kind_of::<$kind>().kind.into(), name }));
        )+ };
    }
    for_each_referrer!(add);
    all.sort();
    all
}

/// Lists every kind that can refer to a configuration again, so that a referrer that was created just now is known.
pub(crate) async fn refresh_referrers(reader: &Reader) -> Result<(), ReadError> {
    macro_rules! refresh {
        ($($kind:ty),+) => { $( reader.refresh::<Custom<$kind>>().await?; )+ };
    }
    for_each_referrer!(refresh);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_reference_has_a_key_wherever_it_is_in_the_spec() {
        let spec = json!({
            "groupRef": {"name": "g"},
            "incomingAuth": {"oidcConfigRef": {"name": "o", "audience": "a"}},
            "outgoingAuth": {"backends": {"b": {"externalAuthConfigRef": {"name": "e"}}}},
            "config": {
                "aggregation": {"tools": [{"toolConfigRef": {"name": "t"}}, {"toolConfigRef": {"name": "t"}}]},
                "compositeToolRefs": [{"name": "c"}, {"name": "d"}],
            },
            "sessionStorage": {"passwordRef": {"name": "s", "key": "k"}},
        });
        let expected = [
            "MCPExternalAuthConfig/e",
            "MCPGroup/g",
            "MCPOIDCConfig/o",
            "MCPToolConfig/t",
            "VirtualMCPCompositeToolDefinition/c",
            "VirtualMCPCompositeToolDefinition/d",
        ];
        assert_eq!(reference_keys(&spec), expected);
    }
}
