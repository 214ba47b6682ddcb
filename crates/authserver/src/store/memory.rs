//! The store of a single process, which forgets all when it ends.

use std::{
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{
    Client, Grant, Pending, Registration, Result, Rotation, Store, StoreError, Taken, Upstream,
    expiring::Expiring, logins::Logins,
};
use crate::{clock::Clock, limits};

/// The store.
pub(crate) struct MemoryStore {
    clock: Clock,
    rows: Mutex<Rows>,
}

struct Rows {
    clients: Expiring<Client>,
    pending: Logins,
    codes: Expiring<Grant>,
    refresh: Expiring<Grant>,
    /// Spent codes, replaced refresh tokens with the time of that, and used assertions.
    spent: Expiring<u64>,
    ended: Expiring<()>,
    users: Expiring<String>,
    upstreams: Expiring<Upstream>,
    /// The session of the newest row of a user at a provider.
    latest: Expiring<String>,
    registrations: Expiring<Registration>,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            clients: Expiring::new(limits::CLIENTS),
            pending: Logins::default(),
            codes: Expiring::new(limits::ROWS),
            refresh: Expiring::new(limits::ROWS),
            spent: Expiring::new(2 * limits::ROWS),
            ended: Expiring::new(limits::ROWS),
            users: Expiring::new(limits::ROWS),
            upstreams: Expiring::new(limits::ROWS),
            latest: Expiring::new(limits::ROWS),
            registrations: Expiring::new(limits::ROWS),
        }
    }
}

const FOR_EVER: u64 = u64::MAX;

fn stored(is_stored: bool) -> Result<()> {
    if is_stored { Ok(()) } else { Err(StoreError::Full) }
}

fn pair(left: &str, right: &str) -> String {
    format!("{}:{left}:{right}", left.len())
}

impl MemoryStore {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, rows: Mutex::default() }
    }

    fn rows(&self) -> (MutexGuard<'_, Rows>, u64) {
        (self.rows.lock().unwrap_or_else(PoisonError::into_inner), self.clock.now())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn check(&self) -> std::result::Result<(), String> {
        Ok(())
    }

    async fn put_client(&self, client: &Client) -> Result<()> {
        let (mut rows, now) = self.rows();
        let until = now + limits::CLIENT_LIFE.as_secs();
        if rows.clients.is_full() {
            rows.clients.evict(until - limits::CLIENT_GRACE.as_secs());
        }
        stored(rows.clients.put(&client.id, client.clone(), until, now))
    }

    async fn client(&self, id: &str) -> Result<Option<Client>> {
        let (rows, now) = self.rows();
        Ok(rows.clients.get(id, now).cloned())
    }

    async fn renew_client(&self, id: &str) -> Result<()> {
        let (mut rows, now) = self.rows();
        rows.clients.extend(id, now + limits::CLIENT_LIFE.as_secs());
        Ok(())
    }

    async fn put_pending(&self, state: &str, pending: &Pending, address: IpAddr) -> Result<()> {
        let (mut rows, now) = self.rows();
        let until = now + limits::PENDING_LIFE.as_secs();
        rows.pending.put(state, pending.clone(), address, (now, until));
        Ok(())
    }

    async fn take_pending(&self, state: &str) -> Result<Option<Pending>> {
        let (mut rows, now) = self.rows();
        Ok(rows.pending.take(state, now))
    }

    async fn put_code(&self, signature: &str, grant: &Grant, life: Duration) -> Result<()> {
        let (mut rows, now) = self.rows();
        // A late use is still known to be of a code that existed.
        let until = now + life.as_secs() + limits::SPENT_LIFE.as_secs();
        stored(rows.codes.put(signature, grant.clone(), until, now))
    }

    async fn code(&self, signature: &str) -> Result<Option<Grant>> {
        let (rows, now) = self.rows();
        Ok(rows.codes.get(signature, now).cloned())
    }

    async fn take_code(&self, signature: &str) -> Result<Taken> {
        let (mut rows, now) = self.rows();
        if rows.spent.get(signature, now).is_some() {
            return Ok(Taken::Spent);
        }
        stored(rows.spent.put(signature, now, now + limits::SPENT_LIFE.as_secs(), now))?;
        Ok(Taken::First)
    }

    async fn put_refresh(&self, signature: &str, grant: &Grant, life: Duration) -> Result<bool> {
        let (mut rows, now) = self.rows();
        if rows.ended.get(&grant.session.id, now).is_some() {
            return Ok(false);
        }
        stored(rows.refresh.put(signature, grant.clone(), now + life.as_secs(), now)).map(|()| true)
    }

    async fn refresh(&self, signature: &str) -> Result<Option<Grant>> {
        let (rows, now) = self.rows();
        Ok(rows.refresh.get(signature, now).cloned())
    }

    async fn rotate(&self, old: &str, new: &str, grant: &Grant, life: Duration, at: u64) -> Result<Rotation> {
        let (mut rows, now) = self.rows();
        if rows.ended.get(&grant.session.id, now).is_some() {
            return Ok(Rotation::Ended);
        }
        if let Some(at) = rows.spent.get(old, now) {
            return Ok(Rotation::Lost(*at));
        }
        stored(rows.refresh.put(new, grant.clone(), now + life.as_secs(), now))?;
        stored(rows.spent.put(old, at, now + life.as_secs(), now)).map(|()| Rotation::Done)
    }

    async fn end_session(&self, session: &str, life: Duration) -> Result<()> {
        let (mut rows, now) = self.rows();
        stored(rows.ended.put(session, (), now + life.as_secs(), now))
    }

    async fn is_ended(&self, session: &str) -> Result<bool> {
        let (rows, now) = self.rows();
        Ok(rows.ended.get(session, now).is_some())
    }

    async fn spend(&self, key: &str, life: Duration) -> Result<bool> {
        let (mut rows, now) = self.rows();
        if rows.spent.get(key, now).is_some() {
            return Ok(false);
        }
        stored(rows.spent.put(key, now, now + life.as_secs() + 1, now)).map(|()| true)
    }

    async fn user(&self, provider: &str, subject: &str, new: &str, now: u64) -> Result<String> {
        let (mut rows, _) = self.rows();
        let key = pair(provider, subject);
        if let Some(user) = rows.users.get(&key, now) {
            return Ok(user.clone());
        }
        stored(rows.users.put(&key, new.to_owned(), FOR_EVER, now)).map(|()| new.to_owned())
    }

    async fn put_upstream(&self, session: &str, row: &Upstream, life: Duration) -> Result<()> {
        let (mut rows, now) = self.rows();
        let (key, until) = (pair(session, &row.provider_id), now + life.as_secs());
        stored(rows.upstreams.put(&key, row.clone(), until, now))?;
        stored(rows.latest.put(&pair(&row.user_id, &row.provider_id), session.to_owned(), until, now))
    }

    async fn upstream(&self, session: &str, provider: &str) -> Result<Option<Upstream>> {
        let (rows, now) = self.rows();
        Ok(rows.upstreams.get(&pair(session, provider), now).cloned())
    }

    async fn latest_upstream(&self, user: &str, provider: &str) -> Result<Option<Upstream>> {
        let (rows, now) = self.rows();
        let session = rows.latest.get(&pair(user, provider), now);
        Ok(session.and_then(|session| rows.upstreams.get(&pair(session, provider), now)).cloned())
    }

    async fn put_registration(&self, key: &str, registration: &Registration) -> Result<()> {
        let (mut rows, now) = self.rows();
        stored(rows.registrations.put(key, registration.clone(), FOR_EVER, now))
    }

    async fn registration(&self, key: &str) -> Result<Option<Registration>> {
        let (rows, now) = self.rows();
        Ok(rows.registrations.get(key, now).cloned())
    }
}
