//! Locks that all servers with one store respect.

use std::{convert::Infallible, pin::pin, time::Duration};

use futures::future::{Either, pending, select};
use tokio::time::Instant;
use tracing::warn;
use uuid::Uuid;

use super::{Result, Store, StoreError};
use crate::limits;

/// How often a lock is tried that another holder has. Redis does not report that a key was deleted.
const PAUSE: Duration = Duration::from_millis(50);

/// A lock. It ends by itself soon, unless it is renewed: that of a process which was killed holds no other for long.
pub(crate) struct Lock<'a> {
    store: &'a dyn Store,
    key: &'a str,
    holder: String,
    /// Whether another holder had it before.
    pub(crate) was_awaited: bool,
}

impl<'a> Lock<'a> {
    /// Takes a lock, after another holder has released it.
    pub(crate) async fn take(store: &'a dyn Store, key: &'a str) -> Result<Self> {
        let until = Instant::now() + limits::LOCK_WAIT;
        let mut lock = Self { store, key, holder: Uuid::new_v4().to_string(), was_awaited: false };
        loop {
            match store.lock(key, &lock.holder, limits::LOCK_LIFE).await {
                Ok(true) => return Ok(lock),
                Ok(false) if Instant::now() < until => lock.was_awaited = true,
                Ok(false) => return Err(StoreError::Unavailable),
                Err(error) => {
                    // It may have been taken, and only the response is lost.
                    lock.release().await;
                    return Err(error);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Does something while it is held, however long that takes, and releases it.
    pub(crate) async fn hold_during<T>(self, work: impl Future<Output = T>) -> T {
        let done = match select(pin!(work), pin!(self.renew())).await {
            Either::Left((done, _)) => done,
            Either::Right((never, _)) => match never {},
        };
        self.release().await;
        done
    }

    async fn renew(&self) -> Infallible {
        loop {
            tokio::time::sleep(limits::LOCK_RENEWAL).await;
            // A failure of the store is none of the lock: there are further attempts before it ends.
            if self.store.renew_lock(self.key, &self.holder, limits::LOCK_LIFE).await == Ok(false) {
                warn!("a lock has ended while it was held: the store was unavailable for too long");
                return pending().await;
            }
        }
    }

    /// Releases it. If that fails, it ends by itself.
    async fn release(self) {
        self.store.unlock(self.key, &self.holder).await.ok();
    }
}
