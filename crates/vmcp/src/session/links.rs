//! The sessions of one client at its backends. Each is opened when it is first needed, and kept.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;
use skep_mcp::Era;
use tokio::sync::{Notify, watch};

use super::{
    given_up::GivenUp,
    slot::{Ended, LinkOpener, Slot},
};
use crate::backend::{Backend, BackendError, Caller, Link, Resumable};

/// A request without a response yet.
struct Forwarded {
    backend: Arc<str>,
    /// Its id there, as it is spelled.
    id: Box<str>,
    cancellation: Arc<Cancellation>,
}

/// Whether the client has cancelled a request.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    cancelled: Notify,
    is_told: AtomicBool,
}

impl Cancellation {
    /// Completes when it has, for one who waits.
    pub(super) async fn cancelled(&self) {
        self.cancelled.notified().await;
    }

    /// Whether the backend has been sent that.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Relaxed)
    }
}

/// What a backend is sent of the requests of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// An id that other replicas can compute, so that the request can be cancelled at any of them.
    Shared,
    /// The number of the request.
    Own,
}

/// The longest id of a client that is a part of the id at a backend.
const SHARED_ID: usize = 128;

/// The id at a backend of a client's request, both as they are spelled, where replicas share its session. Requests with this id may
/// have been given up before.
fn shared_id(id: &str, given_up: u64) -> Option<Box<str>> {
    let again = if given_up == 0 { String::new() } else { format!("-{given_up}") };
    (id.len() <= SHARED_ID).then(|| Value::from(format!("of-client-{id}{again}")).to_string().into())
}

/// A request that was cancelled.
pub(crate) struct Cancelled {
    pub(crate) backend: Arc<str>,
    pub(crate) link: Option<Arc<Link>>,
    /// Its id there, as it is spelled.
    pub(crate) id: Box<str>,
}

/// The sessions of one client at its backends.
pub(crate) struct Links {
    slots: Mutex<HashMap<Arc<str>, Arc<Slot>>>,
    /// Requests without a response yet, by the ids that the client gave them.
    in_flight: Mutex<HashMap<Box<str>, Forwarded>>,
    /// Sessions that another replica has opened.
    resumable: Mutex<BTreeMap<String, Resumable>>,
    /// Requests to which a backend may still respond.
    pub(super) given_up: GivenUp,
    opener: Arc<LinkOpener>,
}

impl Links {
    pub(crate) fn new(client: Arc<str>, era: Era, shared: Option<Box<str>>, ended: Ended) -> Self {
        Self {
            slots: Mutex::default(),
            in_flight: Mutex::default(),
            resumable: Mutex::default(),
            given_up: GivenUp::default(),
            opener: Arc::new(LinkOpener {
                client,
                era,
                shared,
                ended,
                opened: watch::Sender::new(0),
                is_over: watch::Sender::new(false),
            }),
        }
    }

    /// The client's session, if other replicas may use it.
    pub(crate) fn shared(&self) -> Option<&str> {
        self.opener.shared.as_deref()
    }

    /// Counts sessions that are opened, in place of others or not.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.opener.opened.subscribe()
    }

    /// The session at a backend, which is opened if there is none: once, for all who wait for it.
    pub(crate) async fn get(
        &self,
        backend: &Arc<Backend>,
        caller: &Caller,
    ) -> Result<Arc<Link>, BackendError> {
        let new = || Arc::new(Slot::new(self.opener.clone()));
        let slot = self.slots().entry(backend.name.clone()).or_insert_with(new).clone();
        let resumed = || {
            let known = self.resumable().remove(&*backend.name)?;
            backend.resume(&known, &self.opener.client)
        };
        slot.get(backend, caller, resumed).await
    }

    /// Whether a session lacks what the client has set. It is restored by the first who learns that.
    pub(crate) fn take_new(&self, backend: &Backend) -> bool {
        let slot = self.slots().get(&backend.name).cloned();
        slot.is_some_and(|slot| slot.take_new())
    }

    /// Whether there is a session at a backend, here or at another replica.
    pub(crate) fn has(&self, backend: &Backend) -> bool {
        self.opened(&backend.name).is_some() || self.resumable().contains_key(&*backend.name)
    }

    /// The session at a backend, if there is one, here or at another replica.
    pub(crate) async fn existing(&self, backend: &Arc<Backend>, caller: &Caller) -> Option<Arc<Link>> {
        match self.opened(&backend.name) {
            Some(link) => Some(link),
            None if self.resumable().contains_key(&*backend.name) => self.get(backend, caller).await.ok(),
            None => None,
        }
    }

    /// Lets sessions be used that another replica has opened.
    pub(crate) fn set_resumable(&self, known: BTreeMap<String, Resumable>) {
        *self.resumable() = known;
    }

    /// All sessions that another replica could use.
    pub(crate) fn resumable_by_others(&self) -> BTreeMap<String, Resumable> {
        let mut all = self.resumable().clone();
        for (backend, link) in self.open() {
            all.extend(link.resumable().map(|link| (backend.name.to_string(), link)));
        }
        all
    }

    fn resumable(&self) -> MutexGuard<'_, BTreeMap<String, Resumable>> {
        self.resumable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a session that the backend has lost, unless another has been opened already.
    pub(crate) fn forget(&self, backend: &Backend, lost: &Arc<Link>) {
        // Other replicas may not know yet that it is lost.
        self.resumable()
            .retain(|name, known| **name != *backend.name || lost.resumable().as_ref() != Some(known));
        let slot = self.slots().get(&backend.name).cloned();
        if let Some(slot) = slot {
            slot.forget(lost);
        }
    }

    /// Those that are open. One that is being opened is not.
    pub(crate) fn open(&self) -> Vec<(Arc<Backend>, Arc<Link>)> {
        self.slots().values().filter_map(|slot| slot.opened()).collect()
    }

    /// The session at a backend, if it is open.
    pub(crate) fn opened(&self, backend: &str) -> Option<Arc<Link>> {
        let slot = self.slots().get(backend).cloned()?;
        slot.opened().map(|(_, link)| link)
    }

    /// Records a request, for as long as it is in flight. Returns its id at the backend, as it is spelled, and what is notified when
    /// the client cancels it.
    pub(super) fn begin(
        &self,
        id: &str,
        backend: &Arc<str>,
        number: u64,
        numbering: Numbering,
    ) -> (Box<str>, Arc<Cancellation>) {
        let mut in_flight = self.in_flight();
        let is_shared = numbering == Numbering::Shared && self.shared().is_some();
        // No two requests in flight may have one id, whatever the client does.
        let shared = self.shared_id(id).filter(|_| is_shared && !in_flight.contains_key(id));
        let there = shared.unwrap_or_else(|| number.to_string().into());
        let cancellation = Arc::new(Cancellation::default());
        let forwarded =
            Forwarded { backend: backend.clone(), id: there.clone(), cancellation: cancellation.clone() };
        in_flight.insert(id.into(), forwarded);
        (there, cancellation)
    }

    /// The id at a backend of a request that another replica may have sent there.
    pub(crate) fn shared_id(&self, id: &str) -> Option<Box<str>> {
        shared_id(id, self.given_up.times(id)).filter(|_| self.shared().is_some())
    }

    /// The same for a request that is sent again, whose backend has it already.
    pub(super) fn begin_again(&self, id: &str, backend: &Arc<str>, there: &str) -> Arc<Cancellation> {
        let cancellation = Arc::new(Cancellation::default());
        let forwarded =
            Forwarded { backend: backend.clone(), id: there.into(), cancellation: cancellation.clone() };
        self.in_flight().insert(id.into(), forwarded);
        cancellation
    }

    /// The request has its response. Another one may have its id by now.
    pub(super) fn end(&self, id: &str, cancellation: &Arc<Cancellation>) {
        let mut in_flight = self.in_flight();
        if in_flight.get(id).is_some_and(|known| Arc::ptr_eq(&known.cancellation, cancellation)) {
            in_flight.remove(id);
        }
    }

    /// Cancels a request in flight. Returns the session at its backend, if that is open, and its id there: the backend is to be sent
    /// that, once.
    pub(crate) fn cancel(&self, id: &str) -> Option<Cancelled> {
        let in_flight = self.in_flight();
        let forwarded = in_flight.get(id)?;
        let link = self.opened(&forwarded.backend);
        let was_told = forwarded.cancellation.is_told.swap(link.is_some(), Ordering::Relaxed);
        forwarded.cancellation.cancelled.notify_one();
        let link = link.filter(|_| !was_told);
        Some(Cancelled { backend: forwarded.backend.clone(), link, id: forwarded.id.clone() })
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<Box<str>, Forwarded>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sessions at backends end with the client's session, however it ends.
impl Drop for Links {
    fn drop(&mut self) {
        self.opener.is_over.send_replace(true);
    }
}
