//! What happens to sessions and clients, for those who audit and count it.

use std::{
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A user has logged in for a client.
    Login,
    /// A user has decided about a client.
    Consent,
    /// A client has continued a session.
    Refresh,
    /// A code or refresh token was used again: the session ends.
    Reuse,
    /// A client has revoked a session.
    Revocation,
    /// A user or an administrator has ended a session.
    SessionEnd,
    /// A client has registered, or was forgotten.
    Registration,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventOutcome {
    /// As requested.
    Success,
    /// It is not allowed.
    Denied,
    /// It failed.
    Failure,
}

/// Something that has happened. No token is part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// What.
    pub kind: EventKind,
    /// How it went.
    pub outcome: EventOutcome,
    /// The user, as the subject of access tokens, if that is known.
    pub user: &'a str,
    /// The id of the client, if that is known.
    pub client: &'a str,
    /// The address that the request came from, if there was one.
    pub peer: Option<IpAddr>,
}

/// What is told of each event. It must not wait.
pub type Observer = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// Tells the observer.
#[derive(Default)]
pub(crate) struct Events(RwLock<Option<Observer>>);

impl Events {
    pub(crate) fn set(&self, observer: Observer) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(observer);
    }

    pub(crate) fn tell(&self, event: &Event<'_>) {
        let observer = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            observer(event);
        }
    }
}
