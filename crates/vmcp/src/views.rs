//! What each client sees: the catalog of the backends that it can use. It is computed once for each set of lists, and
//! shared by all sessions that see the same.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

use futures::future::join_all;
use skep_api::vmcp::Aggregation;
use tokio::{sync::watch, time::timeout};

use crate::{
    backend::Backend,
    catalog::{Catalog, Member},
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
    aggregation: Aggregation,
    /// Counts changes of any backend.
    changed: Arc<watch::Sender<u64>>,
    catalogs: Mutex<Vec<(Vec<Member>, Weak<Catalog>)>>,
}

impl Views {
    pub(crate) fn new(
        backends: Backends,
        aggregation: Aggregation,
        changed: Arc<watch::Sender<u64>>,
    ) -> Self {
        Self { backends: RwLock::new(Arc::new(backends)), aggregation, changed, catalogs: Mutex::default() }
    }

    pub(crate) fn backends(&self) -> Arc<Backends> {
        self.backends.read().unwrap_or_else(PoisonError::into_inner).clone()
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
    pub(crate) async fn catalog(&self, session: &ClientSession) -> Arc<Catalog> {
        let backends = self.backends();
        if session.last_catalog().is_none() {
            let listed = join_all(backends.values().map(|backend| async {
                backend.first_lists().await;
                backend.fresh_lists().await;
            }));
            timeout(limits::FIRST_LISTS_TIME, listed).await.ok();
        }
        self.current(session)
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
        let backends = self.backends();
        let seen = backends.values().filter(|backend| backend.is_usable() || session.has_seen(&backend.name));
        let members: Vec<Member> = seen
            .filter_map(|backend| Some(Member { backend: backend.name.clone(), lists: backend.offered()? }))
            .collect();
        let catalog = self.shared(&members);
        session.see(epoch, catalog.clone(), members.into_iter().map(|member| member.backend));
        catalog
    }

    /// The catalog of these lists, which others may have as well.
    fn shared(&self, members: &[Member]) -> Arc<Catalog> {
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.retain(|(_, catalog)| catalog.strong_count() > 0);
        let known = catalogs.iter().find(|(known, _)| is_same(known, members));
        if let Some(catalog) = known.and_then(|(_, catalog)| catalog.upgrade()) {
            return catalog;
        }
        let catalog = Arc::new(Catalog::new(members, &self.aggregation));
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
