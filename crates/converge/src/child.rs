//! Desired objects.

use k8s_openapi::{Metadata, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Serialize;
use serde_json::{Value, json};

use kube::core::DynamicObject;

use crate::{
    Digest, Error, Kind, Result,
    canonical::canonical,
    documents::{self, parsed, with_live_layout},
    fields::cut,
};

/// A desired object, with the fields that the controller owns and no others.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The kind of the object.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What is applied.
    body: Value,
    /// The digest of the fields that are owned once it is applied.
    digest: Digest,
    /// The key of a Secret whose value is random.
    random_key: Option<&'static str>,
    /// The fields that others report, as a set of managed fields. They are never taken over.
    of_others: Value,
}

impl Child {
    /// The object as a child. It must have a name and a namespace.
    pub fn new<K>(object: &K) -> Result<Self>
    where
        K: k8s_openapi::Resource + Metadata<Ty = ObjectMeta> + Serialize,
    {
        let body = serde_json::to_value(object).map_err(|error| Error::Malformed(K::KIND, error))?;
        let metadata = object.metadata();
        let name = metadata.name.clone().unwrap_or_default();
        let namespace = metadata.namespace.clone().unwrap_or_default();
        Ok(Self::from_value(Kind::of::<K>(), namespace, name, body))
    }

    /// A Secret with a random value under this key. It is created if it does not exist, and never changed: a random
    /// value cannot be compared, and a new value would be a different secret.
    pub fn random_secret(secret: &Secret, key: &'static str) -> Result<Self> {
        Ok(Self { random_key: Some(key), ..Self::new(secret)? })
    }

    /// The fields `body` of an object of one of Kubernetes' own kinds. Its type and name are added.
    pub fn from_value(kind: Kind, namespace: String, name: String, body: Value) -> Self {
        Self::exactly(kind, namespace, name, canonical(body))
    }

    /// The status of a custom resource. The API server returns it as it was written.
    pub fn status(kind: Kind, namespace: String, name: String, status: Value) -> Self {
        Self::exactly(kind, namespace, name, json!({"status": status}))
    }

    /// The same status. The status fields `of_others`, a set of managed fields, are never taken over.
    #[must_use]
    pub fn sparing(self, of_others: &Value) -> Self {
        // An empty set would be a leaf: the whole status.
        let is_empty = of_others.as_object().is_none_or(serde_json::Map::is_empty);
        Self { of_others: if is_empty { Value::Null } else { json!({"f:status": of_others}) }, ..self }
    }

    fn exactly(kind: Kind, namespace: String, name: String, mut body: Value) -> Self {
        let mut fields = body.clone();
        strip_identity(&mut fields);
        let digest = Digest::of(&parsed(fields));
        body["apiVersion"] = json!(kind.api_version());
        body["kind"] = json!(kind.kind);
        body["metadata"]["name"] = json!(name);
        body["metadata"]["namespace"] = json!(namespace);
        Self { kind, namespace, name, body, digest, random_key: None, of_others: Value::Null }
    }

    /// What is applied: the whole object with the fields that the controller owns.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The key whose value is random, if the object is only ever created.
    pub(crate) fn random_key(&self) -> Option<&'static str> {
        self.random_key
    }

    /// The same child without these fields.
    pub(crate) fn without(&self, fields: &Value) -> Self {
        let mut body = self.body.clone();
        cut(&mut body, fields);
        let Self { kind, namespace, name, random_key, of_others, .. } = self.clone();
        Self { random_key, of_others, ..Self::exactly(kind, namespace, name, body) }
    }

    /// The same child, to be applied to this version of the object alone.
    pub(crate) fn at_version(&self, version: &str) -> Self {
        let mut child = self.clone();
        child.body["metadata"]["resourceVersion"] = json!(version);
        child
    }

    /// Whether nothing but its owner is applied, as for a ServiceAccount. Once another program has removed the owner, nothing in the
    /// object shows that it was ours.
    pub fn is_bare(&self) -> bool {
        let mut fields = self.body.clone();
        strip_identity(&mut fields);
        let metadata = fields.get("metadata").and_then(Value::as_object);
        let has_only_owner = metadata.is_some_and(|metadata| metadata.keys().eq(["ownerReferences"]));
        has_only_owner && fields.as_object().is_some_and(|fields| fields.len() == 1)
    }

    /// Whether it runs pods, which a change of their template replaces.
    pub fn runs_pods(&self) -> bool {
        self.kind.runs_pods()
    }

    /// Whether it is a ConfigMap with the configuration of pods.
    pub fn configures_pods(&self) -> bool {
        self.documents().is_some()
    }

    /// The fields that others report.
    pub(crate) fn of_others(&self) -> &Value {
        &self.of_others
    }

    /// The digest of its documents, in any layout: see [`crate::documents`].
    pub(crate) fn documents(&self) -> Option<Digest> {
        documents::digest(&self.body)
    }

    /// The same child, with the live texts of documents whose values stay.
    pub(crate) fn with_live_layout(&self, live: &DynamicObject) -> Self {
        Self { body: with_live_layout(self.body.clone(), &live.data), ..self.clone() }
    }

    /// The digest of the owned fields.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// The type and name of an object are not owned by any field manager.
fn strip_identity(fields: &mut Value) {
    let Value::Object(map) = fields else { return };
    map.remove("apiVersion");
    map.remove("kind");
    if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
        metadata.remove("name");
        metadata.remove("namespace");
        if metadata.is_empty() {
            map.remove("metadata");
        }
    }
}
