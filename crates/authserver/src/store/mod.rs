//! What the server remembers. Things that are used once are taken by one operation, so that no two requests get the same.

mod expiring;
mod locks;
mod memory;
mod redis;
mod rows;
mod shares;

use std::{net::IpAddr, time::Duration};

use async_trait::async_trait;

pub(crate) use locks::Lock;
pub(crate) use memory::MemoryStore;
pub(crate) use redis::RedisStore;
pub(crate) use rows::{
    Client, Connected, Grant, Method, Pending, Proof, Registration, Session, Upstream, User, UserSession,
    client_of,
};

/// Why the store did not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It does not respond.
    #[error("the store is unavailable")]
    Unavailable,
    /// It has no room.
    #[error("the store is full")]
    Full,
}

/// Some rows, and where the others begin. Without that, there are no others.
pub(crate) type Page<T> = (Vec<T>, Option<String>);

pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// What has become of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// No client has got tokens for it.
    Free,
    /// One has.
    Spent,
}

/// What came of rotating a refresh token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rotation {
    /// The new token has replaced it.
    Done,
    /// Its client has got the new one a moment ago, or the session has ended: there is no token for this one.
    Refused,
    /// It was replaced long ago: two have it.
    Stolen,
}

/// The store of clients, logins, grants and tokens. Rows are found by the signature of a token, never by the token.
///
/// The response to an operation can get lost after it was done, and an operation can be done late, or twice. So one that is done
/// again changes nothing more, and what is used up for a client stays usable until the response for the client is there.
#[async_trait]
pub(crate) trait Store: Send + Sync {
    /// Checks that it can be used.
    async fn check(&self) -> std::result::Result<(), String>;

    /// Adds a client that has registered at an address. Where this has more than its share of those that were never used, its
    /// oldest one of them is removed. No client that was used makes room for one that was not.
    async fn put_client(&self, client: &Client, address: IpAddr) -> Result<()>;
    async fn client(&self, id: &str) -> Result<Option<Client>>;
    /// About so many of the clients that have got tokens, from here on; empty is the begin.
    async fn used_clients(&self, from: &str, most: usize) -> Result<Page<Client>>;
    /// Removes a client that has registered. `false`: there is none.
    async fn remove_client(&self, id: &str) -> Result<bool>;
    /// A client has got tokens: it lives on. Beyond the number of those, the one that was not used for longest is removed.
    async fn renew_client(&self, id: &str) -> Result<()>;

    /// Adds a login that goes on at an address. Where this has more than its share, its oldest one ends.
    async fn put_pending(&self, state: &str, pending: &Pending, address: IpAddr) -> Result<()>;
    /// The login with this state, once, for a request of an address.
    async fn take_pending(&self, state: &str, address: IpAddr) -> Result<Option<Pending>>;

    async fn put_code(&self, signature: &str, grant: &Grant, life: Duration) -> Result<()>;
    /// The grant of a code, and whether a client has got tokens for it.
    async fn code(&self, signature: &str) -> Result<Option<(Grant, Taken)>>;
    /// The tokens for a code are on their way to the client: it is spent.
    async fn spend_code(&self, signature: &str) -> Result<()>;

    /// Stores the first refresh token of a session. `false`: the session has ended, or has another one.
    async fn put_refresh(&self, signature: &str, grant: &Grant, life: Duration) -> Result<bool>;
    /// The grant of a family of refresh tokens. There is one row for all of them, however often they are replaced.
    async fn refresh(&self, family: &str) -> Result<Option<Grant>>;
    /// Replaces the refresh token of a session by another one. Until this has been delivered, the old one may be replaced again.
    async fn rotate(&self, old: &str, new: &str, grant: &Grant, life: Duration) -> Result<Rotation>;
    /// The new refresh token of a session is on its way to the client: the one before it is refused from now on, and after a
    /// while whoever sends it has stolen it.
    async fn deliver(&self, new: &str, session: &str) -> Result<()>;

    /// Ends a session: it has no refresh token any more, and is not connected to these providers any more. None of its tokens is
    /// accepted for this long, and for as long as it has rows at them.
    async fn end_session(&self, session: &str, providers: &[&str], life: Duration) -> Result<()>;
    async fn is_ended(&self, session: &str) -> Result<bool>;

    /// Has a user approve a client again, in whatever browser, or no more.
    async fn doubt(&self, user: &str, client: &str, is_in_doubt: bool) -> Result<()>;
    /// Whether the approvals of a user for a client do not count any more.
    async fn is_in_doubt(&self, user: &str, client: &str) -> Result<bool>;

    /// Has all users approve a client again: approvals for another mark than this one do not count.
    async fn forget_approvals(&self, client: &str, mark: &str) -> Result<()>;
    /// The mark that approvals for a client must have. Empty where none was forgotten.
    async fn approvals_mark(&self, client: &str) -> Result<String>;

    /// Whether this is the first use of something that may be used once.
    async fn spend(&self, key: &str, life: Duration) -> Result<bool>;

    /// The user with this subject at a provider, who gets the new id if there is none.
    async fn user(&self, provider: &str, subject: &str, new: &str, now: u64) -> Result<String>;

    async fn put_upstream(&self, session: &str, row: &Upstream, life: Duration) -> Result<()>;
    async fn upstream(&self, session: &str, provider: &str) -> Result<Option<Upstream>>;
    /// The rows of a session at these providers, in their order, by one command: each request of a client needs them. `None`:
    /// it has ended.
    async fn session(&self, session: &str, providers: &[&str]) -> Result<Option<Vec<Option<Upstream>>>>;
    /// The sessions of a user that go on, with their rows at these providers. Each has had one at the first of them.
    async fn sessions(&self, user: &str, providers: &[&str]) -> Result<Vec<UserSession>>;
    /// One session, with its rows at these providers, if it goes on.
    async fn user_session(&self, id: &str, providers: &[&str]) -> Result<Option<UserSession>>;
    /// About so many of the sessions of all users, from here on; empty is the begin. One that changes meanwhile may come twice. None
    /// that goes on all the time is left out.
    async fn all_sessions(&self, from: &str, most: usize, providers: &[&str]) -> Result<Page<UserSession>>;
    /// The newest row of a user at a provider.
    async fn latest_upstream(&self, user: &str, provider: &str) -> Result<Option<Upstream>>;

    /// How many connections all users have, and some of them: those whose rows expire last. It takes no look at the others.
    async fn connections(&self, most: usize) -> Result<(usize, Vec<Connected>)>;
    /// Whether other processes have the same rows.
    fn is_shared(&self) -> bool;

    async fn put_registration(&self, key: &str, registration: &Registration) -> Result<()>;
    async fn registration(&self, key: &str) -> Result<Option<Registration>>;

    /// Takes a lock for all servers with this store. `false`: another holder has it. It ends after some time by itself.
    async fn lock(&self, key: &str, holder: &str, life: Duration) -> Result<bool>;
    /// Has a lock last for this long from now. `false`: this holder does not have it any more.
    async fn renew_lock(&self, key: &str, holder: &str, life: Duration) -> Result<bool>;
    /// Releases a lock, if this holder still has it.
    async fn unlock(&self, key: &str, holder: &str) -> Result<()>;
}
