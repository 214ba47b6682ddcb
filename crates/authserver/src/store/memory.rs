//! The store of a single process, which forgets all when it ends.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{
    Client, Connected, Grant, Page, Pending, Registration, Result, Rotation, Store, StoreError, Taken,
    Upstream, UserSession,
    expiring::Expiring,
    shares::{self, Shares},
};
use crate::{clock::Clock, keys::family, limits};

/// The store.
pub(crate) struct MemoryStore {
    clock: Clock,
    rows: Mutex<Rows>,
}

struct Rows {
    /// Clients that were never used.
    new_clients: Shares<Client>,
    clients: Expiring<Client>,
    pending: Shares<Pending>,
    codes: Expiring<(Grant, Taken)>,
    refresh: Expiring<Family>,
    /// Used assertions.
    spent: Expiring<()>,
    /// Sessions that have ended, of users.
    ended: Shares<(), String>,
    /// When the last session expires that has ended and is no longer among these, in seconds since 1970.
    forgotten: u64,
    /// Users who have ended a session of a client, by both.
    in_doubt: Shares<(), String>,
    /// What approvals for a client must have.
    marks: Expiring<String>,
    users: Expiring<String>,
    upstreams: Expiring<Upstream>,
    /// The sessions of a user at a provider, by their rows, the newest last.
    sessions: Expiring<VecDeque<String>>,
    /// The sessions of all users that have not ended.
    all_sessions: Expiring<()>,
    /// The rows that have tokens, of sessions that have not ended.
    connections: Expiring<()>,
    registrations: Expiring<Registration>,
    locks: Expiring<String>,
}

/// The refresh tokens of a session.
struct Family {
    grant: Grant,
    /// The signature of the valid one.
    current: String,
    /// That of the one before.
    previous: String,
    /// When the valid one was delivered, in seconds since 1970.
    delivered: Option<u64>,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            new_clients: Shares::new(limits::NEW_CLIENTS_OF_AN_ADDRESS, limits::NEW_CLIENTS),
            clients: Expiring::new(limits::CLIENTS),
            pending: Shares::new(limits::LOGINS_OF_AN_ADDRESS, limits::LOGINS),
            codes: Expiring::new(limits::ROWS),
            refresh: Expiring::new(limits::ROWS),
            spent: Expiring::new(limits::ROWS),
            ended: Shares::new(limits::ROWS_OF_A_USER, limits::ROWS),
            forgotten: 0,
            in_doubt: Shares::new(limits::ROWS_OF_A_USER, limits::ROWS),
            marks: Expiring::new(limits::ROWS),
            users: Expiring::new(limits::ROWS),
            upstreams: Expiring::new(limits::ROWS),
            sessions: Expiring::new(limits::ROWS),
            all_sessions: Expiring::new(limits::ROWS),
            connections: Expiring::new(limits::ROWS),
            registrations: Expiring::new(limits::ROWS),
            locks: Expiring::new(limits::ROWS),
        }
    }
}

impl Rows {
    /// The rows of a session at these providers.
    fn of_session(&self, session: &str, providers: &[&str], now: u64) -> Vec<Option<Upstream>> {
        let row = |provider: &&str| self.upstreams.get(&pair(session, provider), now).cloned();
        providers.iter().map(row).collect()
    }

    /// The user of a session. Empty: nothing is left of it.
    fn user_of(&self, session: &str, providers: &[&str], now: u64) -> String {
        let grant = self.refresh.get(&family(session), now).map(|row| row.grant.session.user.id.clone());
        let rows = || self.of_session(session, providers, now).into_iter().flatten();
        grant.or_else(|| rows().next().map(|row| row.user_id)).unwrap_or_default()
    }

    /// Whether a session has ended. Where it is not remembered which ones have, all have that are not known to go on.
    fn has_ended(&self, session: &str, now: u64) -> bool {
        self.ended.get(session, now).is_some()
            || now < self.forgotten && self.all_sessions.get(session, now).is_none()
    }

    /// A session of this user goes on until then, at least.
    fn goes_on(&mut self, session: &str, user: &str, (now, until): (u64, u64)) {
        let until = self.all_sessions.until(session).map_or(until, |known| known.max(until));
        self.all_sessions.put_evicting(session, (), user, (now, until));
    }

    /// Stores the refresh tokens of a session, which goes on as long as they do, at least.
    fn put_family(&mut self, family: &str, row: Family, times: (u64, u64)) {
        let (session, user) = (row.grant.session.id.clone(), row.grant.session.user.id.clone());
        self.refresh.put_evicting(family, row, &user, times);
        self.goes_on(&session, &user, times);
    }

    fn user_session(&self, id: &str, providers: &[&str], now: u64) -> Option<UserSession> {
        let grant = self.refresh.get(&family(id), now).map(|row| row.grant.clone());
        let session = UserSession { id: id.to_owned(), grant, rows: self.of_session(id, providers, now) };
        (!self.has_ended(id, now) && session.is_known()).then_some(session)
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

    async fn put_client(&self, client: &Client, address: IpAddr) -> Result<()> {
        let (mut rows, now) = self.rows();
        let until = now + limits::NEW_CLIENT_LIFE.as_secs();
        rows.new_clients.put(&client.id, (client.clone(), 1), address, (now, until));
        Ok(())
    }

    async fn client(&self, id: &str) -> Result<Option<Client>> {
        let (rows, now) = self.rows();
        Ok(rows.clients.get(id, now).or_else(|| rows.new_clients.get(id, now)).cloned())
    }

    async fn used_clients(&self, from: &str, most: usize) -> Result<Page<Client>> {
        let (mut rows, now) = self.rows();
        let (ids, next) = rows.clients.page(from, most, now);
        Ok((ids.iter().filter_map(|id| rows.clients.get(id, now)).cloned().collect(), next))
    }

    async fn remove_client(&self, id: &str) -> Result<bool> {
        let (mut rows, now) = self.rows();
        let is_new = rows.new_clients.take(id, now).is_some();
        Ok(rows.clients.remove(id) || is_new)
    }

    async fn renew_client(&self, id: &str) -> Result<()> {
        let (mut rows, now) = self.rows();
        let until = now + limits::CLIENT_LIFE.as_secs();
        let address = rows.new_clients.holder(id).map(IpAddr::to_string).unwrap_or_default();
        match rows.new_clients.take(id, now) {
            Some(client) => drop(rows.clients.put_evicting(id, client, &address, (now, until))),
            None => rows.clients.extend(id, until),
        }
        Ok(())
    }

    async fn put_pending(&self, state: &str, pending: &Pending, address: IpAddr) -> Result<()> {
        let (mut rows, now) = self.rows();
        let (until, size) = (now + limits::PENDING_LIFE.as_secs(), shares::size(state, pending));
        rows.pending.put(state, (pending.clone(), size), address, (now, until));
        Ok(())
    }

    async fn take_pending(&self, state: &str, _: IpAddr) -> Result<Option<Pending>> {
        let (mut rows, now) = self.rows();
        Ok(rows.pending.take(state, now))
    }

    async fn put_code(&self, signature: &str, grant: &Grant, life: Duration) -> Result<()> {
        let (mut rows, now) = self.rows();
        // A late use is still known to be of a code that existed.
        let until = now + life.as_secs() + limits::SPENT_LIFE.as_secs();
        rows.codes.put_evicting(
            signature,
            (grant.clone(), Taken::Free),
            &grant.session.user.id,
            (now, until),
        );
        Ok(())
    }

    async fn code(&self, signature: &str) -> Result<Option<(Grant, Taken)>> {
        let (rows, now) = self.rows();
        Ok(rows.codes.get(signature, now).cloned())
    }

    async fn spend_code(&self, signature: &str) -> Result<()> {
        let (mut rows, now) = self.rows();
        if let Some(code) = rows.codes.get_mut(signature, now) {
            code.1 = Taken::Spent;
        }
        Ok(())
    }

    async fn put_refresh(&self, signature: &str, grant: &Grant, life: Duration) -> Result<bool> {
        let (mut rows, now) = self.rows();
        if rows.has_ended(&grant.session.id, now) {
            return Ok(false);
        }
        let family = family(&grant.session.id);
        if let Some(known) = rows.refresh.get(&family, now) {
            return Ok(known.current == signature);
        }
        let (current, previous) = (signature.to_owned(), String::new());
        let row = Family { grant: grant.clone(), current, previous, delivered: None };
        rows.put_family(&family, row, (now, now + life.as_secs()));
        Ok(true)
    }

    async fn refresh(&self, family: &str) -> Result<Option<Grant>> {
        let (rows, now) = self.rows();
        Ok(rows.refresh.get(family, now).map(|row| row.grant.clone()))
    }

    async fn rotate(&self, old: &str, new: &str, grant: &Grant, life: Duration) -> Result<Rotation> {
        let (mut rows, now) = self.rows();
        if rows.has_ended(&grant.session.id, now) {
            return Ok(Rotation::Refused);
        }
        let family = family(&grant.session.id);
        let Some(row) = rows.refresh.get(&family, now) else { return Ok(Rotation::Refused) };
        if row.current != old {
            match row.delivered {
                _ if row.previous != old => return Ok(Rotation::Stolen),
                Some(at) if now > at + limits::REPLACED_LEEWAY.as_secs() => return Ok(Rotation::Stolen),
                Some(_) => return Ok(Rotation::Refused),
                None => {}
            }
        }
        let (current, previous) = (new.to_owned(), old.to_owned());
        let row = Family { grant: grant.clone(), current, previous, delivered: None };
        rows.put_family(&family, row, (now, now + life.as_secs()));
        Ok(Rotation::Done)
    }

    async fn deliver(&self, new: &str, session: &str) -> Result<()> {
        let (mut rows, now) = self.rows();
        if let Some(row) = rows.refresh.get_mut(&family(session), now).filter(|row| row.current == new) {
            row.delivered.get_or_insert(now);
        }
        Ok(())
    }

    async fn end_session(&self, session: &str, providers: &[&str], life: Duration) -> Result<()> {
        let (mut rows, now) = self.rows();
        // A user who ends sessions without end has their own oldest removed, and only sessions that go on are accepted then.
        let user = rows.user_of(session, providers, now);
        // It has ended for as long as it has rows: these stay, for the next login of the user.
        let ends = providers.iter().filter_map(|provider| rows.upstreams.until(&pair(session, provider)));
        let until = ends.fold(now + life.as_secs(), u64::max);
        let forgotten = rows.ended.put(session, ((), 1), user, (now, until));
        rows.forgotten = rows.forgotten.max(forgotten.unwrap_or_default());
        rows.refresh.remove(&family(session));
        rows.all_sessions.remove(session);
        for provider in providers {
            rows.connections.remove(&pair(session, provider));
        }
        Ok(())
    }

    async fn is_ended(&self, session: &str) -> Result<bool> {
        let (rows, now) = self.rows();
        Ok(rows.has_ended(session, now))
    }

    async fn doubt(&self, user: &str, client: &str, is_in_doubt: bool) -> Result<()> {
        let (mut rows, now) = self.rows();
        let key = pair(user, client);
        match is_in_doubt {
            true => {
                let until = now + limits::BROWSER_LIFE.as_secs();
                rows.in_doubt.put(&key, ((), 1), user.to_owned(), (now, until));
            }
            false => drop(rows.in_doubt.take(&key, now)),
        }
        Ok(())
    }

    async fn is_in_doubt(&self, user: &str, client: &str) -> Result<bool> {
        let (rows, now) = self.rows();
        Ok(rows.in_doubt.get(&pair(user, client), now).is_some())
    }

    async fn forget_approvals(&self, client: &str, mark: &str) -> Result<()> {
        let (mut rows, now) = self.rows();
        stored(rows.marks.put(client, mark.to_owned(), now + limits::BROWSER_LIFE.as_secs(), now))
    }

    async fn approvals_mark(&self, client: &str) -> Result<String> {
        let (rows, now) = self.rows();
        Ok(rows.marks.get(client, now).cloned().unwrap_or_default())
    }

    async fn spend(&self, key: &str, life: Duration) -> Result<bool> {
        let (mut rows, now) = self.rows();
        if rows.spent.get(key, now).is_some() {
            return Ok(false);
        }
        stored(rows.spent.put(key, (), now + life.as_secs() + 1, now)).map(|()| true)
    }

    async fn user(&self, provider: &str, subject: &str, new: &str, now: u64) -> Result<String> {
        let (mut rows, _) = self.rows();
        let key = pair(provider, subject);
        let user = rows.users.get(&key, now).map_or(new, String::as_str).to_owned();
        // The user who has not logged in for longest makes room.
        rows.users.put_evicting(&key, user.clone(), &key, (now, now + limits::USER_LIFE.as_secs()));
        Ok(user)
    }

    async fn put_upstream(&self, session: &str, row: &Upstream, life: Duration) -> Result<()> {
        let (mut rows, now) = self.rows();
        let (key, until) = (pair(session, &row.provider_id), now + life.as_secs());
        let user = pair(&row.user_id, &row.provider_id);
        let mut sessions = rows.sessions.get(&user, now).cloned().unwrap_or_default();
        sessions.retain(|known| known != session);
        sessions.push_back(session.to_owned());
        // One user does not take the room of others.
        while sessions.len() > limits::SESSIONS_OF_A_USER {
            let oldest = sessions.pop_front().unwrap_or_default();
            let oldest = pair(&oldest, &row.provider_id);
            rows.upstreams.remove(&oldest);
            rows.connections.remove(&oldest);
        }
        // A row that is renewed does not bring its session back.
        let is_over = match rows.upstreams.get(&key, now) {
            Some(_) => rows.has_ended(session, now),
            None => rows.ended.get(session, now).is_some(),
        };
        if let Some(evicted) = rows.upstreams.put_evicting(&key, row.clone(), &row.user_id, (now, until)) {
            rows.connections.remove(&evicted);
        }
        if row.access_token.is_empty() || is_over {
            rows.connections.remove(&key);
        } else {
            rows.connections.put_evicting(&key, (), &row.user_id, (now, until));
        }
        // Sessions may go on after their rows.
        let kept_until = until.max(now + limits::USER_LIFE.as_secs());
        rows.sessions.put_evicting(&user, sessions, &row.user_id, (now, kept_until));
        if !is_over {
            rows.goes_on(session, &row.user_id, (now, until));
        }
        Ok(())
    }

    async fn upstream(&self, session: &str, provider: &str) -> Result<Option<Upstream>> {
        let (rows, now) = self.rows();
        Ok(rows.upstreams.get(&pair(session, provider), now).cloned())
    }

    async fn session(&self, session: &str, providers: &[&str]) -> Result<Option<Vec<Option<Upstream>>>> {
        let (rows, now) = self.rows();
        Ok((!rows.has_ended(session, now)).then(|| rows.of_session(session, providers, now)))
    }

    async fn sessions(&self, user: &str, providers: &[&str]) -> Result<Vec<UserSession>> {
        let (rows, now) = self.rows();
        let Some(first) = providers.first() else { return Ok(Vec::new()) };
        let ids = rows.sessions.get(&pair(user, first), now).into_iter().flatten();
        Ok(ids.filter_map(|id| rows.user_session(id, providers, now)).collect())
    }

    async fn user_session(&self, id: &str, providers: &[&str]) -> Result<Option<UserSession>> {
        let (rows, now) = self.rows();
        Ok(rows.user_session(id, providers, now))
    }

    async fn all_sessions(&self, from: &str, most: usize, providers: &[&str]) -> Result<Page<UserSession>> {
        let (mut rows, now) = self.rows();
        let (ids, next) = rows.all_sessions.page(from, most, now);
        let sessions = ids.iter().filter_map(|id| rows.user_session(id, providers, now));
        Ok((sessions.collect(), next))
    }

    async fn latest_upstream(&self, user: &str, provider: &str) -> Result<Option<Upstream>> {
        let (rows, now) = self.rows();
        let session = rows.sessions.get(&pair(user, provider), now).and_then(VecDeque::back);
        Ok(session.and_then(|session| rows.upstreams.get(&pair(session, provider), now)).cloned())
    }

    async fn connections(&self, most: usize) -> Result<(usize, Vec<Connected>)> {
        let (mut rows, now) = self.rows();
        let (total, keys) = rows.connections.last(most, now);
        let shown = keys.iter().filter_map(|key| rows.upstreams.get(key, now)).map(Connected::from);
        Ok((total, shown.collect()))
    }

    fn is_shared(&self) -> bool {
        false
    }

    async fn put_registration(&self, key: &str, registration: &Registration) -> Result<()> {
        let (mut rows, now) = self.rows();
        stored(rows.registrations.put(key, registration.clone(), FOR_EVER, now))
    }

    async fn registration(&self, key: &str) -> Result<Option<Registration>> {
        let (rows, now) = self.rows();
        Ok(rows.registrations.get(key, now).cloned())
    }

    async fn lock(&self, key: &str, holder: &str, life: Duration) -> Result<bool> {
        let (mut rows, now) = self.rows();
        if rows.locks.get(key, now).is_some() {
            return Ok(false);
        }
        stored(rows.locks.put(key, holder.to_owned(), now + life.as_secs(), now)).map(|()| true)
    }

    async fn renew_lock(&self, key: &str, holder: &str, life: Duration) -> Result<bool> {
        let (mut rows, now) = self.rows();
        let is_held = rows.locks.get(key, now).is_some_and(|known| known == holder);
        if is_held {
            rows.locks.extend(key, now + life.as_secs());
        }
        Ok(is_held)
    }

    async fn unlock(&self, key: &str, holder: &str) -> Result<()> {
        let (mut rows, now) = self.rows();
        if rows.locks.get(key, now).is_some_and(|known| known == holder) {
            rows.locks.remove(key);
        }
        Ok(())
    }
}
