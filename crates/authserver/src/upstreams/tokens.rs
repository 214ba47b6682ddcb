//! The tokens of sessions at upstreams, refreshed when they have expired.

use std::{iter, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::time::Instant;
use tracing::warn;

use super::{Upstream, refreshes::Refreshes};
use crate::{
    clock::Clock,
    keys::unverified,
    limits,
    store::{self, Lock, Store, StoreError},
};

/// How long in between a refreshed token is stored again, if the store is unavailable.
const PAUSE: Duration = Duration::from_millis(100);

/// The claims that describe a user to others (OpenID Connect Core 1.0, section 5.1).
const PROFILE: [&str; 2] = ["name", "email"];

/// Why there is no token of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamTokenError {
    /// The session has no token of this upstream.
    #[error("the user is not connected to this provider")]
    NotConnected,
    /// It has expired, and cannot be refreshed: the user must log in again.
    #[error("upstream token is no longer valid; re-authentication required")]
    Expired,
    /// The upstream has issued no ID token.
    #[error("the provider has issued no ID token")]
    NoIdToken,
    /// It looks like a JWT, and is none.
    #[error("the token of the upstream is malformed")]
    Malformed,
    /// The store or the upstream does not respond.
    #[error("the provider is unavailable")]
    Unavailable,
}

impl From<StoreError> for UpstreamTokenError {
    fn from(_: StoreError) -> Self {
        Self::Unavailable
    }
}

/// What a session has at an upstream.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Connection {
    /// The name of the upstream.
    pub(crate) provider: String,
    /// Whether the session has tokens of it.
    pub(crate) connected: bool,
    /// When the user connected it, in seconds since 1970, if that is known.
    pub(crate) since: Option<u64>,
    /// The scopes of the tokens.
    pub(crate) scopes: Vec<String>,
    /// When the access token expires, if it does.
    pub(crate) expires_at: Option<u64>,
    /// Whether it is renewed then: there is a refresh token, which the upstream has not refused.
    pub(crate) renewed: bool,
    /// Whether the tokens are of no use any more: the access token has expired, and there is none to refresh it with that the
    /// upstream accepts.
    pub(crate) expired: bool,
}

/// The tokens of sessions at upstreams.
#[derive(Clone)]
pub struct UpstreamTokens(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) upstreams: Arc<Vec<Upstream>>,
    pub(super) clock: Clock,
    pub(super) refreshes: Refreshes,
}

impl UpstreamTokens {
    pub(crate) fn new(store: Arc<dyn Store>, upstreams: Arc<Vec<Upstream>>, clock: Clock) -> Self {
        Self(Arc::new(Shared { store, upstreams, clock, refreshes: Refreshes::default() }))
    }

    /// The names of the upstreams.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.0.upstreams.iter().map(|upstream| &*upstream.name)
    }

    /// The access token of a session at an upstream.
    pub async fn access_token(&self, session: &str, provider: &str) -> Result<String, UpstreamTokenError> {
        let row = self.0.store.upstream(session, provider).await?.ok_or(UpstreamTokenError::NotConnected)?;
        if row.access_token.is_empty() {
            return Err(UpstreamTokenError::NotConnected);
        }
        if is_valid(&row, self.0.clock.now()) {
            return Ok(row.access_token);
        }
        Ok(self.0.refreshed(session, row).await?.access_token)
    }

    /// The ID token of a session at an upstream.
    pub async fn id_token(&self, session: &str, provider: &str) -> Result<String, UpstreamTokenError> {
        let row = self.0.store.upstream(session, provider).await?.ok_or(UpstreamTokenError::NotConnected)?;
        if row.access_token.is_empty() {
            return Err(UpstreamTokenError::NotConnected);
        }
        if row.id_token.is_empty() {
            return Err(UpstreamTokenError::NoIdToken);
        }
        if has_valid_id_token(&row, self.0.clock.now()) {
            return Ok(row.id_token);
        }
        let row = self.0.refreshed(session, row).await?;
        // An upstream need not issue another one (OpenID Connect Core 1.0, section 12.2).
        let is_new = has_valid_id_token(&row, self.0.clock.now());
        is_new.then_some(row.id_token).ok_or(UpstreamTokenError::Expired)
    }
}

impl UpstreamTokens {
    /// What a session has at each upstream.
    pub(crate) async fn connections(&self, session: &str) -> Result<Vec<Connection>, UpstreamTokenError> {
        let providers: Vec<&str> = self.providers().collect();
        let rows = self.0.store.session(session, &providers).await?.unwrap_or_default();
        Ok(self.described(&rows))
    }

    /// What a session with these rows has at each upstream.
    pub(crate) fn described(&self, rows: &[Option<store::Upstream>]) -> Vec<Connection> {
        let now = self.0.clock.now();
        let rows = rows.iter().map(Option::as_ref).chain(iter::repeat(None));
        let described = self.providers().zip(rows).map(|(provider, row)| {
            let row = row.filter(|row| !row.access_token.is_empty());
            let renewed = row.is_some_and(|row| !row.is_refused && !row.refresh_token.is_empty());
            Connection {
                provider: provider.to_owned(),
                connected: row.is_some(),
                since: row.map(|row| row.connected_at).filter(|since| *since > 0),
                scopes: row.map(|row| row.scopes.clone()).unwrap_or_default(),
                expires_at: row.map(|row| row.expires_at).filter(|until| *until > 0),
                renewed,
                expired: row.is_some_and(|row| !is_valid(row, now) && !renewed),
            }
        });
        described.collect()
    }

    /// Forgets the tokens of a session at an upstream, and revokes them there. The row stays without them: it has the user of
    /// the session.
    pub(crate) async fn disconnect(&self, session: &str, provider: &str) -> Result<(), UpstreamTokenError> {
        let (shared, session, provider) = (self.0.clone(), session.to_owned(), provider.to_owned());
        // A request that is cancelled does not leave a lock.
        let disconnecting = tokio::spawn(async move { shared.disconnect(&session, &provider).await });
        disconnecting.await.unwrap_or(Err(UpstreamTokenError::Unavailable))
    }

    /// The claims of the access token of a session at an upstream. It came from the upstream itself, so its signature is not
    /// verified. `None`: it is not a JWT. Name and email address may be in the ID token only.
    pub async fn claims(
        &self,
        session: &str,
        provider: &str,
    ) -> Result<Option<Map<String, Value>>, UpstreamTokenError> {
        let token = self.access_token(session, provider).await?;
        if token.split('.').count() != 3 {
            return Ok(None);
        }
        let mut claims = unverified(&token).ok_or(UpstreamTokenError::Malformed)?;
        let missing: Vec<_> = PROFILE.into_iter().filter(|name| !claims.contains_key(*name)).collect();
        if !missing.is_empty()
            && let Some(row) = self.0.store.upstream(session, provider).await?
            && let Some(profile) = unverified(&row.id_token)
        {
            let known =
                missing.into_iter().filter_map(|name| Some((name.to_owned(), profile.get(name)?.clone())));
            claims.extend(known);
        }
        Ok(Some(claims))
    }
}

pub(super) fn is_valid(row: &store::Upstream, now: u64) -> bool {
    row.expires_at == 0 || now < row.expires_at
}

/// Its signature was verified when it was stored.
fn has_valid_id_token(row: &store::Upstream, now: u64) -> bool {
    let expires = unverified(&row.id_token).and_then(|claims| claims.get("exp")?.as_u64());
    expires.is_some_and(|expires| now < expires)
}

impl Shared {
    pub(super) fn upstream(&self, provider: &str) -> Result<&Upstream, UpstreamTokenError> {
        let upstream = self.upstreams.iter().find(|upstream| upstream.name == provider);
        upstream.ok_or(UpstreamTokenError::NotConnected)
    }

    async fn disconnect(&self, session: &str, provider: &str) -> Result<(), UpstreamTokenError> {
        let upstream = self.upstream(provider)?;
        // A refresh that is under way must not store tokens afterwards.
        let key = lock_key(session, provider);
        let lock = Lock::take(&*self.store, &key).await?;
        let forgotten = lock.hold_during(self.forget(session, provider)).await?;
        let Some(row) = forgotten else { return Ok(()) };
        // With a refresh token, the access tokens of it end as well (RFC 7009, section 2.1).
        for token in [&row.refresh_token, &row.access_token] {
            if let Err(error) = upstream.revoke(token).await {
                warn!(provider, %error, "failed to revoke a token of an upstream");
            }
        }
        Ok(())
    }

    /// Removes the tokens of a row, and returns what it was.
    async fn forget(
        &self,
        session: &str,
        provider: &str,
    ) -> Result<Option<store::Upstream>, UpstreamTokenError> {
        let Some(row) = self.store.upstream(session, provider).await? else { return Ok(None) };
        let empty = store::Upstream {
            access_token: String::new(),
            refresh_token: String::new(),
            id_token: String::new(),
            scopes: Vec::new(),
            ..row.clone()
        };
        self.save(session, &empty).await?;
        Ok(Some(row))
    }

    /// The former refresh token may work no more, so the new one must not be lost while the store is unavailable for a moment.
    pub(super) async fn save(&self, session: &str, row: &store::Upstream) -> Result<(), UpstreamTokenError> {
        let life = row_life(row, self.clock.now());
        Ok(patiently(|| self.store.put_upstream(session, row, life)).await?)
    }
}

/// Does something at the store, again and again for a while if it is unavailable.
pub(super) async fn patiently<T, F: Future<Output = store::Result<T>>>(
    operation: impl Fn() -> F,
) -> store::Result<T> {
    let until = Instant::now() + limits::SAVE_TIME;
    loop {
        match operation().await {
            Err(_) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            done => return done,
        }
    }
}

/// The key of the lock under which the tokens of a session at an upstream are replaced.
pub(super) fn lock_key(session: &str, provider: &str) -> String {
    format!("upstream:{session}:{provider}")
}

/// How long a row is kept: a month longer than its access token.
pub(crate) fn row_life(row: &store::Upstream, now: u64) -> Duration {
    let end = if row.expires_at == 0 { row.session_expires_at } else { row.expires_at };
    Duration::from_secs(end.saturating_sub(now)) + limits::UPSTREAM_LIFE
}
