//! Custom resources, as the operator caches them.

use std::{borrow::Cow, marker::PhantomData, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_api::kinds::ApiKind;
use skep_config::FieldError;
use skep_converge::{Kind, Observed};
use skep_world::Watched;

use super::{manager_of, referrers::reference_keys};

/// A kind of the API, as it is watched.
pub struct Custom<K>(PhantomData<fn() -> K>);

impl<K> Default for Custom<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// A custom resource, typed if it can be parsed.
#[derive(Debug, PartialEq)]
pub struct CustomObject<K> {
    /// The object, or why it cannot be parsed. Its resourceVersion is left to the entry.
    pub object: Result<Arc<K>, FieldError>,
    /// The metadata of an object that cannot be parsed, for its deletion.
    pub unreadable: Option<Arc<ObjectMeta>>,
    /// The fields that its controller owns.
    pub observed: Observed,
    /// The objects that it refers to, as index keys.
    references: Vec<String>,
}

// Not derived: that would require K: Clone.
impl<K> Clone for CustomObject<K> {
    fn clone(&self) -> Self {
        let Self { object, unreadable, observed, references } = self;
        let (object, unreadable) = (object.clone(), unreadable.clone());
        Self { object, unreadable, observed: observed.clone(), references: references.clone() }
    }
}

impl<K: ApiKind> Watched for Custom<K> {
    type Cached = CustomObject<K>;

    fn kind() -> Kind {
        kind_of::<K>()
    }

    fn project(object: &DynamicObject) -> CustomObject<K> {
        // An object may be stored without a spec; the parser then names what its kind requires.
        let spec = object.data.get("spec").cloned().unwrap_or_else(|| json!({}));
        let references = reference_keys(&spec);
        let parsed = parse(object, spec);
        CustomObject {
            references,
            unreadable: parsed.is_err().then(|| Arc::new(metadata(object))),
            object: parsed,
            observed: Observed::of(object, &manager_of(object)),
        }
    }

    fn index(cached: &CustomObject<K>) -> Vec<String> {
        cached.references.clone()
    }
}

fn parse<K: ApiKind>(object: &DynamicObject, spec: Value) -> Result<Arc<K>, FieldError> {
    let metadata = metadata(object);
    let whole = json!({
        "apiVersion": object.types.as_ref().map(|types| &types.api_version),
        "kind": object.types.as_ref().map(|types| &types.kind),
        "metadata": metadata,
        "spec": spec,
        "status": object.data.get("status").map(without_report),
    });
    serde_path_to_error::deserialize(whole)
        .map(Arc::new)
        .map_err(|error| FieldError::new(error.path(), error.inner().to_string()))
}

/// The status without what a server offers, which no controller needs: with thousands of servers it would fill the memory.
fn without_report(status: &Value) -> Value {
    let mut status = status.clone();
    if let Some(fields) = status.as_object_mut() {
        fields.remove("server");
    }
    status
}

/// The metadata without what every write changes.
fn metadata(object: &DynamicObject) -> ObjectMeta {
    ObjectMeta { managed_fields: None, resource_version: None, ..object.metadata.clone() }
}

/// The kind of a type of the API.
pub fn kind_of<K: ApiKind>() -> Kind {
    Kind {
        group: text(K::group(&())),
        version: text(K::version(&())),
        kind: text(K::kind(&())),
        plural: text(K::plural(&())),
    }
}

/// The derive macro returns literals.
fn text(text: Cow<'static, str>) -> &'static str {
    match text {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => text.leak(),
    }
}
