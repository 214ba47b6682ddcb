//! The objects that the console shows.

mod configuration;
mod defaults;
mod detail;
mod key;
mod kinds;
mod lineage;
mod summary;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::{Restart, limits};
pub(crate) use detail::Detail;
pub use key::Key;
pub(crate) use kinds::{plural, resources};
use lineage::Lineage;
pub(crate) use lineage::Owner;
pub(crate) use summary::Summary;
pub use summary::tool_count;

/// An object, as it is now.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) key: Key,
    /// The object, as the API has it.
    pub(crate) manifest: Value,
    pub(crate) summary: Summary,
    /// What happened to it, newest first.
    pub(crate) events: VecDeque<Event>,
}

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) time: Timestamp,
    #[serde(rename = "type")]
    pub(crate) type_: &'static str,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) object: String,
    pub(crate) count: u32,
    /// Whether it is an event of the cluster, which has a right of its own, or only a change of the object itself.
    #[serde(skip)]
    pub(crate) is_of_cluster: bool,
}

/// An object that was created for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Child {
    pub(crate) kind: String,
    pub(crate) name: String,
    /// How it is, in words.
    pub(crate) state: String,
}

/// What was created for an object, by kind and name.
type Children = BTreeMap<(String, String), Child>;

/// What changed.
#[derive(Clone)]
pub(crate) enum Change {
    Applied(Arc<Object>),
    Deleted(Key),
}

/// All objects.
pub struct Objects {
    objects: RwLock<BTreeMap<Key, Arc<Object>>>,
    children: RwLock<BTreeMap<Key, Children>>,
    lineage: RwLock<Lineage>,
    /// Restarts, by the UID of the pod.
    restarts: RwLock<HashMap<String, Vec<Restart>>>,
    /// How often objects and owners became known.
    known: AtomicU64,
    changes: broadcast::Sender<Change>,
}

impl Default for Objects {
    fn default() -> Self {
        Self {
            objects: RwLock::default(),
            children: RwLock::default(),
            lineage: RwLock::default(),
            restarts: RwLock::default(),
            known: AtomicU64::default(),
            changes: broadcast::Sender::new(limits::BEHIND),
        }
    }
}

impl Objects {
    /// These objects, and no others.
    pub fn replace(&self, manifests: Vec<Value>) {
        let keys: BTreeSet<Key> = manifests.iter().filter_map(Key::of).collect();
        self.retain(|key| keys.contains(key));
        manifests.into_iter().for_each(|manifest| self.apply(manifest));
    }

    /// Whether a server has an authorization server.
    pub(crate) fn has_authorization_server(&self, object: &Object) -> bool {
        let spec = &object.manifest["spec"];
        let config = |reference: &str| {
            let name = spec[reference]["name"].as_str()?;
            self.find(&Key::new("MCPExternalAuthConfig", &object.key.namespace, name))
        };
        match object.key.kind.as_str() {
            "VirtualMCPServer" => spec["authServerConfig"].is_object(),
            "MCPServer" | "MCPRemoteProxy" => {
                let mut configs = ["authServerRef", "externalAuthConfigRef"].into_iter().filter_map(config);
                configs.any(|config| config.manifest["spec"]["type"] == "embeddedAuthServer")
            }
            _ => false,
        }
    }

    /// An object that is new or may have changed. One without kind or name is ignored.
    pub fn apply(&self, manifest: Value) {
        let Some(key) = Key::of(&manifest) else { return };
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let before = objects.get(&key);
        if before.is_some_and(|before| before.manifest == manifest) {
            return;
        }
        let object = Arc::new(Object::new(key.clone(), manifest, before.map(|before| &**before)));
        if objects.insert(key, object.clone()).is_none() {
            self.known.fetch_add(1, Ordering::Relaxed);
        }
        // While the lock is held, so that changes are sent in their order. There may be no receiver.
        self.changes.send(Change::Applied(object)).ok();
    }

    /// An object that does not exist any more.
    pub fn delete(&self, key: &Key) {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        self.children.write().unwrap_or_else(PoisonError::into_inner).remove(key);
        if objects.remove(key).is_some() {
            self.changes.send(Change::Deleted(key.clone())).ok();
        }
    }

    /// Deletes the others.
    pub(crate) fn retain(&self, is_kept: impl Fn(&Key) -> bool) {
        for object in self.all().iter().filter(|object| !is_kept(&object.key)) {
            self.delete(&object.key);
        }
    }

    /// Something that happened to this object, or to what was created for it. The same again replaces what is known of it.
    pub(crate) fn add_event(&self, key: &Key, event: Event) {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let Some(object) = objects.get_mut(key) else { return };
        let mut changed = Object::clone(object);
        let is_same = |other: &Event| {
            (&other.object, &other.reason, &other.message) == (&event.object, &event.reason, &event.message)
        };
        changed.events.retain(|other| !is_same(other));
        let place = changed.events.iter().position(|other| other.time <= event.time);
        changed.events.insert(place.unwrap_or(changed.events.len()), event);
        changed.events.truncate(limits::EVENTS);
        *object = Arc::new(changed);
        self.changes.send(Change::Applied(object.clone())).ok();
    }

    /// Something that was created for this object, and may be known already.
    pub(crate) fn add_child(&self, owner: &Key, child: Child) {
        let mut children = self.children.write().unwrap_or_else(PoisonError::into_inner);
        let of_owner = children.entry(owner.clone()).or_default();
        of_owner.insert((child.kind.clone(), child.name.clone()), child);
    }

    /// Something that does not exist any more.
    pub(crate) fn remove_child(&self, owner: &Key, kind: &str, name: &str) {
        let mut children = self.children.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_owner) = children.get_mut(owner) {
            of_owner.remove(&(kind.to_owned(), name.to_owned()));
        }
    }

    /// What was created for this object.
    pub(crate) fn children(&self, owner: &Key) -> Vec<Child> {
        let children = self.children.read().unwrap_or_else(PoisonError::into_inner);
        children.get(owner).into_iter().flat_map(|children| children.values().cloned()).collect()
    }

    /// Something that belongs to an object by its owner, and may be known already.
    pub(crate) fn add_owner(&self, uid: &str, owner: Owner) {
        self.lineage.write().unwrap_or_else(PoisonError::into_inner).add(uid, owner);
        self.known.fetch_add(1, Ordering::Relaxed);
    }

    /// The thing with this UID does not exist any more.
    pub(crate) fn end(&self, uid: &str) {
        self.lineage.write().unwrap_or_else(PoisonError::into_inner).end(uid);
        self.restarts.write().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// The object that the thing with this UID was created for.
    pub(crate) fn owner_of(&self, uid: &str) -> Option<Key> {
        self.lineage.read().unwrap_or_else(PoisonError::into_inner).object(uid).cloned()
    }

    /// A number that is another one after objects or owners became known.
    pub(crate) fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    /// The restarts of the pod with this UID.
    pub(crate) fn set_restarts(&self, pod: &str, mut now: Vec<Restart>) {
        for restart in &mut now {
            let last = restart.last_line();
            restart.message = last[..last.floor_char_boundary(limits::LAST_WORDS)].to_owned();
        }
        let mut restarts = self.restarts.write().unwrap_or_else(PoisonError::into_inner);
        match now.is_empty() {
            true => restarts.remove(pod),
            false => restarts.insert(pod.to_owned(), now),
        };
    }

    /// The restarts in the pods of this object, the last one first.
    pub(crate) fn restarts(&self, key: &Key) -> Vec<Restart> {
        let restarts = self.restarts.read().unwrap_or_else(PoisonError::into_inner);
        let lineage = self.lineage.read().unwrap_or_else(PoisonError::into_inner);
        let own = restarts.iter().filter(|(pod, _)| lineage.object(pod) == Some(key));
        let mut own: Vec<Restart> = own.flat_map(|(_, restarts)| restarts.clone()).collect();
        own.sort_by(|a, b| (&b.time, &a.pod, &a.container).cmp(&(&a.time, &b.pod, &b.container)));
        own.truncate(limits::RESTARTS);
        own
    }

    pub(crate) fn all(&self) -> Vec<Arc<Object>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Object>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }
}

impl Object {
    fn new(key: Key, manifest: Value, before: Option<&Self>) -> Self {
        let mut summary = Summary::new(&key, &manifest);
        let mut events = before.map(|before| before.events.clone()).unwrap_or_default();
        let state = |summary: &Summary| (summary.phase.clone(), summary.message.clone());
        if before.is_none_or(|before| state(&before.summary) != state(&summary)) {
            let event = Event::of_phase(&key, &summary, before.map(|before| &before.summary));
            events.push_front(event);
            events.truncate(limits::EVENTS);
        }
        let same_phase = before.filter(|before| before.summary.phase == summary.phase);
        if summary.since.is_none() {
            summary.since =
                Some(same_phase.and_then(|before| before.summary.since).unwrap_or_else(Timestamp::now));
        }
        Self { key, manifest, summary, events }
    }
}

impl Event {
    /// The event of a phase that is new.
    fn of_phase(key: &Key, now: &Summary, before: Option<&Summary>) -> Self {
        let from =
            before.map(|before| &before.phase).filter(|phase| **phase != now.phase && !phase.is_empty());
        let message = match (from, now.message.as_str()) {
            (Some(from), "") => format!("was {from} before"),
            (None, "") => String::new(),
            (_, message) => message.to_owned(),
        };
        Self {
            time: Timestamp::now(),
            type_: if now.phase == "Failed" { "Warning" } else { "Normal" },
            reason: if now.phase.is_empty() { "Created".to_owned() } else { now.phase.clone() },
            message,
            object: format!("{} {}", key.kind, key.name),
            count: 1,
            is_of_cluster: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn server(name: &str, phase: &str, message: &str) -> Value {
        json!({
            "kind": "MCPServer", "metadata": {"name": name, "namespace": "n"},
            "status": {"phase": phase, "message": message},
        })
    }

    #[test]
    fn a_change_is_sent_once_and_what_stays_is_not() {
        let objects = Objects::default();
        let mut changes = objects.changes();
        let mut news = move || {
            let mut seen = Vec::new();
            while let Ok(change) = changes.try_recv() {
                seen.push(match change {
                    Change::Applied(object) => format!("{} {}", object.key.name, object.summary.phase),
                    Change::Deleted(key) => format!("{} deleted", key.name),
                });
            }
            seen
        };
        objects.replace(vec![server("a", "Pending", ""), server("b", "Ready", "")]);
        assert_eq!(news(), ["a Pending", "b Ready"]);
        objects.replace(vec![server("a", "Ready", ""), server("b", "Ready", "")]);
        assert_eq!(news(), ["a Ready"]);
        objects.replace(vec![server("b", "Ready", "")]);
        assert_eq!(news(), ["a deleted"]);
        assert!(objects.find(&Key::new("MCPServer", "n", "a")).is_none());
    }

    #[test]
    fn events_have_each_phase_and_its_reason_within_a_limit() {
        let objects = Objects::default();
        let key = Key::new("MCPServer", "n", "a");
        objects.apply(server("a", "Pending", ""));
        objects.apply(server("a", "Ready", ""));
        objects.apply(server("a", "Failed", "it exits"));
        let events: Vec<_> = objects.find(&key).unwrap().events.iter().cloned().collect();
        let texts: Vec<_> =
            events.iter().map(|event| (event.type_, event.reason.as_str(), event.message.as_str())).collect();
        assert_eq!(
            texts,
            [
                ("Warning", "Failed", "it exits"),
                ("Normal", "Ready", "was Pending before"),
                ("Normal", "Pending", "")
            ]
        );
        for number in 0..2 * limits::EVENTS {
            objects.apply(server("a", "Failed", &number.to_string()));
        }
        assert_eq!(objects.find(&key).unwrap().events.len(), limits::EVENTS);
    }

    #[test]
    fn the_time_of_a_phase_stays_while_the_message_changes() {
        let objects = Objects::default();
        let key = Key::new("MCPServer", "n", "a");
        let since = || objects.find(&key).unwrap().summary.since;
        objects.apply(server("a", "Failed", "one"));
        let first = since();
        objects.apply(server("a", "Failed", "two"));
        assert_eq!(since(), first);
    }
}
