//! The current keys of an issuer.
//!
//! Keys are fetched for the first token, and again when they are old, in the background of the requests that use
//! them. A token with an unknown key waits for one more fetch, which starts after its arrival: so a key that the
//! issuer has just started to use is fetched, and no valid request is lost. All that wait share one fetch, fetches have
//! a pause between them, and an unknown key is not fetched again for a while: tokens with made-up keys cannot cause a
//! flood of requests to the issuer.

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

use crate::{AuthenticationError, limits};
pub use pace::Pace;
pub(crate) use set::KeySet;
pub(crate) use source::Source;

const UNKNOWN: AuthenticationError =
    AuthenticationError::Token("the issuer has no key with the id that the token names (kid)");

/// The keys of one issuer.
pub(crate) struct Keys(Arc<Shared>);

struct Shared {
    source: Source,
    pace: Pace,
    state: Mutex<State>,
    /// Held by the task that fetches.
    turn: Arc<Turn<()>>,
    places: Semaphore,
}

#[derive(Default)]
struct State {
    /// The keys, and when their fetch started.
    set: Option<(Arc<KeySet>, Instant)>,
    /// When the last fetch started.
    started: Option<Instant>,
    /// The failure of the last fetch, if it failed.
    failed: Option<Failure>,
    /// The ids that the issuer did not have, and when.
    missing: HashMap<String, Instant>,
}

struct Failure {
    at: Instant,
    cause: String,
}

impl Keys {
    pub(crate) fn new(source: Source, pace: Pace) -> Self {
        let (state, turn) = (Mutex::default(), Arc::default());
        Self(Arc::new(Shared { source, pace, state, turn, places: Semaphore::new(limits::WAITING) }))
    }

    /// Keys that include one with that id.
    pub(crate) async fn with(&self, id: &str) -> Result<Arc<KeySet>, AuthenticationError> {
        let came = Instant::now();
        if let Some(known) = self.known(id) {
            return known;
        }
        let _place = self.0.places.try_acquire().map_err(|_| AuthenticationError::Unavailable)?;
        let turn = self.0.turn.clone().lock_owned().await;
        // The previous fetch may have brought it.
        if self.0.fetched_since(came) || self.0.knows(id) {
            drop(turn);
        } else {
            // Other requests wait for it even if this one is cancelled.
            tokio::spawn(self.0.clone().fetch(turn)).await.ok();
        }
        self.0.outcome(id)
    }

    /// Fetches the keys, unless there are some already. The error is why there are none.
    pub(crate) async fn check(&self) -> Result<(), String> {
        let came = Instant::now();
        if self.0.has_keys() {
            return Ok(());
        }
        let turn = self.0.turn.clone().lock_owned().await;
        if self.0.has_keys() || self.0.fetched_since(came) {
            drop(turn);
        } else {
            tokio::spawn(self.0.clone().fetch(turn)).await.ok();
        }
        let state = self.0.state();
        match &state.failed {
            Some(failure) if self.0.usable(&state).is_none() => Err(failure.cause.clone()),
            _ => Ok(()),
        }
    }

    /// The result, if it is known without a fetch.
    fn known(&self, id: &str) -> Option<Result<Arc<KeySet>, AuthenticationError>> {
        let pace = &self.0.pace;
        let state = self.0.state();
        if let Some(set) = self.0.usable(&state) {
            if set.has(id) {
                let old = state.set.as_ref().is_some_and(|(_, fetched)| fetched.elapsed() >= pace.fresh);
                let pause_over = state.started.is_none_or(|started| started.elapsed() >= pace.retry);
                if old && pause_over {
                    self.refresh();
                }
                return Some(Ok(set));
            }
            if state.missing.get(id).is_some_and(|since| since.elapsed() < pace.missing) {
                return Some(Err(UNKNOWN));
            }
        }
        let failed = state.failed.as_ref().is_some_and(|failure| failure.at.elapsed() < pace.pause);
        failed.then_some(Err(AuthenticationError::Unavailable))
    }

    /// Starts a fetch in the background, unless one is running.
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

    /// Whether a fetch started, or failed, after that time.
    fn fetched_since(&self, came: Instant) -> bool {
        let state = self.state();
        state.started.is_some_and(|started| started >= came)
            || state.failed.as_ref().is_some_and(|failure| failure.at >= came)
    }

    fn has_keys(&self) -> bool {
        self.usable(&self.state()).is_some()
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
        let last = self.state().started;
        if let Some(last) = last {
            sleep_until(last + self.pace.pause).await;
        }
        let started = Instant::now();
        self.state().started = Some(started);
        let fetched = timeout(limits::FETCH_TIME, self.source.fetch()).await;
        let mut state = self.state();
        match fetched {
            Ok(Ok(set)) => {
                let pace = &self.pace;
                state
                    .missing
                    .retain(|id, since| !set.has(id) && started.duration_since(*since) < pace.missing);
                state.set = Some((Arc::new(set), started));
                state.failed = None;
            }
            Ok(Err(error)) => {
                warn!(%error, "failed to fetch the issuer's keys");
                state.failed = Some(Failure { at: Instant::now(), cause: error.to_string() });
            }
            Err(_) => {
                warn!("timeout fetching the issuer's keys");
                state.failed =
                    Some(Failure { at: Instant::now(), cause: "the issuer did not respond in time".into() });
            }
        }
        drop(state);
        drop(turn);
    }

    /// The result for an unknown key after a fetch.
    fn outcome(&self, id: &str) -> Result<Arc<KeySet>, AuthenticationError> {
        let mut state = self.state();
        match self.usable(&state) {
            Some(set) if set.has(id) => return Ok(set),
            Some(_) if state.failed.is_none() => {}
            _ => return Err(AuthenticationError::Unavailable),
        }
        if state.missing.len() < limits::MISSING_KEYS {
            state.missing.insert(id.to_owned(), Instant::now());
        }
        Err(UNKNOWN)
    }
}
