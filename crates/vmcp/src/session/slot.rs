//! The session of one client at one backend. A task of its own opens it, and not the request that needs it first: others may need
//! it, too, and a backend that was sent `initialize` has a session, whoever has left since.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use skep_mcp::Era;
use tokio::{
    sync::{Semaphore, mpsc, watch},
    time::timeout,
};

use crate::{
    backend::{Backend, BackendError, Caller, Link},
    limits,
};

/// A session at a backend that is no longer needed.
pub(crate) struct Opened {
    pub(crate) backend: Arc<Backend>,
    pub(crate) link: Arc<Link>,
    /// For whom it was opened.
    pub(crate) caller: Caller,
    /// The client's session, if other replicas may use it.
    pub(crate) shared: Option<Box<str>>,
}

/// Where sessions at backends are sent to be ended.
#[derive(Clone)]
pub(crate) struct Ended {
    queue: mpsc::Sender<Opened>,
    /// Places for those that are still being opened when the client's session ends.
    unopened: Arc<Semaphore>,
}

impl Ended {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Opened>) {
        let (queue, ending) = mpsc::channel(limits::ENDING_SESSIONS);
        (Self { queue, unopened: Arc::new(Semaphore::new(limits::ENDING_UNOPENED)) }, ending)
    }

    /// If very many end at once, backends expire the rest by themselves.
    fn send(&self, opened: Opened) {
        self.queue.try_send(opened).ok();
    }
}

/// Opens the sessions of one client.
pub(super) struct LinkOpener {
    /// The capabilities of the client, and its era.
    pub(super) client: Arc<str>,
    pub(super) era: Era,
    /// The client's session, if other replicas may use it.
    pub(super) shared: Option<Box<str>>,
    pub(super) ended: Ended,
    /// Counts sessions that are opened.
    pub(super) opened: watch::Sender<u64>,
    /// Whether the client's session has ended.
    pub(super) is_over: watch::Sender<bool>,
}

/// The session at one backend. When nobody has it any more, it is ended there.
pub(super) struct Slot {
    opener: Arc<LinkOpener>,
    state: Mutex<State>,
    /// Whether it lacks what the client has set, as it has just been opened.
    is_new: AtomicBool,
}

#[derive(Default)]
struct State {
    opened: Option<Opened>,
    opening: Option<Opening>,
}

/// A session that is being opened.
struct Opening {
    backend: Arc<Backend>,
    outcome: watch::Receiver<Option<Outcome>>,
}

/// What all who wait for a session get.
type Outcome = Result<Arc<Link>, BackendError>;

impl Opening {
    /// Whether it is for this backend, and its task goes on.
    fn is_for(&self, backend: &Arc<Backend>) -> bool {
        Arc::ptr_eq(&self.backend, backend) && self.outcome.has_changed().is_ok()
    }
}

impl Slot {
    pub(super) fn new(opener: Arc<LinkOpener>) -> Self {
        Self { opener, state: Mutex::default(), is_new: AtomicBool::default() }
    }

    /// The session at this backend: the one that is open or being opened, or else one that another replica has opened, or a new one.
    pub(super) async fn get(
        self: &Arc<Self>,
        backend: &Arc<Backend>,
        caller: &Caller,
        resumed: impl FnOnce() -> Option<Link>,
    ) -> Outcome {
        let mut outcome = {
            let mut state = self.state();
            // One that was replaced by another of its name has another session.
            if let Some(opened) = state.opened.as_ref().filter(|opened| Arc::ptr_eq(&opened.backend, backend))
            {
                return Ok(opened.link.clone());
            }
            match state.opening.as_ref().filter(|opening| opening.is_for(backend)) {
                Some(opening) => opening.outcome.clone(),
                None => match resumed() {
                    Some(link) => {
                        self.is_new.store(false, Ordering::Relaxed);
                        return Ok(self.put(&mut state, self.opened_link(backend, link, caller.clone())));
                    }
                    None => self.begin(&mut state, backend, caller),
                },
            }
        };
        let outcome = outcome.wait_for(Option::is_some).await;
        outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or(Err(BackendError::Broken))
    }

    /// Begins to open a session.
    fn begin(
        self: &Arc<Self>,
        state: &mut State,
        backend: &Arc<Backend>,
        caller: &Caller,
    ) -> watch::Receiver<Option<Outcome>> {
        let (sender, outcome) = watch::channel(None);
        state.opening = Some(Opening { backend: backend.clone(), outcome: outcome.clone() });
        let (slot, backend, caller) = (self.clone(), backend.clone(), caller.clone());
        tokio::spawn(async move {
            let Some(link) = slot.open(&backend, &caller).await else { return };
            sender.send_replace(Some(slot.finish(&backend, link, caller)));
        });
        outcome
    }

    /// Opens a session. If that of the client ends meanwhile, it can be ended only once it is known.
    async fn open(&self, backend: &Arc<Backend>, caller: &Caller) -> Option<Result<Link, BackendError>> {
        let opener = &self.opener;
        let time = backend.timeout.saturating_mul(limits::OPENING_TIMES);
        let opened = timeout(time, backend.open(caller, &opener.client, opener.era));
        let mut opened = std::pin::pin!(async { opened.await.unwrap_or(Err(BackendError::TooLong(time))) });
        let mut is_over = opener.is_over.subscribe();
        let is_over = async { drop(is_over.wait_for(|is_over| *is_over).await) };
        tokio::select! {
            biased;
            opened = &mut opened => Some(opened),
            () = is_over => {
                let _place = opener.ended.unopened.try_acquire().ok()?;
                Some(opened.await)
            }
        }
    }

    fn finish(&self, backend: &Arc<Backend>, link: Result<Link, BackendError>, caller: Caller) -> Outcome {
        let mut state = self.state();
        let is_current = |opening: &mut Opening| Arc::ptr_eq(&opening.backend, backend);
        let is_current = state.opening.take_if(is_current).is_some();
        let opened = self.opened_link(backend, link?, caller);
        if !is_current {
            // Another backend of this name has taken its place.
            self.opener.ended.send(opened);
            return Err(BackendError::SessionLost);
        }
        self.is_new.store(true, Ordering::Relaxed);
        Ok(self.put(&mut state, opened))
    }

    fn opened_link(&self, backend: &Arc<Backend>, link: Link, caller: Caller) -> Opened {
        Opened { backend: backend.clone(), link: Arc::new(link), caller, shared: self.opener.shared.clone() }
    }

    fn put(&self, state: &mut State, opened: Opened) -> Arc<Link> {
        let link = opened.link.clone();
        // That of a backend which another has replaced.
        if let Some(before) = state.opened.replace(opened) {
            self.opener.ended.send(before);
        }
        self.opener.opened.send_modify(|count| *count += 1);
        link
    }

    /// Whether it lacks what the client has set. It is restored by the first who learns that.
    pub(super) fn take_new(&self) -> bool {
        self.is_new.swap(false, Ordering::Relaxed)
    }

    /// Forgets a session that the backend has lost, unless another has been opened already.
    pub(super) fn forget(&self, lost: &Arc<Link>) {
        self.state().opened.take_if(|opened| Arc::ptr_eq(&opened.link, lost));
    }

    /// The session, if it is open, and its backend.
    pub(super) fn opened(&self) -> Option<(Arc<Backend>, Arc<Link>)> {
        self.state().opened.as_ref().map(|opened| (opened.backend.clone(), opened.link.clone()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(opened) = self.state().opened.take() {
            self.opener.ended.send(opened);
        }
    }
}
