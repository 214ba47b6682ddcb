//! Locks that all servers with one store respect.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::{Result, Store, StoreError};
use crate::limits;

/// How often a lock is tried that another holder has. Redis does not report that a key was deleted.
const PAUSE: Duration = Duration::from_millis(50);

/// A lock. One that is dropped is released when its time has passed.
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

    /// Releases it. If that fails, it ends by itself.
    pub(crate) async fn release(self) {
        self.store.unlock(self.key, &self.holder).await.ok();
    }
}
