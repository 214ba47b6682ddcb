//! Whether a session is of use to its client.

use futures::{StreamExt, stream::FuturesUnordered};

use super::tokens::{UpstreamTokenError, UpstreamTokens, is_valid};
use crate::store::{StoreError, Upstream};

/// Why a session is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// It has ended.
    #[error("the session has ended")]
    Ended,
    /// No token of an upstream is left, and none can be refreshed: the user must log in again.
    #[error("no token of an upstream is valid any more; re-authentication required")]
    Expired,
    /// The store or the upstreams do not respond.
    #[error("the session cannot be checked now")]
    Unavailable,
}

impl From<StoreError> for SessionError {
    fn from(_: StoreError) -> Self {
        Self::Unavailable
    }
}

impl UpstreamTokens {
    /// The rows of a session at all upstreams, in their order. `None`: it has ended.
    pub(crate) async fn rows(&self, session: &str) -> Result<Option<Vec<Option<Upstream>>>, StoreError> {
        let providers: Vec<&str> = self.providers().collect();
        self.0.store.session(session, &providers).await
    }

    /// Checks a session by one look at the store: each request of a client does so. It must not have ended and, if its tokens
    /// of upstreams are of interest and it has some, one of them must be valid or be refreshed. An upstream that fails makes its
    /// own backends fail, and no others.
    pub(crate) async fn check(&self, session: &str, needs_token: bool) -> Result<(), SessionError> {
        let rows = self.rows(session).await?.ok_or(SessionError::Ended)?;
        let has_token = |row: &Upstream| needs_token && !row.access_token.is_empty();
        let rows: Vec<_> = rows.into_iter().flatten().filter(has_token).collect();
        let now = self.0.clock.now();
        if rows.is_empty() || rows.iter().any(|row| is_valid(row, now)) {
            return Ok(());
        }
        // One that does not respond delays no caller who gets a token of another.
        let refreshes = rows.into_iter().map(|row| self.0.refreshed(session, row));
        let mut refreshes: FuturesUnordered<_> = refreshes.collect();
        let mut checked = Ok(());
        while let Some(refreshed) = refreshes.next().await {
            match refreshed {
                Ok(_) => return Ok(()),
                Err(UpstreamTokenError::NotConnected) => {}
                // Another login is of no use while an upstream does not respond.
                Err(UpstreamTokenError::Unavailable) => checked = Err(SessionError::Unavailable),
                Err(_) => checked = checked.and(Err(SessionError::Expired)),
            }
        }
        checked
    }

    /// Checks that the identity provider, which is the first upstream, still knows the user, by its own refresh token: a session
    /// goes on no longer than the user may log in. What has no refresh token cannot be asked.
    pub(crate) async fn check_identity(&self, session: &str) -> Result<(), SessionError> {
        let Some(first) = self.0.upstreams.first() else { return Ok(()) };
        let Some(row) = self.0.store.upstream(session, &first.name).await? else { return Ok(()) };
        if row.access_token.is_empty() || is_valid(&row, self.0.clock.now()) {
            return Ok(());
        }
        if row.refresh_token.is_empty() && !row.is_refused {
            return Ok(());
        }
        match self.0.refreshed(session, row).await {
            Ok(_) | Err(UpstreamTokenError::NotConnected) => Ok(()),
            Err(UpstreamTokenError::Unavailable) => Err(SessionError::Unavailable),
            Err(_) => Err(SessionError::Expired),
        }
    }
}
