//! The keys of an issuer, as they are now.
//!
//! Keys are fetched when the first token comes, and again when they are old, beside the requests that use them. A
//! token that names a key which is not known waits for one more fetch, which begins after it came: so a key that the
//! issuer has just begun to use is found, and no valid request is lost. All that wait share one fetch, fetches have a
//! pause between them, and a key that was not found is not looked for again for a while: tokens with made-up keys
//! cannot turn into a flood at the issuer.

mod pace;
mod set;
mod source;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::{Mutex as Turn, OwnedMutexGuard, Semaphore},
    time::{Instant, sleep_until, timeout},
};
use tracing::warn;

use crate::{Refusal, limits};
pub use pace::Pace;
pub(crate) use set::KeySet;
pub(crate) use source::Source;

const UNKNOWN: Refusal = Refusal::Token("the issuer has no key with the id that the token names (kid)");

/// The keys of one issuer.
pub(crate) struct Keys(Arc<Shared>);

struct Shared {
    source: Source,
    pace: Pace,
    state: Mutex<State>,
    /// Whose turn it is to fetch.
    turn: Arc<Turn<()>>,
    places: Semaphore,
}

#[derive(Default)]
struct State {
    /// The keys, and when it was begun to fetch them.
    set: Option<(Arc<KeySet>, Instant)>,
    /// When the last fetch began.
    begun: Option<Instant>,
    /// When the last fetch failed, if it did.
    failed: Option<Instant>,
    /// The ids that were looked for in vain, and when.
    missing: HashMap<String, Instant>,
}

impl Keys {
    pub(crate) fn new(source: Source, pace: Pace) -> Self {
        let (state, turn) = (Mutex::default(), Arc::default());
        Self(Arc::new(Shared { source, pace, state, turn, places: Semaphore::new(limits::WAITING) }))
    }

    /// Keys with one of that id among them.
    pub(crate) async fn with(&self, id: &str) -> Result<Arc<KeySet>, Refusal> {
        let came = Instant::now();
        if let Some(known) = self.known(id) {
            return known;
        }
        let _place = self.0.places.try_acquire().map_err(|_| Refusal::Unavailable)?;
        let turn = self.0.turn.clone().lock_owned().await;
        // Whoever had the turn before may have found it.
        if self.0.asked_since(came) || self.0.knows(id) {
            drop(turn);
        } else {
            // Those who wait depend on it also when this request is given up.
            tokio::spawn(self.0.clone().fetch(turn)).await.ok();
        }
        self.0.outcome(id)
    }

    /// What can be said without waiting.
    fn known(&self, id: &str) -> Option<Result<Arc<KeySet>, Refusal>> {
        let pace = &self.0.pace;
        let state = self.0.state();
        if let Some(set) = self.0.usable(&state) {
            if set.has(id) {
                let old = state.set.as_ref().is_some_and(|(_, fetched)| fetched.elapsed() >= pace.fresh);
                let rested = state.begun.is_none_or(|begun| begun.elapsed() >= pace.retry);
                if old && rested {
                    self.refresh();
                }
                return Some(Ok(set));
            }
            if state.missing.get(id).is_some_and(|since| since.elapsed() < pace.missing) {
                return Some(Err(UNKNOWN));
            }
        }
        let failed = state.failed.is_some_and(|failed| failed.elapsed() < pace.pause);
        failed.then_some(Err(Refusal::Unavailable))
    }

    /// Fetches beside the request, unless somebody does already.
    fn refresh(&self) {
        if let Ok(turn) = self.0.turn.clone().try_lock_owned() {
            tokio::spawn(self.0.clone().fetch(turn));
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is an answer for those who came at that time: a fetch that began later, or one that failed later.
    fn asked_since(&self, came: Instant) -> bool {
        let state = self.state();
        state.begun.is_some_and(|begun| begun >= came) || state.failed.is_some_and(|failed| failed >= came)
    }

    fn knows(&self, id: &str) -> bool {
        self.usable(&self.state()).is_some_and(|set| set.has(id))
    }

    /// The keys, if they are not too old.
    fn usable(&self, state: &State) -> Option<Arc<KeySet>> {
        let set = state.set.as_ref().filter(|(_, fetched)| fetched.elapsed() < self.pace.stale);
        set.map(|(set, _)| set.clone())
    }

    async fn fetch(self: Arc<Self>, turn: OwnedMutexGuard<()>) {
        let last = self.state().begun;
        if let Some(last) = last {
            sleep_until(last + self.pace.pause).await;
        }
        let begun = Instant::now();
        self.state().begun = Some(begun);
        let fetched = timeout(limits::FETCH_TIME, self.source.fetch()).await;
        let mut state = self.state();
        match fetched {
            Ok(Ok(set)) => {
                let pace = &self.pace;
                state.missing.retain(|id, since| !set.has(id) && begun.duration_since(*since) < pace.missing);
                state.set = Some((Arc::new(set), begun));
                state.failed = None;
            }
            Ok(Err(error)) => {
                warn!(%error, "the keys of the issuer cannot be fetched");
                state.failed = Some(Instant::now());
            }
            Err(_) => {
                warn!("the keys of the issuer cannot be fetched in time");
                state.failed = Some(Instant::now());
            }
        }
        drop(state);
        drop(turn);
    }

    /// What a fetch has brought for a key that was not known.
    fn outcome(&self, id: &str) -> Result<Arc<KeySet>, Refusal> {
        let mut state = self.state();
        match self.usable(&state) {
            Some(set) if set.has(id) => return Ok(set),
            Some(_) if state.failed.is_none() => {}
            _ => return Err(Refusal::Unavailable),
        }
        if state.missing.len() < limits::MISSING_KEYS {
            state.missing.insert(id.to_owned(), Instant::now());
        }
        Err(UNKNOWN)
    }
}
