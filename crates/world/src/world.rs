//! The stores of all kinds, and who is to be told of changes.

use std::{
    any::{Any, TypeId},
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use futures::future::{BoxFuture, try_join_all};
use kube::{Client, core::DynamicObject};
use skep_converge::Kind;
use tokio::sync::watch::{self, Sender};

use crate::{
    Queue, ReadError, Readable, Reader, Watched,
    content::Contents,
    dependencies::{Dependencies, Topic},
    store::{Name, Store},
    watch::run,
};

/// An object that a controller works on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// What is known of the cluster.
pub struct World {
    stores: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    controlled: HashSet<Kind>,
    delivered: Vec<(Kind, Delivered)>,
    dependencies: Mutex<Dependencies>,
    queue: Queue,
    pub(crate) client: Option<Client>,
    /// How many watches have not listed everything yet.
    unlisted: Sender<usize>,
}

pub(crate) struct Kept<W: Watched> {
    pub(crate) store: RwLock<Store<W>>,
    pub(crate) contents: Contents,
}

type Watch = Box<dyn FnOnce(Arc<World>, Client, Option<String>) -> BoxFuture<'static, ()> + Send>;

type List = for<'a> fn(&'a World, Option<&'a str>) -> BoxFuture<'a, Result<(), ReadError>>;

/// Whether one watch has delivered a change of an object.
type Delivered = fn(&World, &DynamicObject, Change) -> bool;

/// What a write did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It exists in this state.
    Stored,
    /// It is gone.
    Deleted,
}

/// Says what a world watches.
#[derive(Default)]
pub struct Builder {
    stores: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    controlled: HashSet<Kind>,
    watches: Vec<fn() -> Watch>,
    delivered: Vec<(Kind, Delivered)>,
    lists: Vec<List>,
}

impl Builder {
    /// Watches a kind.
    #[must_use]
    pub fn watch<W: Watched>(mut self) -> Self {
        let kept = Kept::<W> { store: RwLock::default(), contents: Contents::default() };
        if self.stores.insert(TypeId::of::<W>(), Box::new(kept)).is_none() {
            self.watches
                .push(|| Box::new(|world, client, namespace| Box::pin(run::<W>(world, client, namespace))));
            self.delivered.push((W::KIND, World::watch_has_delivered::<W>));
            self.lists.push(|world, namespace| Box::pin(world.list::<W>(namespace)));
        }
        self
    }

    /// Watches a kind, and puts its objects into the queue when they change or when what they read changes.
    #[must_use]
    pub fn control<W: Watched>(mut self) -> Self {
        self.controlled.insert(W::KIND);
        self.watch::<W>()
    }

    /// Begins to watch these namespaces, or all if there are none. The watches end with the runtime.
    pub fn start(self, client: &Client, namespaces: &[String]) -> Arc<World> {
        let scopes = scopes(namespaces);
        let watches = self.watches.clone();
        let world = self.build(Some(client.clone()), watches.len() * scopes.len());
        for scope in scopes {
            for watch in &watches {
                tokio::spawn(watch()(world.clone(), client.clone(), scope.map(Into::into)));
            }
        }
        world
    }

    /// Looks these namespaces over once, or all if there are none. What changes later is not noticed.
    pub async fn list(self, client: &Client, namespaces: &[String]) -> Result<Arc<World>, ReadError> {
        let lists = self.lists.clone();
        let world = self.build(Some(client.clone()), 0);
        for scope in scopes(namespaces) {
            try_join_all(lists.iter().map(|list| list(&world, scope))).await?;
        }
        Ok(world)
    }

    /// A world with no cluster behind it, which knows what it is told with [`World::observe`].
    pub fn offline(self) -> Arc<World> {
        self.build(None, 0)
    }

    fn build(self, client: Option<Client>, unlisted: usize) -> Arc<World> {
        Arc::new(World {
            stores: self.stores,
            controlled: self.controlled,
            delivered: self.delivered,
            dependencies: Mutex::default(),
            queue: Queue::default(),
            client,
            unlisted: watch::channel(unlisted).0,
        })
    }
}

/// All of them, if none is named.
fn scopes(namespaces: &[String]) -> Vec<Option<&str>> {
    match namespaces {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    }
}

impl World {
    /// Begins to say what is watched.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Looks the cluster over for one target.
    pub fn reader(self: &Arc<Self>, target: Arc<Target>) -> Reader {
        Reader::new(self.clone(), target)
    }

    /// The targets that wait to be worked on.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Waits until every watch has listed what there is.
    pub async fn listed(&self) {
        // The sender lives as long as the world.
        self.unlisted.subscribe().wait_for(|unlisted| *unlisted == 0).await.ok();
    }

    /// Whether every watch has listed what there is.
    pub fn is_listed(&self) -> bool {
        *self.unlisted.borrow() == 0
    }

    /// Whether every watch of the kind with this group and plural has delivered a change, or a later one. Targets that the
    /// change concerns are in the queue then. A test that writes waits for this before it waits for an idle queue.
    pub fn has_delivered(&self, group: &str, plural: &str, object: &DynamicObject, change: Change) -> bool {
        let of_kind = |(kind, _): &&(Kind, Delivered)| kind.group == group && kind.plural == plural;
        self.delivered.iter().filter(of_kind).all(|(_, delivered)| delivered(self, object, change))
    }

    fn watch_has_delivered<W: Watched>(&self, object: &DynamicObject, change: Change) -> bool {
        let Some(kept) = self.kept::<W>() else { return true };
        let store = kept.store.read().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Stored if W::selects(object) => store.knows(object),
            Change::Stored | Change::Deleted => !store.holds(object),
        }
    }

    /// Takes in the state of an object from elsewhere than its watch: from the answer to a write, or from a list. What
    /// the watch has told to be gone stays gone: nobody would ever tell it again.
    pub fn learn<W: Watched>(&self, object: &DynamicObject) {
        let Some(kept) = self.kept::<W>() else { return };
        self.take_in::<W>(kept, object, |store| store.is_gone(object));
    }

    /// Takes in the state of an object from its watch.
    pub fn observe<W: Watched>(&self, object: &DynamicObject) {
        let Some(kept) = self.kept::<W>() else { return };
        self.take_in::<W>(kept, object, |_| false);
    }

    fn take_in<W: Watched>(
        &self,
        kept: &Kept<W>,
        object: &DynamicObject,
        refused: impl Fn(&Store<W>) -> bool,
    ) {
        // What is no news is most of what watches bring, and computing what to keep of it costs the most.
        if kept.store.read().unwrap_or_else(PoisonError::into_inner).knows(object) {
            return;
        }
        let news = W::keep(object);
        let mut store = kept.store.write().unwrap_or_else(PoisonError::into_inner);
        if refused(&store) {
            return;
        }
        let topics = store.observe(object, news);
        drop(store);
        self.wake::<W>(&topics, object);
    }

    /// Lists a kind in a namespace, or in all. With no cluster behind it, everything is known already.
    pub(crate) async fn list<W: Watched>(&self, namespace: Option<&str>) -> Result<(), ReadError> {
        let Some(client) = self.client.clone() else { return Ok(()) };
        crate::watch::list::<W>(self, client, namespace)
            .await
            .map_err(|error| ReadError::listing(W::KIND, error))
    }

    /// Takes in an object with its content, for a world with no cluster behind it.
    pub fn load<W: Readable>(&self, object: DynamicObject) {
        self.observe::<W>(&object);
        if let Some(kept) = self.kept::<W>() {
            kept.contents.keep::<W>(object);
        }
    }

    /// Takes in that an object is gone.
    pub(crate) fn forget<W: Watched>(&self, object: &DynamicObject) {
        let Some(kept) = self.kept::<W>() else { return };
        let topics = kept.store.write().unwrap_or_else(PoisonError::into_inner).forget(object);
        kept.contents.forget(object);
        self.wake::<W>(&topics, object);
    }

    /// After a full list of a scope: what was not in it is gone.
    pub(crate) fn retain<W: Watched>(&self, scope: Option<&str>, listed: &HashSet<Name>) {
        let Some(kept) = self.kept::<W>() else { return };
        let topics = kept.store.write().unwrap_or_else(PoisonError::into_inner).retain(scope, listed);
        self.wake_readers(&topics);
    }

    pub(crate) fn has_listed(&self) {
        self.unlisted.send_modify(|unlisted| *unlisted = unlisted.saturating_sub(1));
    }

    pub(crate) fn kept<W: Watched>(&self) -> Option<&Kept<W>> {
        let kept = self.stores.get(&TypeId::of::<W>()).and_then(|store| store.downcast_ref());
        debug_assert!(kept.is_some(), "{} is read but not watched", W::KIND.kind);
        kept
    }

    pub(crate) fn dependencies(&self) -> MutexGuard<'_, Dependencies> {
        self.dependencies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake<W: Watched>(&self, topics: &[Topic], object: &DynamicObject) {
        if topics.is_empty() {
            return;
        }
        if self.controlled.contains(&W::KIND) {
            let (namespace, name) = crate::store::name_of(object);
            self.queue.add(Arc::new(Target { kind: W::KIND, namespace, name }));
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
