//! The events of the cluster that are about shown objects, or about what was created for them.
//!
//! Whose they are is decided by UIDs, and within the namespace of the event alone: those who may write events can name any UID in
//! them. Events often come before what they are about is known, so they wait for that.

use std::{collections::VecDeque, pin::pin};

use futures::{StreamExt, future::join_all};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use skep_api::GROUP;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

use crate::{Key, Objects, limits, objects::Event};

/// What servers consist of. Events about other kinds are never theirs.
const PARTS: [&str; 5] = ["Deployment", "Pod", "ReplicaSet", "Service", "StatefulSet"];

/// Adds events as they come, for ever.
pub(super) async fn follow(client: &Client, scopes: &[Option<String>], objects: &Objects) {
    join_all(scopes.iter().map(|scope| follow_scope(client.clone(), scope.as_deref(), objects))).await;
}

async fn follow_scope(client: Client, namespace: Option<&str>, objects: &Objects) {
    let api: Api<v1::Event> = match namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
    let mut unclaimed = Unclaimed::default();
    let mut ticks = interval(limits::CLAIM_TIME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => unclaimed.add(Reported::of(&event), objects),
                Some(Err(error)) => warn!(%error, "failed to watch events"),
                None => return,
            },
            _ = ticks.tick() => unclaimed.claim(objects),
        }
    }
}

/// An event, and what it is about.
struct Reported {
    /// What it is about, if that is an object of the API.
    key: Key,
    uid: String,
    event: Event,
}

impl Reported {
    fn of(event: &v1::Event) -> Option<Self> {
        let about = &event.involved_object;
        let (kind, name, uid) = (about.kind.as_ref()?, about.name.as_ref()?, about.uid.as_ref()?);
        let group = about.api_version.as_deref().and_then(|version| version.split('/').next());
        if group != Some(GROUP) && !PARTS.contains(&kind.as_str()) {
            return None;
        }
        let time = event.last_timestamp.as_ref().map(|time| time.0);
        let time = time.or_else(|| event.event_time.as_ref().map(|time| time.0));
        let count = event.count.or_else(|| event.series.as_ref()?.count).unwrap_or(1);
        let shown = Event {
            time: time.unwrap_or_else(Timestamp::now),
            type_: if event.type_.as_deref() == Some("Warning") { "Warning" } else { "Normal" },
            reason: event.reason.clone().unwrap_or_default(),
            message: event.message.clone().unwrap_or_default(),
            object: format!("{kind} {name}"),
            count: u32::try_from(count).unwrap_or(1),
            is_of_cluster: true,
        };
        let key = Key::new(kind, &event.namespace().unwrap_or_default(), name);
        Some(Self { key, uid: uid.clone(), event: shown })
    }

    /// The object that it is about, if that is known.
    fn owner(&self, objects: &Objects) -> Option<Key> {
        let is_own = |key: &Key| {
            objects.find(key).is_some_and(|object| object.manifest["metadata"]["uid"] == self.uid.as_str())
        };
        if is_own(&self.key) {
            return Some(self.key.clone());
        }
        let owner = objects.owner_of(&self.uid)?;
        (owner.namespace == self.key.namespace && objects.find(&owner).is_some()).then_some(owner)
    }
}

/// Events of which it is not known whose they are, oldest first.
#[derive(Default)]
struct Unclaimed {
    events: VecDeque<Reported>,
    /// What was known when that was last looked up.
    known: u64,
}

impl Unclaimed {
    /// Adds an event to its object, or to those that wait.
    fn add(&mut self, reported: Option<Reported>, objects: &Objects) {
        let Some(reported) = reported else { return };
        match reported.owner(objects) {
            Some(owner) => objects.add_event(&owner, reported.event),
            None => {
                self.events.push_back(reported);
                if self.events.len() > limits::UNCLAIMED {
                    self.events.pop_front();
                }
            }
        }
    }

    /// Adds those whose objects have become known.
    fn claim(&mut self, objects: &Objects) {
        let known = objects.known();
        if std::mem::replace(&mut self.known, known) == known {
            return;
        }
        self.events.retain(|reported| match reported.owner(objects) {
            Some(owner) => {
                objects.add_event(&owner, reported.event.clone());
                false
            }
            None => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::objects::Owner;

    fn event(namespace: &str, kind: &str, name: &str, uid: Value) -> Option<Reported> {
        let event = json!({
            "metadata": {"namespace": namespace}, "message": format!("about {name}"),
            "involvedObject": {"kind": kind, "namespace": namespace, "name": name, "uid": uid},
        });
        Reported::of(&serde_json::from_value(event).unwrap())
    }

    fn server(name: &str, uid: &str) -> Value {
        json!({"kind": "MCPServer", "metadata": {"name": name, "namespace": "n", "uid": uid}})
    }

    fn messages(objects: &Objects, name: &str) -> Vec<String> {
        let object = objects.find(&Key::new("MCPServer", "n", name)).unwrap();
        let events = object.events.iter().filter(|event| event.is_of_cluster);
        events.map(|event| event.message.clone()).collect()
    }

    #[test]
    fn events_belong_to_a_server_by_uid_and_never_by_name() {
        let objects = Objects::default();
        objects.apply(server("web", "u-web"));
        objects.add_owner("u-set", Owner::Object(Key::new("MCPServer", "n", "web")));
        objects.add_owner("u-pod", Owner::Uid("u-set".into()));
        let mut unclaimed = Unclaimed::default();
        for reported in [
            event("n", "Pod", "web-0", json!("u-pod")),
            // Another pod whose name begins alike, the same pod in an event of another namespace, and one without UID.
            event("n", "Pod", "web-db-0", json!("u-other")),
            event("evil", "Pod", "web-1", json!("u-pod")),
            event("n", "Pod", "web-2", Value::Null),
        ] {
            unclaimed.add(reported, &objects);
        }
        unclaimed.claim(&objects);
        assert_eq!(messages(&objects, "web"), ["about web-0"]);
    }

    #[test]
    fn an_event_waits_until_its_object_is_known_and_one_of_a_former_object_of_that_name_is_not_shown() {
        let objects = Objects::default();
        let mut unclaimed = Unclaimed::default();
        unclaimed.add(event("n", "Pod", "web-0", json!("u-pod")), &objects);
        for uid in ["u-web", "u-former"] {
            let event = json!({
                "metadata": {"namespace": "n"}, "message": uid,
                "involvedObject": {"apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer", "name": "web", "uid": uid},
            });
            unclaimed.add(Reported::of(&serde_json::from_value(event).unwrap()), &objects);
        }
        objects.apply(server("web", "u-web"));
        unclaimed.claim(&objects);
        assert_eq!(messages(&objects, "web"), ["u-web"]);
        objects.add_owner("u-pod", Owner::Object(Key::new("MCPServer", "n", "web")));
        unclaimed.claim(&objects);
        let mut all = messages(&objects, "web");
        all.sort();
        assert_eq!(all, ["about web-0", "u-web"]);
    }

    #[test]
    fn a_cluster_full_of_other_events_costs_a_bounded_part_of_memory() {
        let objects = Objects::default();
        let mut unclaimed = Unclaimed::default();
        for number in 0..limits::UNCLAIMED + 5 {
            unclaimed.add(event("n", "Pod", "other", json!(number.to_string())), &objects);
        }
        assert_eq!(unclaimed.events.len(), limits::UNCLAIMED);
        assert!(event("n", "Node", "node", json!("u")).is_none());
    }
}
