//! The state in which writes have left the objects of a namespace.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{Event, log::Log};
use crate::Namespace;

/// The last write to an object.
#[derive(Clone, Debug)]
pub struct LastWrite {
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource in plural, for example `deployments`.
    pub resource: String,
    /// The object's metadata after the write. Of a deleted object, at least its name and uid.
    pub metadata: ObjectMeta,
    /// Whether the object has been deleted.
    pub deleted: bool,
}

/// The last write to each object of some namespaces, by any user, since the log was opened.
pub struct LastWrites {
    log: Log,
    namespaces: BTreeSet<String>,
    /// By group, resource, namespace and name.
    last: BTreeMap<[String; 4], LastWrite>,
}

impl LastWrites {
    /// The writes from now on. The namespaces are of one control plane.
    pub fn start(namespaces: &[&Namespace]) -> Self {
        let first = namespaces.first().expect("a namespace");
        let log = Log::start(first.folder());
        let namespaces = namespaces.iter().map(|namespace| namespace.name().into()).collect();
        Self { log, namespaces, last: BTreeMap::new() }
    }

    /// The last write to each object until now.
    pub async fn read(&mut self) -> impl Iterator<Item = &LastWrite> {
        let writes = self.log.take_lines().await.into_iter().filter(|line| !line.contains(r#""verb":"get""#));
        for write in writes.filter_map(|line| write(serde_json::from_str(&line).ok()?)) {
            if write.metadata.namespace.as_ref().is_some_and(|name| self.namespaces.contains(name)) {
                self.add(write);
            }
        }
        self.last.values()
    }

    /// Requests that run at the same time may be logged in any order.
    fn add(&mut self, write: LastWrite) {
        let ObjectMeta { namespace, name, .. } = write.metadata.clone();
        let names = (namespace.unwrap_or_default(), name.unwrap_or_default());
        let key = [write.group.clone(), write.resource.clone(), names.0, names.1];
        let is_outdated = self.last.get(&key).is_some_and(|last| {
            let same = last.metadata.uid == write.metadata.uid;
            if same {
                last.deleted || (!write.deleted && revision(last) > revision(&write))
            } else {
                write.deleted
            }
        });
        if !is_outdated {
            self.last.insert(key, write);
        }
    }
}

fn revision(write: &LastWrite) -> u64 {
    write.metadata.resource_version.as_ref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// The write of an event, if the event is one that changed an object.
fn write(event: Event) -> Option<LastWrite> {
    let object = event.object();
    let done = event.response_status.as_ref().and_then(|status| status.code).is_some_and(|code| code < 300);
    let whole = matches!(object.subresource.as_str(), "" | "status");
    if !done || !whole || !event.changes_objects() {
        return None;
    }
    let response = event.response_object?;
    let metadata = if response["kind"] == "Status" {
        // The response to the deletion of an object that is removed at once.
        ObjectMeta {
            name: Some(object.name),
            namespace: Some(object.namespace),
            uid: response["details"]["uid"].as_str().map(Into::into),
            ..ObjectMeta::default()
        }
    } else {
        serde_json::from_value(response["metadata"].clone()).ok()?
    };
    let deleted = match event.verb.as_str() {
        "delete" => metadata.deletion_timestamp.is_none() || is_deleted(&metadata),
        // The removal of the last finalizer.
        _ => metadata.deletion_timestamp.is_some() && is_deleted(&metadata),
    };
    Some(LastWrite { group: object.api_group, resource: object.resource, metadata, deleted })
}

/// Whether nothing keeps an object that is being deleted.
fn is_deleted(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
        && metadata.deletion_grace_period_seconds.unwrap_or_default() == 0
}

impl Event {
    fn changes_objects(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete")
            && self.stage == "ResponseComplete"
            && !self.uri.contains("dryRun=")
            && self.response_object.as_ref().is_some_and(Value::is_object)
    }
}
