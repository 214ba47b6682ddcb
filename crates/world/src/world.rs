//! The stores of all kinds, and the subscriptions to their changes.

use std::{
    any::{Any, TypeId},
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use futures::future::{BoxFuture, try_join_all};
use kube::{Client, core::DynamicObject};
use skep_converge::Kind;
use tokio::sync::watch::{self, Sender};
use tracing::{error, info, warn};

use crate::{
    Content, Queue, ReadError, Reader, Watched,
    content::Contents,
    dependencies::{Dependencies, Topic},
    store::{Name, Store},
    watch::{is_unserved, run},
};

/// An object that a controller reconciles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// The cached state of the cluster.
pub struct World {
    stores: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    controlled: HashMap<Kind, Requeue>,
    delivered: Vec<(Kind, Delivered)>,
    dependencies: Mutex<Dependencies>,
    queue: Queue,
    pub(crate) client: Option<Client>,
    /// The namespaces that are watched, or all as one.
    scopes: Sender<HashMap<Option<Box<str>>, Scope>>,
    unserved: Mutex<BTreeSet<Kind>>,
}

/// How far the watches of a namespace are.
#[derive(Debug, Default)]
struct Scope {
    /// How many have not completed their first list.
    unlisted: usize,
    /// The kinds that may not be listed.
    denied: BTreeSet<Kind>,
}

impl Scope {
    /// Whether all is known of the namespace.
    fn is_complete(&self) -> bool {
        self.unlisted == 0
    }
}

pub(crate) struct Cached<W: Watched> {
    pub(crate) store: RwLock<Store<W>>,
    pub(crate) contents: Contents,
}

type Watch = Box<dyn FnOnce(Arc<World>, Client, Option<String>) -> BoxFuture<'static, ()> + Send>;

type List = for<'a> fn(&'a World, Option<&'a str>) -> BoxFuture<'a, Result<(), ReadError>>;

/// Whether one watch has delivered a change of an object.
type Delivered = fn(&World, &DynamicObject, Change) -> bool;

/// Queues all objects of one kind in a namespace.
type Requeue = fn(&World, Option<&str>);

/// What a write did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It exists in this state.
    Stored,
    /// It does not exist any more.
    Deleted,
}

/// Builds a world from the kinds that it watches.
#[derive(Default)]
pub struct Builder {
    stores: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    controlled: HashMap<Kind, Requeue>,
    watches: Vec<fn() -> Watch>,
    delivered: Vec<(Kind, Delivered)>,
    lists: Vec<List>,
}

impl Builder {
    /// Watches a kind.
    #[must_use]
    pub fn watch<W: Watched>(mut self) -> Self {
        let cached = Cached::<W> { store: RwLock::default(), contents: Contents::default() };
        if self.stores.insert(TypeId::of::<W>(), Box::new(cached)).is_none() {
            self.watches
                .push(|| Box::new(|world, client, namespace| Box::pin(run::<W>(world, client, namespace))));
            self.delivered.push((W::kind(), World::watch_has_delivered::<W>));
            self.lists.push(|world, namespace| Box::pin(world.list::<W>(namespace)));
        }
        self
    }

    /// Watches a kind, and queues its objects when they or objects that they read change.
    #[must_use]
    pub fn control<W: Watched>(mut self) -> Self {
        self.controlled.insert(W::kind(), World::requeue_in::<W>);
        self.watch::<W>()
    }

    /// Starts to watch these namespaces, or all if none are given. The watches end with the runtime.
    pub fn start(self, client: &Client, namespaces: &[String]) -> Arc<World> {
        let scopes = scopes(namespaces);
        let watches = self.watches.clone();
        let unlisted = || Scope { unlisted: watches.len(), ..Scope::default() };
        let states = scopes.iter().map(|scope| (scope.map(Into::into), unlisted())).collect();
        let world = self.build(Some(client.clone()), states);
        for scope in scopes {
            for watch in &watches {
                tokio::spawn(watch()(world.clone(), client.clone(), scope.map(Into::into)));
            }
        }
        world
    }

    /// Lists these namespaces once, or all if none are given. Later changes are not noticed.
    pub async fn list(self, client: &Client, namespaces: &[String]) -> Result<Arc<World>, ReadError> {
        let lists = self.lists.clone();
        let world = self.build(Some(client.clone()), HashMap::new());
        for scope in scopes(namespaces) {
            try_join_all(lists.iter().map(|list| list(&world, scope))).await?;
        }
        Ok(world)
    }

    /// A world without a cluster. It contains only what is added with [`World::observe`].
    pub fn offline(self) -> Arc<World> {
        self.build(None, HashMap::new())
    }

    fn build(self, client: Option<Client>, scopes: HashMap<Option<Box<str>>, Scope>) -> Arc<World> {
        Arc::new(World {
            stores: self.stores,
            controlled: self.controlled,
            delivered: self.delivered,
            dependencies: Mutex::default(),
            queue: Queue::default(),
            client,
            scopes: watch::channel(scopes).0,
            unserved: Mutex::default(),
        })
    }
}

/// Whether nothing has to be waited for. If nothing may be listed, nothing can be done.
fn are_listed(scopes: &HashMap<Option<Box<str>>, Scope>) -> bool {
    let is_denied = |scope: &Scope| !scope.denied.is_empty();
    let has_any = scopes.is_empty() || scopes.values().any(Scope::is_complete);
    has_any && scopes.values().all(|scope| scope.is_complete() || is_denied(scope))
}

/// All namespaces, if none is given.
fn scopes(namespaces: &[String]) -> Vec<Option<&str>> {
    match namespaces {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    }
}

impl World {
    /// A builder for the kinds to watch.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A reader of the cluster for one target.
    pub fn reader(self: &Arc<Self>, target: Arc<Target>) -> Reader {
        Reader::new(self.clone(), target)
    }

    /// The targets that wait to be reconciled.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// How many subscriptions all targets have.
    pub fn subscriptions(&self) -> usize {
        self.dependencies().count()
    }

    /// The kinds that the API server does not serve, because their CRDs are not installed. They have no objects until they are.
    pub fn unserved(&self) -> Vec<Kind> {
        self.unserved.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Records whether the API server serves a kind, and logs it when that changes.
    pub(crate) fn record_served(&self, kind: Kind, is_served: bool) {
        let mut unserved = self.unserved.lock().unwrap_or_else(PoisonError::into_inner);
        if is_served && unserved.remove(&kind) {
            info!(kind = kind.kind, "the API server serves this kind now");
        } else if !is_served && unserved.insert(kind) {
            warn!(
                kind = kind.kind,
                version = kind.api_version(),
                "the API server does not serve this kind: install its CRD; until then it has no objects"
            );
        }
    }

    /// Waits until every watch has completed its first list. A namespace that may not be listed delays no other: see
    /// [`World::is_complete`].
    pub async fn listed(&self) {
        // The sender lives as long as the world.
        self.scopes.subscribe().wait_for(are_listed).await.ok();
    }

    /// Whether every watch has completed its first list, but for namespaces that may not be listed.
    pub fn is_listed(&self) -> bool {
        are_listed(&self.scopes.borrow())
    }

    /// Whether all is known of a namespace. Until then nothing in it may be reconciled: what is not known would seem to be missing.
    pub fn is_complete(&self, namespace: &str) -> bool {
        let scopes = self.scopes.borrow();
        let named: Option<Box<str>> = Some(namespace.into());
        let scope = scopes.get(&named).or_else(|| scopes.get(&None));
        scope.is_none_or(Scope::is_complete)
    }

    /// The namespaces that may not be listed.
    pub fn denied(&self) -> Vec<Box<str>> {
        let scopes = self.scopes.borrow();
        let denied = scopes.iter().filter(|(_, scope)| !scope.denied.is_empty());
        denied.filter_map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Records that a kind may not be listed, and logs it when that is new.
    pub(crate) fn record_denied(&self, kind: Kind, scope: Option<&str>, error: &kube::Error) {
        let key: Option<Box<str>> = scope.map(Into::into);
        self.scopes.send_modify(|scopes| {
            let Some(known) = scopes.get_mut(&key) else { return };
            if known.denied.insert(kind) {
                let namespace = scope.unwrap_or("all");
                error!(kind = kind.kind, namespace, %error, "cannot list; nothing there is reconciled until that is permitted");
            }
        });
    }

    /// Queues everything in a namespace, or in all.
    fn requeue_all(&self, scope: Option<&str>) {
        self.controlled.values().for_each(|requeue| requeue(self, scope));
    }

    /// Whether every watch of the kind with this group and plural has delivered a change, or a later one. Targets that the
    /// change concerns are in the queue then. A test that writes waits for this before it waits for an idle queue.
    pub fn has_delivered(&self, group: &str, plural: &str, object: &DynamicObject, change: Change) -> bool {
        let of_kind = |(kind, _): &&(Kind, Delivered)| kind.group == group && kind.plural == plural;
        self.delivered.iter().filter(of_kind).all(|(_, delivered)| delivered(self, object, change))
    }

    fn watch_has_delivered<W: Watched>(&self, object: &DynamicObject, change: Change) -> bool {
        let Some(cached) = self.cached::<W>() else { return true };
        let store = cached.store.read().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Stored if W::selects(object) => store.knows(object),
            Change::Stored | Change::Deleted => !store.holds(object),
        }
    }

    /// Records the state of an object from another source than its watch: from the response to a write, or from a
    /// list. An object that the watch has reported as deleted stays deleted: no later event would correct it.
    pub fn record_write<W: Watched>(&self, object: &DynamicObject) {
        let Some(cached) = self.cached::<W>() else { return };
        self.record::<W>(cached, object, |store| store.is_deleted(object));
    }

    /// Whether the cached state of an object is newer than a listed one.
    pub(crate) fn is_newer<W: Watched>(&self, object: &DynamicObject) -> bool {
        let cached = self.cached::<W>();
        cached.is_some_and(|cached| {
            cached.store.read().unwrap_or_else(PoisonError::into_inner).is_newer(object)
        })
    }

    /// Records the state of an object that was read just now, and is older than the cached one: the cluster was restored from
    /// a backup.
    pub(crate) fn restore<W: Watched>(&self, object: &DynamicObject) {
        let Some(cached) = self.cached::<W>() else { return };
        let news = W::project(object);
        let mut store = cached.store.write().unwrap_or_else(PoisonError::into_inner);
        if !store.is_newer(object) {
            return;
        }
        let topics = store.restore(object, news);
        cached.contents.forget(object);
        drop(store);
        self.wake::<W>(&topics, object);
    }

    /// Records the state of an object from its watch.
    pub fn observe<W: Watched>(&self, object: &DynamicObject) {
        let Some(cached) = self.cached::<W>() else { return };
        self.record::<W>(cached, object, |_| false);
    }

    fn record<W: Watched>(
        &self,
        cached: &Cached<W>,
        object: &DynamicObject,
        is_outdated: impl Fn(&Store<W>) -> bool,
    ) {
        // Most events bring nothing new, and projecting an object is the most expensive step.
        if cached.store.read().unwrap_or_else(PoisonError::into_inner).knows(object) {
            return;
        }
        let news = W::project(object);
        let mut store = cached.store.write().unwrap_or_else(PoisonError::into_inner);
        if is_outdated(&store) {
            return;
        }
        let topics = store.observe(object, news);
        drop(store);
        self.wake::<W>(&topics, object);
    }

    /// Queues all objects of a kind that is controlled.
    pub fn requeue<W: Watched>(&self) {
        self.requeue_in::<W>(None);
    }

    fn requeue_in<W: Watched>(&self, scope: Option<&str>) {
        let Some(cached) = self.cached::<W>() else { return };
        let names: Vec<Name> =
            cached.store.read().unwrap_or_else(PoisonError::into_inner).names().cloned().collect();
        let is_in_scope = |namespace: &str| scope.is_none_or(|scope| scope == namespace);
        for (namespace, name) in names.into_iter().filter(|(namespace, _)| is_in_scope(namespace)) {
            self.queue.add(Arc::new(Target { kind: W::kind(), namespace, name }));
        }
    }

    /// Lists a kind in a namespace, or in all. Without a cluster, everything is already known.
    pub(crate) async fn list<W: Watched>(&self, namespace: Option<&str>) -> Result<(), ReadError> {
        let Some(client) = self.client.clone() else { return Ok(()) };
        let listed = crate::watch::list::<W>(self, client, namespace).await;
        self.record_served(W::kind(), !listed.as_ref().is_err_and(is_unserved));
        match listed {
            Err(error) if !is_unserved(&error) => Err(ReadError::listing(W::kind(), error)),
            _ => Ok(()),
        }
    }

    /// Adds an object with a part of its content, for a world without a cluster.
    pub fn load<C: Content>(&self, object: DynamicObject) {
        self.observe::<C::Of>(&object);
        if let Some(cached) = self.cached::<C::Of>() {
            cached.contents.insert::<C>(object);
        }
    }

    /// Records that an object is deleted.
    pub(crate) fn forget<W: Watched>(&self, object: &DynamicObject) {
        let Some(cached) = self.cached::<W>() else { return };
        let topics = cached.store.write().unwrap_or_else(PoisonError::into_inner).forget(object);
        cached.contents.forget(object);
        self.wake::<W>(&topics, object);
    }

    /// After a full list of a scope: removes objects that were not in it.
    pub(crate) fn retain<W: Watched>(&self, scope: Option<&str>, listed: &HashSet<Name>) {
        let Some(cached) = self.cached::<W>() else { return };
        let mut store = cached.store.write().unwrap_or_else(PoisonError::into_inner);
        let topics = store.retain(scope, listed);
        cached.contents.retain(|(namespace, name)| store.get(namespace, name).is_some());
        drop(store);
        self.wake_readers(&topics);
    }

    /// Records that a list of a kind is complete. With the first of the last kind, what was left alone until then is queued.
    pub(crate) fn has_listed(&self, kind: Kind, scope: Option<&str>, is_first: bool) {
        let mut is_complete = false;
        let key: Option<Box<str>> = scope.map(Into::into);
        self.scopes.send_if_modified(|scopes| {
            let Some(known) = scopes.get_mut(&key) else { return false };
            known.unlisted = known.unlisted.saturating_sub(is_first.into());
            is_complete = is_first && known.is_complete();
            known.denied.remove(&kind) || is_first
        });
        if is_complete {
            self.requeue_all(scope);
        }
    }

    pub(crate) fn cached<W: Watched>(&self) -> Option<&Cached<W>> {
        let cached = self.stores.get(&TypeId::of::<W>()).and_then(|store| store.downcast_ref());
        debug_assert!(cached.is_some(), "{} is read but not watched", W::kind().kind);
        cached
    }

    pub(crate) fn dependencies(&self) -> MutexGuard<'_, Dependencies> {
        self.dependencies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake<W: Watched>(&self, topics: &[Topic], object: &DynamicObject) {
        if topics.is_empty() {
            return;
        }
        if self.controlled.contains_key(&W::kind()) {
            let (namespace, name) = crate::store::name_of(object);
            self.queue.add(Arc::new(Target { kind: W::kind(), namespace, name }));
        }
        self.wake_readers(topics);
    }

    fn wake_readers(&self, topics: &[Topic]) {
        let dependencies = self.dependencies();
        let readers = topics.iter().flat_map(|topic| dependencies.readers(*topic));
        for reader in readers {
            self.queue.add(reader.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;
    use skep_converge::Meta;

    use super::*;

    struct Secrets;

    impl Watched for Secrets {
        type Cached = ();

        fn kind() -> Kind {
            Kind::of::<Secret>()
        }

        fn project(_: &DynamicObject) {}
    }

    struct Data;

    impl Content for Data {
        type Of = Secrets;

        fn of(_: DynamicObject) -> Self {
            Self
        }

        fn size(&self) -> usize {
            1
        }
    }

    #[test]
    fn a_list_without_an_object_drops_its_content() {
        let world = World::builder().watch::<Secrets>().offline();
        let names = [("ns", "kept"), ("ns", "deleted"), ("other", "kept")];
        for (namespace, name) in names {
            let metadata = json!({"namespace": namespace, "name": name, "uid": "u", "resourceVersion": "1"});
            world.load::<Data>(serde_json::from_value(json!({"metadata": metadata})).unwrap());
        }
        world.retain::<Secrets>(Some("ns"), &[("ns".into(), "kept".into())].into());

        let cached = world.cached::<Secrets>().unwrap();
        let meta = Meta { uid: "u".into(), ..Meta::default() };
        let has_content = |(namespace, name): &(&str, &str)| {
            let read = cached.contents.read::<Data>(None, namespace, name, &meta).now_or_never();
            read.unwrap().unwrap().is_some()
        };
        let kept: Vec<_> = names.into_iter().filter(has_content).collect();
        assert_eq!(kept, [("ns", "kept"), ("other", "kept")]);
    }
}
