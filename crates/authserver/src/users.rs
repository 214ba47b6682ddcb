//! The connections of all users, for those who run the server: never a token, nor the id of a session, which is that of a page.

use crate::{AuthServer, StoreError, store::Connected};

/// What a user has at an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserConnection {
    /// The user, as the subject of access tokens.
    pub user: String,
    /// The name of the upstream.
    pub provider: String,
    /// The subject of the user there.
    pub account: String,
    /// When the user connected it, in seconds since 1970, if that is known.
    pub since: Option<u64>,
    /// When its access token expires, if it does.
    pub expires_at: Option<u64>,
    /// Whether it is renewed then: there is a refresh token.
    pub is_renewed: bool,
}

/// Some of the connections of all users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserConnections {
    /// How many there are.
    pub total: usize,
    /// Those that are known for longest.
    pub shown: Vec<UserConnection>,
    /// Whether other processes have the same ones.
    pub is_shared: bool,
}

impl AuthServer {
    /// The connections of all users, at most so many of them.
    pub async fn user_connections(&self, most: usize) -> Result<UserConnections, StoreError> {
        let (total, rows) = self.store.connections(most).await?;
        let shown = rows.into_iter().map(UserConnection::from).collect();
        Ok(UserConnections { total, shown, is_shared: self.store.is_shared() })
    }
}

impl From<Connected> for UserConnection {
    fn from(row: Connected) -> Self {
        Self {
            user: row.user_id,
            provider: row.provider_id,
            account: row.upstream_subject,
            since: Some(row.connected_at).filter(|since| *since > 0),
            expires_at: Some(row.expires_at).filter(|until| *until > 0),
            is_renewed: row.is_renewed,
        }
    }
}
