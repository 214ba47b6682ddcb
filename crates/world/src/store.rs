//! The cached objects of one kind.

use std::collections::{BTreeSet, HashMap, HashSet};

use kube::core::DynamicObject;
use skep_converge::Meta;

use crate::{Watched, dependencies::Topic};

/// A cached object.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<T> {
    /// The identity and revision of an object.
    pub meta: Meta,
    /// The cached part of it.
    pub cached: T,
}

/// How many namespaces are remembered in which objects were deleted.
const NAMESPACES: usize = 10_000;

/// An object's namespace and name.
pub(crate) type Name = (Box<str>, Box<str>);

pub(crate) struct Store<W: Watched> {
    entries: HashMap<Name, Entry<W::Cached>>,
    index: HashMap<Name, BTreeSet<Box<str>>>,
    /// The revision at which the last object of a namespace was deleted. A watch delivers events in order, so an
    /// object with an older revision is known, or deleted as well.
    deleted: HashMap<Box<str>, u64>,
}

impl<W: Watched> Default for Store<W> {
    fn default() -> Self {
        Self { entries: HashMap::new(), index: HashMap::new(), deleted: HashMap::new() }
    }
}

impl<W: Watched> Store<W> {
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Entry<W::Cached>> {
        self.entries.get(&(namespace.into(), name.into()))
    }

    /// The objects with an index key, sorted by name.
    pub(crate) fn by_index(&self, namespace: &str, key: &str) -> Vec<(String, Entry<W::Cached>)> {
        let names = self.index.get(&(namespace.into(), key.into())).into_iter().flatten();
        names.filter_map(|name| Some((name.to_string(), self.get(namespace, name)?.clone()))).collect()
    }

    /// The names of the objects with an index key, sorted.
    pub(crate) fn members(&self, namespace: &str, key: &str) -> Vec<String> {
        let names = self.index.get(&(namespace.into(), key.into())).into_iter().flatten();
        names.map(ToString::to_string).collect()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.entries.keys()
    }

    /// Whether the state of an object is already known: a watch may lag behind the response to a write.
    pub(crate) fn knows(&self, object: &DynamicObject) -> bool {
        let meta = Meta::of(&object.metadata);
        let known = self.entries.get(&name_of(object)).map(|entry| &entry.meta);
        known.is_some_and(|known| known.uid == meta.uid && !known.is_older_than(&meta))
    }

    /// Whether an object is cached, in any state.
    pub(crate) fn holds(&self, object: &DynamicObject) -> bool {
        let known = self.entries.get(&name_of(object));
        known.is_some_and(|known| Some(&known.meta.uid) == object.metadata.uid.as_ref())
    }

    /// Whether the watch has already reported that an object is deleted. Lists and responses to writes can lag behind
    /// it.
    pub(crate) fn is_deleted(&self, object: &DynamicObject) -> bool {
        let (name, meta) = (name_of(object), Meta::of(&object.metadata));
        let known = self.entries.get(&name).is_some_and(|entry| entry.meta.uid == meta.uid);
        !known && self.deleted.get(&name.0).is_some_and(|last| meta.revision() <= *last)
    }

    /// Records the state of an object, with `cached` as its cached part, and returns the topics whose readers are
    /// affected: those of its whole content at least.
    pub(crate) fn observe(&mut self, object: &DynamicObject, cached: W::Cached) -> Vec<Topic> {
        // Checked again, because another state may have arrived in the meantime.
        if self.knows(object) {
            return Vec::new();
        }
        let name = name_of(object);
        let meta = Meta::of(&object.metadata);
        // Readers of the whole content are affected by any change.
        let content = Topic::content(W::kind(), &name.0, &name.1);
        let mut topics = vec![content, Topic::name(W::kind(), &name.0, &name.1)];
        let mut before = Vec::new();
        if let Some(old) = self.entries.get_mut(&name) {
            if old.meta.uid == meta.uid && W::shared(&old.cached) == W::shared(&cached) {
                *old = Entry { meta, cached };
                return vec![content];
            }
            before = W::index(&old.cached);
        }
        let now = W::index(&cached);
        for key in before.iter().filter(|key| !now.contains(key)) {
            self.unindex(&name, key, &mut topics);
        }
        for key in &now {
            topics.push(Topic::index(W::kind(), &name.0, key));
            if !before.contains(key) {
                topics.push(Topic::members(W::kind(), &name.0, key));
                let names = self.index.entry((name.0.clone(), key.as_str().into())).or_default();
                names.insert(name.1.clone());
            }
        }
        self.entries.insert(name, Entry { meta, cached });
        topics
    }

    /// Whether an older state than the cached one was listed: the watch lags, or the cluster was restored from a backup.
    pub(crate) fn is_newer(&self, object: &DynamicObject) -> bool {
        let (name, meta) = (name_of(object), Meta::of(&object.metadata));
        let known = self.entries.get(&name).map(|entry| &entry.meta);
        known.is_some_and(|known| known.uid == meta.uid && meta.is_older_than(known))
    }

    /// Records a state that is older than the cached one, after a restore from a backup.
    pub(crate) fn restore(&mut self, object: &DynamicObject, cached: W::Cached) -> Vec<Topic> {
        // Revisions are used a second time.
        self.deleted.clear();
        let mut topics = self.remove(&name_of(object));
        self.deleted.clear();
        topics.extend(self.observe(object, cached));
        topics
    }

    /// Records that an object is deleted.
    pub(crate) fn forget(&mut self, object: &DynamicObject) -> Vec<Topic> {
        let name = name_of(object);
        let deleted = Meta::of(&object.metadata);
        self.mark_deleted(&name, &deleted);
        match self.entries.get(&name) {
            // The object was recreated under that name.
            Some(entry) if entry.meta.uid != deleted.uid => Vec::new(),
            _ => self.remove(&name),
        }
    }

    /// After a full list: removes objects that were not in it.
    pub(crate) fn retain(&mut self, scope: Option<&str>, listed: &HashSet<Name>) -> Vec<Topic> {
        let in_scope = |name: &&Name| scope.is_none_or(|scope| *name.0 == *scope);
        let deleted: Vec<Name> =
            self.names().filter(in_scope).filter(|name| !listed.contains(*name)).cloned().collect();
        deleted.iter().flat_map(|name| self.remove(name)).collect()
    }

    fn remove(&mut self, name: &Name) -> Vec<Topic> {
        let Some(entry) = self.entries.remove(name) else { return Vec::new() };
        self.mark_deleted(name, &entry.meta);
        let mut topics = vec![Topic::name(W::kind(), &name.0, &name.1)];
        for key in W::index(&entry.cached) {
            self.unindex(name, &key, &mut topics);
        }
        topics
    }

    fn mark_deleted(&mut self, name: &Name, deleted: &Meta) {
        if self.deleted.len() >= NAMESPACES && !self.deleted.contains_key(&name.0) {
            // What was deleted long ago arrives from nowhere any more.
            let mut revisions: Vec<u64> = self.deleted.values().copied().collect();
            revisions.sort_unstable();
            let median = revisions.get(revisions.len() / 2).copied().unwrap_or_default();
            self.deleted.retain(|_, revision| *revision > median);
        }
        let last = self.deleted.entry(name.0.clone()).or_default();
        *last = deleted.revision().max(*last);
    }

    fn unindex(&mut self, name: &Name, key: &str, topics: &mut Vec<Topic>) {
        topics.push(Topic::index(W::kind(), &name.0, key));
        topics.push(Topic::members(W::kind(), &name.0, key));
        let key = (name.0.clone(), key.into());
        if let Some(names) = self.index.get_mut(&key) {
            names.remove(&name.1);
            if names.is_empty() {
                self.index.remove(&key);
            }
        }
    }
}

pub(crate) fn name_of(object: &DynamicObject) -> Name {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
    (text(&object.metadata.namespace), text(&object.metadata.name))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};
    use skep_converge::Kind;

    use super::*;

    struct ConfigMaps;

    impl Watched for ConfigMaps {
        type Cached = Value;

        fn kind() -> Kind {
            Kind::of::<ConfigMap>()
        }

        fn project(object: &DynamicObject) -> Value {
            object.data["data"].clone()
        }
    }

    fn object(namespace: &str, revision: u64, value: &str) -> DynamicObject {
        let metadata =
            json!({"namespace": namespace, "name": "a", "uid": "u", "resourceVersion": revision.to_string()});
        serde_json::from_value(json!({"metadata": metadata, "data": {"k": value}})).unwrap()
    }

    #[test]
    fn a_state_from_a_restored_backup_replaces_a_newer_one() {
        let mut store = Store::<ConfigMaps>::default();
        let (new, old) = (object("ns", 9, "new"), object("ns", 5, "old"));
        store.observe(&new, ConfigMaps::project(&new));
        assert_eq!(store.observe(&old, ConfigMaps::project(&old)), [], "a watch may lag");
        assert!(store.is_newer(&old) && !store.is_newer(&new));
        assert!(!store.restore(&old, ConfigMaps::project(&old)).is_empty());
        assert_eq!(store.get("ns", "a").unwrap().cached, json!({"k": "old"}));
        assert!(!store.is_deleted(&object("ns", 6, "x")), "revisions are used again");
    }

    /// An object whose status lists its readers.
    struct Listing;

    impl Watched for Listing {
        type Cached = Value;

        fn kind() -> Kind {
            Kind::of::<ConfigMap>()
        }

        fn project(object: &DynamicObject) -> Value {
            object.data["data"].clone()
        }

        fn shared(cached: &Value) -> impl PartialEq + '_ {
            &cached["spec"]
        }
    }

    #[test]
    fn what_is_not_shared_is_news_to_no_reader_and_is_cached() {
        let mut store = Store::<Listing>::default();
        let state = |revision: u64, spec: &str, status: &str| {
            let mut object = object("ns", revision, "");
            object.data["data"] = json!({"spec": spec, "status": status});
            object
        };
        let mut observe = |object: &DynamicObject| store.observe(object, Listing::project(object));
        let read = Topic::name(Listing::kind(), "ns", "a");
        assert!(observe(&state(1, "a", "")).contains(&read));
        assert!(!observe(&state(2, "a", "listed")).contains(&read));
        assert!(observe(&state(3, "b", "listed")).contains(&read));
        assert_eq!(store.get("ns", "a").unwrap().cached["status"], "listed");
        assert_eq!(store.get("ns", "a").unwrap().meta.resource_version, "3");
    }

    #[test]
    fn namespaces_that_existed_once_do_not_fill_the_memory() {
        let mut store = Store::<ConfigMaps>::default();
        for revision in 0..NAMESPACES as u64 + 10 {
            store.forget(&object(&format!("ns-{revision}"), revision, ""));
        }
        assert!(store.deleted.len() <= NAMESPACES);
    }
}
