//! What each client sees: the catalog of the backends that it can use. It is computed once for each set of lists, and
//! shared by all sessions that see the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
    time::Instant,
};

use futures::{
    StreamExt,
    future::{join, join_all},
    stream::FuturesUnordered,
};
use skep_api::vmcp::{Aggregation, ConflictResolution};
use tokio::{sync::watch, time::timeout};
use tracing::warn;

use crate::{
    backend::{Backend, BackendError, Blueprint, Caller, Factory},
    catalog::{Catalog, Composite, LeftOut, Lists, Member, NotOffered, Origin},
    limits,
    session::ClientSession,
};

/// How many different catalogs are kept for those who see the same later.
const KEPT: usize = 64;

/// All backends by their names.
pub(crate) type Backends = BTreeMap<Arc<str>, Arc<Backend>>;

/// What clients see.
pub(crate) struct Views {
    backends: RwLock<Arc<Backends>>,
    /// Counts changes of any backend.
    changed: Arc<watch::Sender<u64>>,
    catalogs: Mutex<Vec<(Vec<Member>, Weak<Catalog>)>>,
    /// Lists of backends for single callers.
    lists: Mutex<Vec<Weak<Lists>>>,
    policy: ViewPolicy,
}

/// Who has what a request names.
pub(crate) struct Found {
    /// None if it is the virtual server itself.
    pub(crate) backend: Option<Arc<str>>,
    /// Whether it has a name, and not an address, which no prefix makes unique.
    pub(crate) is_named: bool,
}

impl Found {
    /// A resource.
    pub(crate) fn at(origin: &Origin) -> Self {
        Self { backend: Some(origin.backend.clone()), is_named: false }
    }
}

/// How views are made.
pub(crate) struct ViewPolicy {
    pub(crate) aggregation: Aggregation,
    pub(crate) composites: Vec<Arc<Composite>>,
    /// The names of the virtual server's own tools.
    pub(crate) own_tools: &'static [&'static str],
    /// Whether headers of clients are passed on, which backends may decide by.
    pub(crate) passes_headers: bool,
    /// Whether a list is an error while no backend can be listed, and not empty.
    pub(crate) fails_without_backends: bool,
}

impl Views {
    pub(crate) fn new(policy: ViewPolicy, changed: Arc<watch::Sender<u64>>) -> Self {
        Self {
            backends: RwLock::default(),
            changed,
            catalogs: Mutex::default(),
            lists: Mutex::default(),
            policy,
        }
    }

    /// Why this view cannot be listed, if it cannot.
    pub(crate) fn unavailable(&self, catalog: &Catalog) -> Option<String> {
        let backends = self.backends();
        if !catalog.is_of_none() || backends.is_empty() || !self.policy.fails_without_backends {
            return None;
        }
        let states = backends.values().map(|backend| {
            let health = backend.health();
            let why = if health.category.is_empty() { health.status.as_str() } else { health.category };
            format!("{} ({why})", backend.name)
        });
        Some(format!("no backend is available: {}", states.collect::<Vec<_>>().join(", ")))
    }

    pub(crate) fn backends(&self) -> Arc<Backends> {
        self.backends.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces all backends. Those that stay as they are keep their sessions, lists and health.
    pub(crate) fn replace(&self, factory: &Factory, blueprints: &[Blueprint]) -> Result<(), String> {
        let before = self.backends();
        let mut errors = Vec::new();
        let mut backends = Backends::new();
        for blueprint in blueprints {
            let known = before.get(&blueprint.name).filter(|backend| backend.blueprint == *blueprint);
            let changed = || {
                factory.backend(blueprint).map(|backend| {
                    before.get(&blueprint.name).inspect(|before| backend.replace(before));
                    Arc::new(backend)
                })
            };
            match known.map_or_else(changed, |known| Ok(known.clone())) {
                Ok(backend) => drop(backends.insert(blueprint.name.clone(), backend)),
                Err(error) => errors.push(format!("backend {}: {error}", blueprint.name)),
            }
        }
        let is_same = backends.len() == before.len()
            && backends.values().zip(before.values()).all(|(one, other)| Arc::ptr_eq(one, other));
        if !is_same {
            *self.backends.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(backends);
            self.changed.send_modify(|count| *count += 1);
        }
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    pub(crate) fn backend(&self, name: &str) -> Option<Arc<Backend>> {
        self.backends().get(name).cloned()
    }

    /// Counts changes, of which each may change what clients see.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// What the client of this session sees. Its first request waits for backends that are being listed for the first
    /// time, for a while: others follow with `list_changed`.
    pub(crate) async fn catalog(&self, session: &ClientSession, caller: &Caller) -> Arc<Catalog> {
        let backends = self.backends();
        join_all(backends.values().map(|backend| self.prepare(session, backend, caller))).await;
        session.have_listed_all();
        self.current(session)
    }

    /// The same for a request that names something. If it is known who has that, other backends are not waited for.
    pub(crate) async fn catalog_with(
        &self,
        session: &ClientSession,
        caller: &Caller,
        find: impl Fn(&Catalog) -> Option<Found>,
    ) -> Arc<Catalog> {
        let known = self.current(session);
        let found = find(&known).filter(|found| self.is_certain(found, session));
        let Some(found) = found else { return self.catalog_until(session, caller, find).await };
        let Some(backend) = found.backend.and_then(|backend| self.backend(&backend)) else { return known };
        self.prepare(session, &backend, caller).await;
        self.current(session)
    }

    /// Waits for backends until it is known who has what a request names, and what that offers the caller.
    async fn catalog_until(
        &self,
        session: &ClientSession,
        caller: &Caller,
        find: impl Fn(&Catalog) -> Option<Found>,
    ) -> Arc<Catalog> {
        let backends = self.backends();
        let is_unprepared = |backend: &&Arc<Backend>| self.is_unprepared(session, backend);
        let unprepared: Vec<_> = backends.values().filter(is_unprepared).collect();
        let mut unread: BTreeSet<&str> = unprepared.iter().map(|backend| &*backend.name).collect();
        let prepared = unprepared.into_iter().map(async |backend| {
            self.prepare(session, backend, caller).await;
            &*backend.name
        });
        let mut prepared: FuturesUnordered<_> = prepared.collect();
        while let Some(backend) = prepared.next().await {
            unread.remove(backend);
            let known = self.current(session);
            let found = find(&known).filter(|found| self.is_certain(found, session));
            // What the backend that has it offers this caller is still to be read.
            let is_read = |found: Found| !found.backend.is_some_and(|backend| unread.contains(&*backend));
            if found.is_some_and(is_read) {
                return known;
            }
        }
        session.have_listed_all();
        self.current(session)
    }

    /// Whether no backend that has not been listed for this session could have what was found.
    fn is_certain(&self, found: &Found, session: &ClientSession) -> bool {
        let is_prefixed = match self.policy.aggregation.conflict_resolution.unwrap_or_default() {
            ConflictResolution::Prefix => found.is_named,
            ConflictResolution::Priority | ConflictResolution::Manual => false,
        };
        let is_listed =
            |backend: &Arc<Backend>| !self.is_for_each(backend) || session.has_tried_to_list(&backend.name);
        is_prefixed || (session.has_listed_all() && self.backends().values().all(is_listed))
    }

    fn is_unprepared(&self, session: &ClientSession, backend: &Backend) -> bool {
        !session.has_listed(&backend.name)
            || (self.is_for_each(backend) && session.needs_own_lists(&backend.name))
    }

    /// Makes sure that it is known what a backend offers this client, if it responds in time.
    async fn prepare(&self, session: &ClientSession, backend: &Arc<Backend>, caller: &Caller) {
        let shared = async {
            if !session.has_listed(&backend.name) {
                let listed = async {
                    backend.first_lists().await;
                    backend.fresh_lists().await;
                };
                timeout(limits::FIRST_LISTS_TIME, listed).await.ok();
                session.have_listed(&backend.name);
            }
        };
        let own = async {
            if self.is_for_each(backend) && session.needs_own_lists(&backend.name) {
                self.read_own(session, backend, caller).await;
            }
        };
        join(shared, own).await;
    }

    /// Whether what a backend offers may be different for each caller.
    pub(crate) fn is_for_each(&self, backend: &Backend) -> bool {
        self.policy.passes_headers || backend.credentials.depend_on_caller()
    }

    /// What the client would see now, for an announcement: it counts as seen when the client has requested it. What backends
    /// have announced to be different for this caller is read again.
    pub(crate) async fn announced(&self, session: &ClientSession, caller: &Caller) -> Arc<Catalog> {
        let backends = self.backends();
        let expired = backends.values().filter(|backend| session.has_expired_lists(&backend.name));
        join_all(expired.map(|backend| self.read_own(session, backend, caller))).await;
        self.peek(session)
    }

    /// What the client would see now, as far as that is known.
    pub(crate) fn peek(&self, session: &ClientSession) -> Arc<Catalog> {
        self.shared(&self.visible(session))
    }

    /// Reads what a backend offers this caller. If that fails, the caller sees what it was offered before, or else what the
    /// virtual server itself is offered: a call then fails with the reason.
    async fn read_own(&self, session: &ClientSession, backend: &Arc<Backend>, caller: &Caller) {
        let started = Instant::now();
        let read = async {
            if backend.is_cut_off() {
                return Err(BackendError::CircuitOpen);
            }
            let link = session.links.get(backend, caller).await?;
            let lists = backend.lists(&link, caller).await;
            if lists == Err(BackendError::SessionLost) {
                session.links.forget(backend, &link);
            }
            lists
        };
        let read = timeout(limits::FIRST_LISTS_TIME, read).await;
        match read.unwrap_or(Err(BackendError::Timeout(limits::FIRST_LISTS_TIME))) {
            Ok(lists) => session.set_own_lists(&backend.name, self.interned(backend, lists)),
            Err(error) => {
                warn!(backend = &*backend.name, %error, "a backend cannot be listed for a caller");
                session.set_unlisted(&backend.name, error.to_string(), started.elapsed());
            }
        }
    }

    /// The same lists, which other callers may have as well.
    fn interned(&self, backend: &Backend, lists: Lists) -> Arc<Lists> {
        let mut known = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|lists| lists.strong_count() > 0);
        let same = |known: Option<Arc<Lists>>| known.filter(|known| **known == lists);
        let found = same(backend.offered()).or_else(|| known.iter().find_map(|lists| same(lists.upgrade())));
        found.unwrap_or_else(|| {
            let lists = Arc::new(lists);
            if known.len() < KEPT {
                known.push(Arc::downgrade(&lists));
            }
            lists
        })
    }

    /// Lets a new session see the backends that are available now, whatever happens to them before its first request.
    pub(crate) fn pin(&self, session: &ClientSession) {
        let backends = self.backends();
        let available =
            backends.values().filter(|backend| backend.is_usable() && backend.offered().is_some());
        session.pin(available.map(|backend| backend.name.clone()));
    }

    /// The same without waiting.
    pub(crate) fn current(&self, session: &ClientSession) -> Arc<Catalog> {
        let epoch = *self.changed.borrow();
        if let Some(catalog) = session.catalog(epoch) {
            return catalog;
        }
        let members = self.visible(session);
        let catalog = self.shared(&members);
        session.see(epoch, catalog.clone(), members.into_iter().map(|member| member.backend));
        catalog
    }

    /// What the client could use if all backends were healthy. It may know a tool from another session, and a backend that
    /// fails its checks may still respond to a call, or to the next one.
    pub(crate) fn complete(&self, session: &ClientSession) -> Arc<Catalog> {
        self.shared(&self.members(session, |_| true))
    }

    /// The composite tools that clients do not see, and whether there are any at all. A tool that only the lists of single
    /// callers may have is not missed.
    pub(crate) fn composites(&self) -> Option<Vec<LeftOut>> {
        if self.policy.composites.is_empty() {
            return None;
        }
        let backends = self.backends();
        let is_listed = |backend: &Arc<Backend>| !self.is_for_each(backend) && backend.offered().is_some();
        let are_all_listed = backends.values().all(is_listed);
        let catalog = self.common();
        let is_certain =
            |left_out: &&LeftOut| are_all_listed || !matches!(left_out.reason, NotOffered::NoTool(_));
        Some(catalog.left_out.iter().filter(is_certain).cloned().collect())
    }

    /// What all backends offer the virtual server itself. Single callers may see something else.
    pub(crate) fn common(&self) -> Arc<Catalog> {
        let backends = self.backends();
        let members = backends
            .values()
            .filter_map(|backend| Some(Member { backend: backend.name.clone(), lists: backend.offered()? }));
        self.shared(&members.collect::<Vec<_>>())
    }

    /// The backends that this client sees: also those that have become unavailable since it saw them.
    fn visible(&self, session: &ClientSession) -> Vec<Member> {
        self.members(session, |backend| backend.is_usable() || session.has_seen(&backend.name))
    }

    /// Backends with what they offer this client.
    fn members(&self, session: &ClientSession, is_member: impl Fn(&Backend) -> bool) -> Vec<Member> {
        let backends = self.backends();
        let members = backends.values().filter(|backend| is_member(backend)).filter_map(|backend| {
            let own = session.own_lists(&backend.name).filter(|_| self.is_for_each(backend));
            Some(Member { backend: backend.name.clone(), lists: own.or_else(|| backend.offered())? })
        });
        members.collect()
    }

    /// The catalog of these lists, which others may have as well.
    fn shared(&self, members: &[Member]) -> Arc<Catalog> {
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.retain(|(_, catalog)| catalog.strong_count() > 0);
        let known = catalogs.iter().find(|(known, _)| is_same(known, members));
        if let Some(catalog) = known.and_then(|(_, catalog)| catalog.upgrade()) {
            return catalog;
        }
        let catalog = Arc::new(Catalog::new(
            members,
            &self.policy.aggregation,
            &self.policy.composites,
            self.policy.own_tools,
        ));
        if catalogs.len() < KEPT {
            catalogs.push((members.to_vec(), Arc::downgrade(&catalog)));
        }
        catalog
    }
}

fn is_same(one: &[Member], other: &[Member]) -> bool {
    let same = |(one, other): (&Member, &Member)| {
        one.backend == other.backend && Arc::ptr_eq(&one.lists, &other.lists)
    };
    one.len() == other.len() && one.iter().zip(other).all(same)
}
