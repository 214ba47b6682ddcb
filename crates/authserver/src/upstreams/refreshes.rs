//! Refreshes of the tokens of a session at an upstream: one at a time, by whichever server with this store. All requests that
//! wait share what comes of it, and for a moment also those that come after a failure, so that an upstream which
//! does not respond is not tried for each of them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared as Awaited},
};
use tracing::warn;

use super::{
    UpstreamError,
    tokens::{Shared, UpstreamTokenError, lock_key, patiently},
};
use crate::{
    limits,
    store::{self, Lock},
};

type Outcome = Result<store::Upstream, UpstreamTokenError>;
/// A session and a provider.
type Key = (String, String);

/// The refreshes that go on, and those that have failed a moment ago.
#[derive(Default)]
pub(super) struct Refreshes(Mutex<Attempts>);

#[derive(Default)]
struct Attempts {
    by_key: HashMap<Key, Attempt>,
    /// The number of attempts at which old ones are removed.
    most: usize,
}

struct Attempt {
    outcome: Awaited<BoxFuture<'static, Outcome>>,
    /// Until when its failure is shared, since 1970. `None`: it goes on.
    until: Option<Duration>,
}

/// The least number of attempts among which old ones are looked for.
const MANY: usize = 64;

impl Refreshes {
    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempts {
    fn insert(&mut self, key: Key, attempt: Attempt, now: Duration) {
        if self.by_key.len() >= self.most {
            self.by_key.retain(|_, attempt| attempt.is_of_use(now));
            self.most = MANY.max(2 * self.by_key.len());
        }
        self.by_key.insert(key, attempt);
    }
}

impl Attempt {
    fn is_of_use(&self, now: Duration) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// An attempt that goes on. When it is dropped, others may try, at once or after a pause.
struct Ongoing {
    shared: Arc<Shared>,
    key: Key,
    needs_pause: bool,
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        let mut attempts = self.shared.refreshes.attempts();
        if !self.needs_pause {
            attempts.by_key.remove(&self.key);
        } else if let Some(attempt) = attempts.by_key.get_mut(&self.key) {
            attempt.until = Some(self.shared.clock.precise() + limits::REFRESH_PAUSE);
        }
    }
}

impl Shared {
    /// The row after its tokens were refreshed, where this is what it has been. The refresh goes on even if this request is
    /// cancelled.
    pub(super) async fn refreshed(self: &Arc<Self>, session: &str, seen: store::Upstream) -> Outcome {
        let key = (session.to_owned(), seen.provider_id.clone());
        let outcome = {
            let (mut attempts, now) = (self.refreshes.attempts(), self.clock.precise());
            match attempts.by_key.get(&key).filter(|attempt| attempt.is_of_use(now)) {
                Some(attempt) => attempt.outcome.clone(),
                None => {
                    let outcome = self.clone().start(key.clone(), seen);
                    attempts.insert(key, Attempt { outcome: outcome.clone(), until: None }, now);
                    outcome
                }
            }
        };
        outcome.await
    }

    fn start(self: Arc<Self>, key: Key, seen: store::Upstream) -> Awaited<BoxFuture<'static, Outcome>> {
        let refreshing = tokio::spawn(async move {
            // A panic is a failure as well.
            let mut ongoing = Ongoing { shared: self, key, needs_pause: true };
            let outcome = ongoing.shared.refresh_alone(&ongoing.key.0, &seen).await;
            ongoing.needs_pause = outcome == Err(UpstreamTokenError::Unavailable);
            outcome
        });
        refreshing.map(|ended| ended.unwrap_or(Err(UpstreamTokenError::Unavailable))).boxed().shared()
    }

    /// Two servers must not use one refresh token: many upstreams take that for theft (RFC 9700, section 4.14.2).
    async fn refresh_alone(&self, session: &str, seen: &store::Upstream) -> Outcome {
        let key = lock_key(session, &seen.provider_id);
        let lock = Lock::take(&*self.store, &key).await?;
        let was_awaited = lock.was_awaited;
        lock.hold_during(self.refresh(session, seen, was_awaited)).await
    }

    /// Refreshes the tokens, unless that has happened since this request has seen them: what another one has got
    /// meanwhile is new, however short its life is.
    async fn refresh(&self, session: &str, seen: &store::Upstream, was_awaited: bool) -> Outcome {
        let provider = &*seen.provider_id;
        let row = self.store.upstream(session, provider).await?.ok_or(UpstreamTokenError::NotConnected)?;
        match () {
            () if row.access_token.is_empty() => return Err(UpstreamTokenError::NotConnected),
            () if is_renewed(&row, seen) => return Ok(row),
            () if row.refresh_token.is_empty() => return Err(UpstreamTokenError::Expired),
            // Another server has tried, and has failed.
            () if was_awaited && row.is_refused => return Err(UpstreamTokenError::Expired),
            () => {}
        }
        let failed = format!("failed:{}", lock_key(session, provider));
        // One that was killed has not failed: its lock has ended by itself.
        if was_awaited && !self.store.spend(&failed, limits::REFRESH_PAUSE).await? {
            return Err(UpstreamTokenError::Unavailable);
        }
        let outcome = self.refresh_row(session, row).await;
        if outcome == Err(UpstreamTokenError::Unavailable) {
            // Those who wait for the lock, at other servers, share the failure.
            self.store.spend(&failed, limits::REFRESH_PAUSE).await.ok();
        }
        outcome
    }

    async fn refresh_row(&self, session: &str, row: store::Upstream) -> Outcome {
        let provider = &*row.provider_id;
        let (upstream, now) = (self.upstream(provider)?, self.clock.now());
        match upstream.refresh(&row, now).await {
            Ok(tokens) => {
                let kept = |new: String, old: &str| if new.is_empty() { old.to_owned() } else { new };
                let refreshed = store::Upstream {
                    access_token: tokens.access_token,
                    refresh_token: kept(tokens.refresh_token, &row.refresh_token),
                    id_token: kept(tokens.id_token, &row.id_token),
                    expires_at: tokens.expires_in.map_or(0, |seconds| now + seconds),
                    is_refused: false,
                    ..row.clone()
                };
                // From here, the former refresh token may work no more: the new one must not be lost.
                let current = patiently(|| self.store.upstream(session, provider)).await?;
                match replacement(current, &row)? {
                    Some(current) => Ok(current),
                    None => self.save(session, &refreshed).await.map(|()| refreshed),
                }
            }
            Err(error) => self.after_failure(session, &row, &error).await,
        }
    }

    async fn after_failure(&self, session: &str, row: &store::Upstream, error: &UpstreamError) -> Outcome {
        if let Some(current) = replacement(self.store.upstream(session, &row.provider_id).await?, row)? {
            return Ok(current);
        }
        warn!(provider = row.provider_id, %error, "failed to refresh the token of an upstream");
        match error {
            UpstreamError::InvalidGrant => {
                self.refuse(session, row).await?;
                Err(UpstreamTokenError::Expired)
            }
            UpstreamError::IdToken(_) => Err(UpstreamTokenError::Expired),
            // The upstream may refuse this server as a client, which is not the end of a login.
            _ => Err(UpstreamTokenError::Unavailable),
        }
    }

    /// A refresh token that the upstream has refused is tried once more, as upstreams err, too, and then never again.
    async fn refuse(&self, session: &str, row: &store::Upstream) -> Result<(), UpstreamTokenError> {
        let refresh_token = if row.is_refused { String::new() } else { row.refresh_token.clone() };
        let refused = store::Upstream { refresh_token, is_refused: true, ..row.clone() };
        self.save(session, &refused).await
    }
}

/// What a row has become meanwhile, if it has other tokens: the user may have logged in there.
fn replacement(
    current: Option<store::Upstream>,
    row: &store::Upstream,
) -> Result<Option<store::Upstream>, UpstreamTokenError> {
    match current {
        Some(current) if current.access_token.is_empty() => Err(UpstreamTokenError::NotConnected),
        current => Ok(current.filter(|current| is_renewed(current, row))),
    }
}

/// Whether a row has other tokens than before.
fn is_renewed(row: &store::Upstream, before: &store::Upstream) -> bool {
    row.access_token != before.access_token
        || row.id_token != before.id_token
        || row.expires_at != before.expires_at
}
