//! What others change in a server's objects is restored.
//!
//! The API server records who owns each field, and when each manager has last changed something itself. A field that was ours
//! after our apply and is not any more, although nobody has applied under our name since, was changed or removed by another
//! manager. An apply under our name is that of another proxy of the server: unless it has applied the same, it keeps the objects
//! from then on, because two proxies must not undo each other's work. (Times are in seconds: two that apply within one, and own the
//! same fields, are not told apart.)
//!
//! The number of replicas is left to whoever sets it: it is not what runs.

use std::{collections::HashMap, future::pending, pin::Pin};

use futures::{Stream, StreamExt};
use k8s_openapi::{
    api::{apps::v1::StatefulSet, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, Time},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use skep_config::{labels, objects::PROXY_FIELD_MANAGER};
use tokio::{sync::watch, time::Instant};
use tracing::{info, warn};

use super::{
    RuntimeError,
    apply::{self, Applied, Objects, Outcome},
};
use crate::limits;

/// Keeps the objects of a server as this proxy has applied them.
pub(super) struct Keeper {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) objects: Objects,
}

/// An object as it was after our apply.
#[derive(Clone, Debug, PartialEq)]
struct Mark {
    uid: Option<String>,
    version: u64,
    /// When our manager has changed something in it.
    time: Option<Time>,
    /// What it owned then, without the number of replicas.
    fields: Value,
    /// The spec, without the number of replicas.
    spec: Value,
}

/// What has happened to an object.
#[derive(Clone, Debug, PartialEq)]
enum Finding {
    /// Nothing that concerns us.
    Kept,
    /// Others have changed or removed what was ours; this one, if it is known who.
    Drift(String),
    /// Another proxy has applied something else.
    Superseded,
}

impl Mark {
    fn of<K: Resource + Serialize>(object: &K) -> Self {
        let metadata = object.meta();
        let ours = metadata.managed_fields.iter().flatten().find(|entry| is_ours(entry));
        let without_replicas = |mut value: Value, spec: &str, replicas: &str| {
            if let Some(spec) = value.get_mut(spec).and_then(Value::as_object_mut) {
                spec.remove(replicas);
            }
            value
        };
        let fields = ours.and_then(|ours| ours.fields_v1.clone()).unwrap_or_default().0;
        let spec = json!({"spec": json!(object)["spec"]});
        Self {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.as_ref().and_then(|version| version.parse().ok()).unwrap_or(0),
            time: ours.and_then(|ours| ours.time.clone()),
            fields: without_replicas(fields, "f:spec", "f:replicas"),
            spec: without_replicas(spec, "spec", "replicas"),
        }
    }

    /// Compares the live object with it, and remembers a later apply of the same.
    fn compare<K: Resource + Serialize>(&mut self, live: &K) -> Finding {
        let now = Self::of(live);
        if now.uid == self.uid && now.version <= self.version {
            // An event about a state before our apply.
            return Finding::Kept;
        }
        let is_same = now.fields == self.fields;
        if is_same && (now.time == self.time || now.spec == self.spec) && now.uid == self.uid {
            *self = now;
            return Finding::Kept;
        }
        let is_applied_again = now.time != self.time || !is_within(&now.fields, &self.fields);
        if is_applied_again && now.time.is_some() {
            Finding::Superseded
        } else {
            Finding::Drift(last_writer(live.meta()))
        }
    }
}

fn is_ours(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(PROXY_FIELD_MANAGER)
        && entry.operation.as_deref() == Some("Apply")
        && entry.subresource.as_deref().is_none_or(str::is_empty)
}

/// Whether each field of a set is in the other. Sets nest as deep as the API's objects do.
fn is_within(set: &Value, all: &Value) -> bool {
    let mut pairs = vec![(set, all)];
    while let Some((set, all)) = pairs.pop() {
        for (key, below) in set.as_object().into_iter().flatten() {
            let Some(other) = all.get(key) else { return false };
            pairs.push((below, other));
        }
    }
    true
}

/// The manager that has written last, but for statuses and ourselves.
fn last_writer(metadata: &ObjectMeta) -> String {
    let others = metadata
        .managed_fields
        .iter()
        .flatten()
        .filter(|entry| !is_ours(entry) && entry.subresource.as_deref().is_none_or(str::is_empty));
    let last = others.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    last.and_then(|entry| entry.manager.clone()).unwrap_or_else(|| "another client".into())
}

type Events = Pin<Box<dyn Stream<Item = Result<Event<Service>, watcher::Error>> + Send>>;

impl Keeper {
    /// Restores the objects until the server is deleted, another proxy keeps them, or nobody follows the server any more.
    pub(super) async fn keep(self, applied: Applied, mut sets: watch::Receiver<StatefulSet>) {
        let mut marks = Marks::of(&applied);
        drop(applied);
        let mut services = self.services();
        let mut pace = Pace::default();
        loop {
            let finding = tokio::select! {
                changed = sets.changed() => match changed {
                    Ok(()) => marks.set.compare(&*sets.borrow_and_update()),
                    Err(_) => return,
                },
                event = next(&mut services) => marks.of_service(event),
            };
            let writer = match finding {
                Finding::Kept => continue,
                Finding::Superseded => {
                    info!("another proxy has applied the server; it keeps its objects from now on");
                    return;
                }
                Finding::Drift(writer) => writer,
            };
            let restored = tokio::select! {
                restored = self.restore(&marks, &mut pace) => restored,
                // Nobody follows the server any more.
                () = closed(&sets) => return,
            };
            match restored {
                Some(applied) => {
                    warn!(by = writer, "objects of the server were changed, and are restored");
                    marks = Marks::of(&applied);
                }
                None => return,
            }
        }
    }

    /// The Services of the server, by its labels. A stdio server has none.
    fn services(&self) -> Option<Events> {
        let name = self.objects.stateful_set.name_any();
        let api = Api::<Service>::namespaced(self.client.clone(), &self.namespace);
        let selector = format!("{}={},{}={name}", labels::TOOLHIVE, labels::TRUE, labels::APP);
        let config = watcher::Config::default().labels(&selector);
        (!self.objects.services.is_empty()).then(|| watcher(api, config).default_backoff().boxed())
    }

    /// Applies everything again, until it succeeds. `None` if it is not ours to restore any more.
    async fn restore(&self, marks: &Marks, pace: &mut Pace) -> Option<Applied> {
        loop {
            pace.wait().await;
            let uid = marks.set.uid.as_deref();
            match apply::apply(&self.client, &self.namespace, &self.objects, uid).await {
                Ok(applied) => {
                    return (!matches!(applied.outcome, Outcome::HeldBack(_))).then_some(applied);
                }
                Err(RuntimeError::Gone) => return None,
                Err(error) => warn!(%error, "cannot restore the objects of the server; retrying"),
            }
        }
    }
}

/// Completes when there will be no further state.
async fn closed(sets: &watch::Receiver<StatefulSet>) {
    let mut sets = sets.clone();
    while sets.changed().await.is_ok() {}
}

async fn next(services: &mut Option<Events>) -> Event<Service> {
    let Some(services) = services else { return pending().await };
    loop {
        match services.next().await {
            Some(Ok(event)) => return event,
            Some(Err(error)) => warn!(%error, "failed to watch the Services of the server; retrying"),
            None => return pending().await,
        }
    }
}

/// All objects after our apply.
struct Marks {
    set: Mark,
    services: HashMap<String, Mark>,
    /// The Services that a list has not shown yet.
    unlisted: Vec<String>,
}

impl Marks {
    fn of(applied: &Applied) -> Self {
        let services = applied.services.iter().map(|service| (service.name_any(), Mark::of(service)));
        let set = Mark::of(applied.outcome.stateful_set());
        Self { set, services: services.collect(), unlisted: Vec::new() }
    }

    fn of_service(&mut self, event: Event<Service>) -> Finding {
        match event {
            Event::Init => self.unlisted = self.services.keys().cloned().collect(),
            Event::InitApply(live) | Event::Apply(live) => {
                let name = live.name_any();
                self.unlisted.retain(|unlisted| *unlisted != name);
                if let Some(mark) = self.services.get_mut(&name) {
                    return mark.compare(&live);
                }
            }
            // With our labels, others are in the selection as well.
            Event::Delete(gone) => {
                let mark = self.services.get(&gone.name_any());
                if mark.is_some_and(|mark| mark.uid == gone.uid()) {
                    return Finding::Drift(last_writer(gone.meta()));
                }
            }
            Event::InitDone => {
                if !std::mem::take(&mut self.unlisted).is_empty() {
                    return Finding::Drift("another client".into());
                }
            }
        }
        Finding::Kept
    }
}

/// How fast objects are restored: at once, and less and less often while they are changed again and again.
#[derive(Default)]
struct Pace {
    last: Option<Instant>,
    pause: std::time::Duration,
}

impl Pace {
    async fn wait(&mut self) {
        let is_calm = self.last.is_none_or(|last| last.elapsed() > limits::KEEP_CALM);
        self.pause = match is_calm {
            true => std::time::Duration::ZERO,
            false => (self.pause * 2).clamp(limits::KEEP_PAUSE_LEAST, limits::KEEP_PAUSE_MOST),
        };
        tokio::time::sleep(self.pause).await;
        self.last = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(version: u32, seconds: u32, fields: Value, replicas: u32, image: &str) -> StatefulSet {
        let entry = |manager: &str, operation: &str, seconds: u32, fields: Value| {
            json!({
                "manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": fields}, "time": format!("2026-01-01T00:00:{seconds:02}Z"),
            })
        };
        let fields = [
            entry(PROXY_FIELD_MANAGER, "Apply", seconds, fields),
            entry("kubectl-edit", "Update", 30, json!({"f:x": {}})),
        ];
        let metadata = json!({"name": "files", "uid": "u", "resourceVersion": version.to_string(), "managedFields": fields});
        let template = json!({"spec": {"containers": [{"name": "mcp", "image": image}]}});
        let spec = json!({"replicas": replicas, "selector": {}, "template": template});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    #[test]
    fn what_others_change_is_drift_and_what_another_proxy_applies_is_not() {
        let ours = || json!({"f:template": {"f:image": {}, "f:args": {}}, "f:replicas": {}});
        let applied = live(7, 10, ours(), 1, "a");
        let found = |live: StatefulSet| Mark::of(&applied).compare(&live);
        let drift = Finding::Drift("kubectl-edit".into());
        let without_image = || json!({"f:template": {"f:args": {}}, "f:replicas": {}});
        assert_eq!(found(live(8, 10, without_image(), 1, "evil")), drift);
        assert_eq!(found(live(6, 10, without_image(), 1, "evil")), Finding::Kept, "it was before our apply");
        let scaled = json!({"f:template": {"f:image": {}, "f:args": {}}});
        assert_eq!(found(live(8, 10, scaled, 3, "a")), Finding::Kept, "replicas have other owners");
        // Applied by another proxy: the same, other values, other fields, and those in the same second.
        assert_eq!(found(live(8, 11, ours(), 1, "a")), Finding::Kept);
        assert_eq!(found(live(8, 11, ours(), 1, "b")), Finding::Superseded);
        assert_eq!(found(live(8, 11, without_image(), 1, "a")), Finding::Superseded);
        let more = json!({"f:template": {"f:image": {}, "f:env": {}}});
        assert_eq!(found(live(8, 10, more, 1, "a")), Finding::Superseded);
        // After one that has applied the same, all is compared with that.
        let mut mark = Mark::of(&applied);
        mark.compare(&live(8, 11, ours(), 1, "a"));
        assert_eq!(mark.compare(&live(9, 11, without_image(), 1, "evil")), drift);
    }

    #[tokio::test(start_paused = true)]
    async fn objects_are_restored_at_once_and_then_less_and_less_often() {
        let mut pace = Pace::default();
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let start = Instant::now();
            pace.wait().await;
            pauses.push(start.elapsed().as_secs());
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 30, 30]);
        tokio::time::advance(limits::KEEP_CALM * 2).await;
        let start = Instant::now();
        pace.wait().await;
        assert_eq!(start.elapsed().as_secs(), 0);
    }
}
