//! Custom resources, as the operator caches them.

use std::{borrow::Cow, marker::PhantomData, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, object::HasStatus};
use serde_json::{Value, json};
use skep_api::kinds::ApiKind;
use skep_config::FieldError;
use skep_converge::{Kind, Observed};
use skep_world::Watched;

use super::{field_manager, referrers::reference_keys};

/// A kind of the API, as it is watched.
pub struct Custom<K>(PhantomData<fn() -> K>);

impl<K> Default for Custom<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

type Status<K> = <K as HasStatus>::Status;

/// A custom resource, typed if it can be parsed.
pub struct CustomObject<K: ApiKind> {
    /// The object, or why it cannot be parsed. Its resourceVersion is left to the entry, and its status has only what others use
    /// of it: see [`CustomObject::with_status`].
    pub object: Result<Arc<K>, FieldError>,
    /// The status.
    status: Option<Arc<Status<K>>>,
    /// The metadata of an object that cannot be parsed, for its deletion.
    pub unreadable: Option<Arc<ObjectMeta>>,
    /// The fields that its controller owns.
    pub observed: Observed,
    /// The objects that it refers to, as index keys.
    references: Vec<String>,
}

// Not derived: that would require a status that has these traits, which the compiler does not look up.
impl<K: ApiKind> Clone for CustomObject<K> {
    fn clone(&self) -> Self {
        let Self { object, status, unreadable, observed, references } = self;
        let (object, status, unreadable) = (object.clone(), status.clone(), unreadable.clone());
        Self { object, status, unreadable, observed: observed.clone(), references: references.clone() }
    }
}

impl<K: ApiKind> PartialEq for CustomObject<K> {
    fn eq(&self, other: &Self) -> bool {
        let Self { object, status, unreadable, observed, references } = self;
        (object, status, unreadable) == (&other.object, &other.status, &other.unreadable)
            && (observed, references) == (&other.observed, &other.references)
    }
}

impl<K: ApiKind> CustomObject<K> {
    /// The object with its whole status, for its own controller.
    pub fn with_status(&self) -> Result<Arc<K>, FieldError> {
        let mut object = self.object.clone()?;
        *Arc::make_mut(&mut object).status_mut() = self.status.as_deref().cloned();
        Ok(object)
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
        let (parsed, status) = match parse(object, spec) {
            Ok((object, status)) => (Ok(object), status),
            Err(error) => (Err(error), None),
        };
        CustomObject {
            references,
            status,
            unreadable: parsed.is_err().then(|| Arc::new(metadata(object))),
            object: parsed,
            observed: Observed::of(object, &field_manager::<K>()),
        }
    }

    fn shared(cached: &CustomObject<K>) -> impl PartialEq + '_ {
        let object = cached.object.as_ref();
        object.map(|object| (object.spec(), object.status(), object.meta().deletion_timestamp.is_some()))
    }

    fn index(cached: &CustomObject<K>) -> Vec<String> {
        cached.references.clone()
    }
}

/// The object, in whose status is only what others use of it, and the whole status.
#[allow(clippy::type_complexity, reason = "it is used once")]
fn parse<K: ApiKind>(
    object: &DynamicObject,
    spec: Value,
) -> Result<(Arc<K>, Option<Arc<Status<K>>>), FieldError> {
    let metadata = metadata(object);
    let status = object.data.get("status").filter(|status| !status.is_null());
    let whole = json!({
        "apiVersion": object.types.as_ref().map(|types| &types.api_version),
        "kind": object.types.as_ref().map(|types| &types.kind),
        "metadata": metadata,
        "spec": spec,
        "status": status.map(shared_status),
    });
    let object = serde_path_to_error::deserialize(whole)
        .map_err(|error| FieldError::new(error.path(), error.inner().to_string()))?;
    let status = status.map(|status| serde_path_to_error::deserialize(without_report(status))).transpose();
    let status =
        status.map_err(|error| FieldError::new(error.path(), error.inner().to_string()).within("status"))?;
    Ok((Arc::new(object), status.map(Arc::new)))
}

/// What those who refer to an object use of its status.
fn shared_status(status: &Value) -> Value {
    json!({"phase": status["phase"], "readyReplicas": status["readyReplicas"]})
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

#[cfg(test)]
mod tests {
    use skep_api::kinds::{MCPServer, MCPServerPhase};
    use skep_config::objects::PROXY_STATUS_MANAGER;

    use super::*;

    fn entry(manager: &str, fields: &Value) -> Value {
        json!({
            "manager": manager, "operation": "Apply", "subresource": "status", "fieldsType": "FieldsV1",
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "fieldsV1": {"f:status": fields},
        })
    }

    fn server(managers: &[Value], status: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
            "metadata": {"name": "fetch", "namespace": "team", "uid": "u", "managedFields": managers},
            "spec": {"image": "i"}, "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    /// The API server lists the manager that wrote first before the others.
    #[test]
    fn the_fields_of_the_operator_are_known_whoever_has_written_before_it() {
        let status = json!({"phase": "Ready", "server": {"name": "x"}});
        let proxy = entry(PROXY_STATUS_MANAGER, &json!({"f:server": {}}));
        let operator = entry("skep-mcpserver", &json!({"f:phase": {}}));
        let owned = |managers: &[Value]| {
            Custom::<MCPServer>::project(&server(managers, &status)).observed.owned_status
        };
        let alone = owned(std::slice::from_ref(&operator));
        assert!(alone.is_some());
        assert_eq!(owned(&[proxy.clone(), operator.clone()]), alone);
        assert_eq!(owned(&[operator, proxy.clone()]), alone);
        assert_eq!(owned(&[proxy]), None);
    }

    #[test]
    fn readers_see_the_phase_and_its_own_controller_sees_the_whole_status() {
        let status = |message: &str, phase: &str| json!({"message": message, "phase": phase});
        let project = |status: &Value| Custom::<MCPServer>::project(&server(&[], status));
        let (one, other) = (project(&status("a", "Pending")), project(&status("b", "Pending")));
        assert!(one != other);
        assert!(Custom::shared(&one) == Custom::shared(&other), "only the message differs");
        let ready = project(&status("a", "Ready"));
        assert!(Custom::shared(&one) != Custom::shared(&ready));
        let whole = one.with_status().unwrap().status.clone().unwrap();
        assert_eq!(whole.message.as_deref(), Some("a"));
        let seen = one.object.unwrap().status.clone().unwrap();
        assert_eq!((seen.phase, seen.message), (Some(MCPServerPhase::Pending), None));
    }
}
