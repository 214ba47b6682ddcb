//! The CustomResourceDefinitions, generated from the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation,
};
use kube::{
    CustomResourceExt,
    core::object::{HasSpec, HasStatus},
};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::{for_each_kind, kinds, schema::structural};

/// Marks the CRDs whose stored objects the operator moves to the storage version.
pub const MIGRATE_LABEL: &str = "toolhive.stacklok.dev/auto-migrate-storage-version";

/// The definitions of all kinds, sorted by kind.
///
/// It can only fail if a type's schema is not one that Kubernetes knows, which the tests rule out.
pub fn crds() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    macro_rules! definitions {
        ($($kind:ident),+) => { Ok(vec![$(with_older_version(definition::<kinds::$kind>()?)),+]) };
    }
    for_each_kind!(definitions)
}

/// The schema of each kind's status, by kind. It takes much less memory than [`crds`].
pub fn status_schemas() -> Vec<(&'static str, Value)> {
    macro_rules! schemas {
        ($($kind:ident),+) => {
            vec![$((stringify!($kind), structural::<<kinds::$kind as HasStatus>::Status>())),+]
        };
    }
    for_each_kind!(schemas)
}

/// The schema of each kind's spec, likewise.
pub fn spec_schemas() -> Vec<(&'static str, Value)> {
    macro_rules! schemas {
        ($($kind:ident),+) => {
            vec![$((stringify!($kind), structural::<<kinds::$kind as HasSpec>::Spec>())),+]
        };
    }
    for_each_kind!(schemas)
}

/// A definition as readable JSON: a bound of 1 is written as 1, not as 1.0, and keys are sorted.
pub fn to_json(crd: &CustomResourceDefinition) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(crd)?;
    whole_numbers(&mut value);
    value.sort_all_objects();
    Ok(value)
}

fn definition<K>() -> Result<CustomResourceDefinition, serde_json::Error>
where
    K: CustomResourceExt + HasSpec<Spec: JsonSchema> + HasStatus<Status: JsonSchema>,
{
    let mut crd = K::crd();
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    crd.metadata.labels.get_or_insert_default().insert(MIGRATE_LABEL.into(), "true".into());
    let schema = object_schema(structural::<K::Spec>(), structural::<K::Status>());
    for version in &mut crd.spec.versions {
        let schema = serde_json::from_value(schema.clone())?;
        version.schema = Some(CustomResourceValidation { open_api_v3_schema: Some(schema) });
    }
    Ok(crd)
}

/// The schema of a whole object. The doc comment of the spec's type describes the kind, so it becomes the description
/// of the whole object.
fn object_schema(mut spec: Value, mut status: Value) -> Value {
    let about = spec["description"].take();
    spec["description"] = json!("The desired state.");
    status["description"] =
        json!("The observed state. It is written by controllers and read-only for users.");
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "apiVersion": {"type": "string", "description": "The group and version of this object's format."},
            "kind": {"type": "string", "description": "The kind of this object."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    })
}

/// A kind of v1beta1 is also served as the older v1alpha1, with the same schema, for manifests that still use it.
fn with_older_version(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let kind = &crd.spec.names.kind;
    let alpha: Vec<_> = crd
        .spec
        .versions
        .iter()
        .filter(|version| version.name == "v1beta1")
        .map(|beta| CustomResourceDefinitionVersion {
            name: "v1alpha1".into(),
            storage: false,
            deprecated: Some(true),
            deprecation_warning: Some(format!(
                "{}/v1alpha1 {kind} is deprecated; write apiVersion: {}/v1beta1, nothing else changes",
                crate::GROUP,
                crate::GROUP,
            )),
            ..beta.clone()
        })
        .collect();
    crd.spec.versions.splice(..0, alpha);
    crd
}

/// Kubernetes keeps bounds as floating-point numbers, and so do its Rust types.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|f| number.is_f64() && f.fract() == 0.0) {
                // In range: the bounds of the API are those of its integers.
                #[allow(clippy::cast_possible_truncation)]
                let whole = float as i64;
                *value = whole.into();
            }
        }
        _ => {}
    }
}
