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
use tokio::sync::{Notify, mpsc, watch};

use crate::backend::{Backend, BackendError, Caller, Link, Resumable};

/// A session at a backend that is no longer needed.
pub(crate) struct Opened {
    pub(crate) backend: Arc<Backend>,
    pub(crate) link: Arc<Link>,
    /// For whom it was opened.
    pub(crate) caller: Caller,
    /// The client's session, if other replicas may use it.
    pub(crate) shared: Option<Box<str>>,
}

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

/// The id at a backend of a client's request, both as they are spelled, where replicas share its session.
pub(crate) fn shared_id(id: &str) -> Option<Box<str>> {
    (id.len() <= SHARED_ID).then(|| Value::from(format!("of-client-{id}")).to_string().into())
}

/// A request that was cancelled.
pub(crate) struct Cancelled {
    pub(crate) backend: Arc<str>,
    pub(crate) link: Option<Arc<Link>>,
    /// Its id there, as it is spelled.
    pub(crate) id: Box<str>,
}

/// Where sessions at backends are sent to be ended.
pub(crate) type Ended = mpsc::Sender<Opened>;

/// The sessions of one client at its backends.
pub(crate) struct Links {
    slots: Mutex<HashMap<Arc<str>, Arc<Slot>>>,
    /// Requests without a response yet, by the ids that the client gave them.
    in_flight: Mutex<HashMap<Box<str>, Forwarded>>,
    /// Sessions that another replica has opened.
    resumable: Mutex<BTreeMap<String, Resumable>>,
    /// The capabilities of the client, and its era.
    client: Arc<str>,
    era: Era,
    /// The client's session, if other replicas may use it.
    pub(crate) shared: Option<Box<str>>,
    ended: Ended,
    /// Counts sessions that are opened.
    opened: watch::Sender<u64>,
}

/// The session at one backend.
#[derive(Default)]
struct Slot {
    opened: Mutex<Option<Opened>>,
    /// Whether it lacks what the client has set, as it has just been opened.
    is_new: AtomicBool,
    /// Held while it is being opened: requests that need it wait, and nothing else does.
    opening: tokio::sync::Mutex<()>,
}

impl Slot {
    fn opened(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session at this backend. One that was replaced by another of its name has another session.
    fn link(&self, backend: &Arc<Backend>) -> Option<Arc<Link>> {
        let opened = self.opened();
        let opened = opened.as_ref().filter(|opened| Arc::ptr_eq(&opened.backend, backend))?;
        Some(opened.link.clone())
    }
}

impl Links {
    pub(crate) fn new(client: Arc<str>, era: Era, shared: Option<Box<str>>, ended: Ended) -> Self {
        Self {
            slots: Mutex::default(),
            in_flight: Mutex::default(),
            resumable: Mutex::default(),
            client,
            era,
            shared,
            ended,
            opened: watch::Sender::new(0),
        }
    }

    /// Counts sessions that are opened, in place of others or not.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.opened.subscribe()
    }

    /// The session at a backend, which is opened if there is none.
    pub(crate) async fn get(
        &self,
        backend: &Arc<Backend>,
        caller: &Caller,
    ) -> Result<Arc<Link>, BackendError> {
        let slot = self.slots().entry(backend.name.clone()).or_default().clone();
        if let Some(link) = slot.link(backend) {
            return Ok(link);
        }
        let _opening = slot.opening.lock().await;
        if let Some(link) = slot.link(backend) {
            return Ok(link);
        }
        let resumable = self.resumable().remove(&*backend.name);
        let (link, is_new) = match resumable.and_then(|known| backend.resume(&known, &self.client)) {
            Some(link) => (link, false),
            None => (backend.open(caller, &self.client, self.era).await?, true),
        };
        let (link, shared) = (Arc::new(link), self.shared.clone());
        let opened = Opened { backend: backend.clone(), link: link.clone(), caller: caller.clone(), shared };
        slot.is_new.store(is_new, Ordering::Relaxed);
        // That of a backend which another has replaced.
        if let Some(before) = slot.opened().replace(opened) {
            self.ended.try_send(before).ok();
        }
        self.opened.send_modify(|count| *count += 1);
        Ok(link)
    }

    /// Whether a session lacks what the client has set. It is restored by the first who learns that.
    pub(crate) fn take_new(&self, backend: &Backend) -> bool {
        let slot = self.slots().get(&backend.name).cloned();
        slot.is_some_and(|slot| slot.is_new.swap(false, Ordering::Relaxed))
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
            slot.opened().take_if(|opened| Arc::ptr_eq(&opened.link, lost));
        }
    }

    /// Those that are open. One that is being opened is not.
    pub(crate) fn open(&self) -> Vec<(Arc<Backend>, Arc<Link>)> {
        let of = |slot: &Arc<Slot>| {
            slot.opened().as_ref().map(|opened| (opened.backend.clone(), opened.link.clone()))
        };
        self.slots().values().filter_map(of).collect()
    }

    /// The session at a backend, if it is open.
    pub(crate) fn opened(&self, backend: &str) -> Option<Arc<Link>> {
        let slot = self.slots().get(backend).cloned()?;
        let opened = slot.opened();
        opened.as_ref().map(|opened| opened.link.clone())
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
        let is_shared = numbering == Numbering::Shared && self.shared.is_some();
        // No two requests in flight may have one id, whatever the client does.
        let shared = shared_id(id).filter(|_| is_shared && !in_flight.contains_key(id));
        let there = shared.unwrap_or_else(|| number.to_string().into());
        let cancellation = Arc::new(Cancellation::default());
        let forwarded =
            Forwarded { backend: backend.clone(), id: there.clone(), cancellation: cancellation.clone() };
        in_flight.insert(id.into(), forwarded);
        (there, cancellation)
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
    /// that.
    pub(crate) fn cancel(&self, id: &str) -> Option<Cancelled> {
        let in_flight = self.in_flight();
        let forwarded = in_flight.get(id)?;
        let link = self.opened(&forwarded.backend);
        forwarded.cancellation.is_told.store(link.is_some(), Ordering::Relaxed);
        forwarded.cancellation.cancelled.notify_one();
        Some(Cancelled { backend: forwarded.backend.clone(), link, id: forwarded.id.clone() })
    }

    fn in_flight(&self) -> MutexGuard<'_, HashMap<Box<str>, Forwarded>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// They end with the client's session, however it ends. If very many end at once, backends expire the rest by themselves.
impl Drop for Links {
    fn drop(&mut self) {
        let slots = std::mem::take(&mut *self.slots());
        for slot in slots.into_values().filter_map(Arc::into_inner) {
            if let Some(opened) = slot.opened().take() {
                self.ended.try_send(opened).ok();
            }
        }
    }
}
