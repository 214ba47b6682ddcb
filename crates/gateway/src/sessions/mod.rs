//! Sessions of clients, and the session of the server that each maps to.
//!
//! They are in the proxy's memory, or in a Redis where all proxies of a server see them. The sessions of a stdio server
//! are always in memory: its process belongs to one proxy, and so does what its clients have subscribed to.

mod ended;
mod holders;
mod lost;
mod memory;
mod records;
mod shared;

use std::{net::IpAddr, sync::Arc, time::Duration};

use http::uri::Authority;
use skep_config::run_config::SessionRedis;
use skep_mcp::Rejection;

pub use crate::identity::Holder;
use crate::{ConfigError, identity::Owner};
pub use ended::Ended;
pub use holders::Shares;
pub use lost::{is_lost, may_be_lost};
pub use memory::{Full, Kept, Memory};
pub use records::Records;
use shared::Shared;
pub use skep_redis::RedisUnavailable;

/// What is known of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The session's id at the server, if it is not the one that the client has.
    pub server_id: Option<Box<str>>,
    /// The address of the pod that has the session, where the server has several. All sessions there share it.
    pub pod: Option<Arc<Authority>>,
    /// The request that started it, to restore it when the server has lost it.
    pub initialize: Option<Box<[u8]>>,
    /// Who started it, unless another program stored it, which does not record that.
    pub owner: Option<Owner>,
}

impl Session {
    /// Whether it may be used by this caller.
    pub fn belongs_to(&self, caller: Owner) -> bool {
        self.owner.is_none_or(|owner| owner == caller)
    }
}

/// The sessions at a server that speaks HTTP.
#[derive(Clone)]
pub enum Sessions {
    /// In the memory of this process.
    Memory(Arc<Memory>),
    /// In a Redis that several processes share.
    Redis(Arc<Shared>),
}

/// A session cannot be looked up or stored.
#[derive(Debug)]
pub enum SessionStoreError {
    /// The limit is reached.
    Full,
    /// The Redis that has them is unavailable.
    Unavailable,
}

impl Sessions {
    /// Sessions at this server, which expire when they are idle for this long.
    pub fn new(life: Duration, redis: Option<&SessionRedis>, server: &str) -> Result<Self, ConfigError> {
        Ok(match redis {
            Some(redis) => Self::Redis(Arc::new(Shared::new(redis, life, server)?)),
            None => Self::Memory(Arc::new(Memory::new(life))),
        })
    }

    /// The session of that id, which counts as a use.
    pub async fn get(&self, id: &str) -> Result<Option<Session>, SessionStoreError> {
        match self {
            Self::Memory(sessions) => Ok(sessions.get(id)),
            // In a box, so that the others do not carry its size around.
            Self::Redis(sessions) => Ok(Box::pin(sessions.get(id)).await?),
        }
    }

    /// Adds a session of a client at this address.
    pub async fn put(&self, id: &str, session: Session, peer: IpAddr) -> Result<(), SessionStoreError> {
        match self {
            Self::Memory(sessions) => Ok(sessions.put(id, session, peer)?),
            Self::Redis(sessions) => Box::pin(sessions.put(id, session, peer)).await,
        }
    }

    /// Changes what is known of a session, unless it has ended meanwhile.
    pub async fn change(&self, id: &str, session: Session) -> Result<(), SessionStoreError> {
        match self {
            Self::Memory(sessions) => {
                sessions.change(id, session);
                Ok(())
            }
            Self::Redis(sessions) => Ok(Box::pin(sessions.change(id, session)).await?),
        }
    }

    /// Ends a session.
    pub async fn remove(&self, id: &str) -> Result<(), SessionStoreError> {
        match self {
            Self::Memory(sessions) => {
                sessions.remove(id);
                Ok(())
            }
            Self::Redis(sessions) => Ok(Box::pin(sessions.remove(id)).await?),
        }
    }

    /// Ends the sessions that have not been used for as long as they live, from time to time, for ever.
    pub async fn expire(&self) {
        match self {
            Self::Memory(sessions) => sessions.expire().await,
            Self::Redis(sessions) => sessions.expire().await,
        }
    }

    /// Whether they can be used.
    pub async fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(sessions) => sessions.check().await,
        }
    }
}

impl From<Full> for SessionStoreError {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

impl From<RedisUnavailable> for SessionStoreError {
    fn from(_: RedisUnavailable) -> Self {
        Self::Unavailable
    }
}

impl From<SessionStoreError> for Rejection {
    fn from(error: SessionStoreError) -> Self {
        match error {
            SessionStoreError::Full => Self::Unavailable("sessions"),
            SessionStoreError::Unavailable => Self::Unavailable("session store"),
        }
    }
}
