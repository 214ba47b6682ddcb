//! The hashes that a registry's pods and ConfigMap carry.
//!
//! A changed hash rolls the pods. So it is computed as ToolHive does, over the text in which Go dumps its structs:
//! otherwise every registry would restart when a cluster is taken over.

use serde::Serialize;
use skep_api::{RawValue, kinds::MCPRegistrySpec, refs::SecretKeySelector};
use skep_gocompat::{
    Json,
    dump::{bytes, list, pointer},
    fnv,
};

/// The hash of the whole spec.
pub(super) fn of_spec(spec: &MCPRegistrySpec) -> String {
    let secrets = spec.image_pull_secrets.iter();
    let secrets =
        secrets.map(|secret| format!("{{Name:(string){}}}", secret.name.as_deref().unwrap_or_default()));
    let template = spec.pod_template_spec.as_ref();
    let template =
        template.map(|template| format!("{{Raw:{} Object:(runtime.Object)<nil>}}", json_bytes(&template.0)));
    fnv::hash(&format!(
        "(v1beta1.MCPRegistrySpec){{ConfigYAML:(string){} Volumes:([]v1.JSON){} VolumeMounts:([]v1.JSON){} \
         PGPassSecretRef:(*v1.SecretKeySelector){} DisplayName:(string){} PodTemplateSpec:(*runtime.RawExtension){} \
         ImagePullSecrets:([]v1.LocalObjectReference){}}}",
        spec.config_yaml,
        list(spec.volumes.iter().map(raw)),
        list(spec.volume_mounts.iter().map(raw)),
        pointer(spec.pgpass_secret_ref.as_ref().map(selector)),
        spec.display_name.as_deref().unwrap_or_default(),
        pointer(template),
        list(secrets),
    ))
}

/// The hash of the server's file.
pub(super) fn of_file(text: &str) -> String {
    fnv::hash(&bytes(text))
}

fn selector(secret: &SecretKeySelector) -> String {
    format!(
        "{{LocalObjectReference:(v1.LocalObjectReference){{Name:(string){}}} Key:(string){} Optional:(*bool){}}}",
        secret.name.as_deref().unwrap_or_default(),
        secret.key,
        pointer(secret.optional.map(|optional| optional.to_string())),
    )
}

fn raw(value: &RawValue) -> String {
    format!("{{Raw:{}}}", json_bytes(&value.0))
}

/// JSON as the API server writes it: with sorted keys.
fn json_bytes<T: Serialize>(value: &T) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    value.sort_all_objects();
    Json::new(&value).map(|json| bytes(json.as_str())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_has_the_hash_that_go_computes() {
        assert_eq!(of_file("a: 1\n"), "3cda68ea");
    }

    #[test]
    fn the_hash_ignores_the_order_of_keys_and_covers_every_field() {
        let spec = |value| serde_json::from_value::<MCPRegistrySpec>(value).unwrap();
        let base = json!({"configYAML": "a: 1\n", "volumes": [{"name": "a", "emptyDir": {}}]});
        let hash = of_spec(&spec(base.clone()));
        let turned = json!({"configYAML": "a: 1\n", "volumes": [{"emptyDir": {}, "name": "a"}]});
        assert_eq!(of_spec(&spec(turned)), hash);
        for (field, value) in [
            ("configYAML", json!("a: 2\n")),
            ("volumes", json!([])),
            ("volumeMounts", json!([{"name": "a", "mountPath": "/a"}])),
            ("pgpassSecretRef", json!({"name": "a", "key": "b"})),
            ("displayName", json!("a")),
            ("podTemplateSpec", json!({})),
            ("imagePullSecrets", json!([{"name": "a"}])),
        ] {
            let mut other = base.clone();
            other[field] = value;
            assert_ne!(of_spec(&spec(other)), hash, "{field}");
        }
    }
}
