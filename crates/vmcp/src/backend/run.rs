//! What is done for a backend beside the requests of clients: reading its lists, and checking its health. Both are one: a
//! backend whose lists can be read is healthy.

use std::{sync::Arc, time::Instant};

use jiff::Timestamp;
use skep_mcp::{Envelope, Era, Method};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::{Backend, BackendError, Caller, Interest, Link, Listening, Place, Status};
use crate::{catalog::Lists, limits};

impl Backend {
    /// Looks after the backend, for ever.
    pub(crate) async fn run(self: &Arc<Self>, sessions: watch::Receiver<usize>) {
        let mut link = None;
        let mut events = None;
        let mut has_clients = false;
        let mut ticks = tokio::time::interval(self.checks.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // What changes again soon is read together.
        let (mut is_due, mut earliest) = (false, tokio::time::Instant::now());
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = tokio::time::sleep_until(earliest), if is_due => {}
                () = self.refresh.notified(), if !is_due => {
                    is_due = true;
                    continue;
                }
                () = announced(&mut events), if !is_due => {
                    is_due = true;
                    continue;
                }
                () = until(&sessions, |count| count > 0), if !has_clients => has_clients = true,
                () = until(&sessions, |count| count == 0), if has_clients || link.is_some() => {
                    has_clients = false;
                    self.leave(&mut link, &mut events).await;
                    continue;
                }
            }
            is_due = false;
            earliest = tokio::time::Instant::now() + limits::CHANGES_PACE;
            let may_check =
                { self.state().health.may_check(&self.checks.thresholds, Instant::now(), Timestamp::now()) };
            if may_check {
                self.check(&mut link, &mut events).await;
            }
            self.checked.send_modify(|count| *count += 1);
        }
    }

    /// Ends the own session, as there is no client for whom it would have to listen.
    async fn leave(&self, link: &mut Option<Link>, events: &mut Option<Listening>) {
        *events = None;
        if let Some(link) = link.take() {
            let caller = Caller::default();
            let closed = self.close(&link, &caller);
            tokio::time::timeout(limits::END_SESSION_TIME, closed).await.ok();
        }
        self.state().is_watched = false;
    }

    async fn check(self: &Arc<Self>, link: &mut Option<Link>, events: &mut Option<Listening>) {
        let started = Instant::now();
        let read = self.read_lists(link, events);
        let checked = tokio::time::timeout(self.checks.timeout, read).await;
        let checked = checked.unwrap_or(Err(BackendError::Timeout(self.checks.timeout)));
        if checked.is_err() {
            (*link, *events) = (None, None);
        }
        let announces = link.as_ref().is_some_and(|link| link.capabilities.announces_all());
        self.record(checked, started, announces && events.is_some());
    }

    /// Reads the lists, in a session that is opened if there is none.
    async fn read_lists(
        self: &Arc<Self>,
        link: &mut Option<Link>,
        events: &mut Option<Listening>,
    ) -> Result<Lists, BackendError> {
        let caller = Caller::default();
        if let Some(open) = link {
            match self.lists(open, &caller).await {
                Err(BackendError::SessionLost) => {}
                lists => {
                    self.listen_again(open, events).await;
                    return lists;
                }
            }
        }
        let open = self.open(&caller, &Arc::from("{}"), Era::Modern).await?;
        self.state().revision = Some(open.revision);
        *events = self.listen(&open, &caller, &Interest::LISTS, &Place::default()).await.unwrap_or_default();
        let lists = self.lists(&open, &caller).await;
        *link = Some(open);
        lists
    }

    /// Listens again if the stream has ended.
    async fn listen_again(&self, link: &Link, events: &mut Option<Listening>) {
        if events.is_none() && link.capabilities.announced().next().is_some() {
            let (caller, place) = (Caller::default(), Place::default());
            *events = self.listen(link, &caller, &Interest::LISTS, &place).await.unwrap_or_default();
        }
    }

    fn record(&self, checked: Result<Lists, BackendError>, started: Instant, is_watched: bool) {
        let (now, time) = (Instant::now(), Timestamp::now());
        let has_changed = {
            let mut state = self.state();
            let before = (state.health.status, state.health.circuit, state.lists.clone());
            state.tried = Some(started);
            match checked {
                Ok(lists) => {
                    state.health.succeeded(started.elapsed(), time);
                    state.is_watched = is_watched;
                    if state.lists.as_deref() != Some(&lists) {
                        state.lists = Some(Arc::new(lists));
                    }
                }
                // It says nothing about the backend.
                Err(error @ BackendError::NoMemory) => {
                    debug!(backend = &*self.name, %error, "its lists were not read");
                }
                Err(error) => {
                    let failures = state.health.failures;
                    state.health.failed(&error, &self.checks.thresholds, now, time);
                    state.is_watched = false;
                    if failures == 0 {
                        warn!(backend = &*self.name, %error, "a backend is unavailable");
                    } else {
                        debug!(backend = &*self.name, %error, "a backend is still unavailable");
                    }
                }
            }
            let after = (state.health.status, state.health.circuit, state.lists.clone());
            if before.0 != after.0 && after.0 == Status::Healthy {
                info!(backend = &*self.name, "a backend is healthy");
            }
            before != after
        };
        if has_changed {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// Has the lists read again, as the backend announced that they have changed.
    pub(crate) fn lists_changed(&self) {
        self.refresh.notify_one();
    }

    /// Waits until it is known what the backend offers, or that it does not respond.
    pub(crate) async fn first_lists(&self) {
        self.checked.subscribe().wait_for(|count| *count > 0).await.ok();
    }

    /// Makes sure that lists are not too old for a new session, if changes of them are not announced. A backend that is
    /// unavailable is tried again, and not waited for.
    pub(crate) async fn fresh_lists(&self) {
        let (is_fresh, is_available) = {
            let state = self.state();
            let is_recent = state.tried.is_none_or(|tried| tried.elapsed() < limits::LISTS_AGE);
            (state.is_watched || is_recent, state.health.failures == 0)
        };
        if is_fresh {
            return;
        }
        let mut checked = self.checked.subscribe();
        checked.mark_unchanged();
        self.refresh.notify_one();
        if is_available {
            tokio::time::timeout(limits::REFRESH_TIME, checked.changed()).await.ok();
        }
    }
}

/// Completes when there are so many sessions.
async fn until(sessions: &watch::Receiver<usize>, is_so: fn(usize) -> bool) {
    sessions.clone().wait_for(|count| is_so(*count)).await.ok();
}

/// Completes when the backend announces that a list has changed. A stream that has ended announces nothing more.
async fn announced(events: &mut Option<Listening>) {
    loop {
        let Some(open) = events else { return std::future::pending().await };
        match open.next().await {
            Some(message) if is_list_changed(&message) => return,
            Some(_) => {}
            None => *events = None,
        }
    }
}

/// Whether a message announces that a list has changed.
pub(crate) fn is_list_changed(message: &[u8]) -> bool {
    let method = Envelope::parse(message).ok().and_then(|envelope| envelope.method());
    matches!(
        method,
        Some(Method::ToolsListChanged | Method::PromptsListChanged | Method::ResourcesListChanged)
    )
}
