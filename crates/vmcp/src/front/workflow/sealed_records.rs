//! Records that only replicas of this server can read and write, where they share a secret.

use std::{sync::Arc, time::Duration};

use skep_auth::Seal;
use skep_gateway::sessions::{Records, RedisUnavailable};
use tokio::time::{Instant, sleep};

use crate::limits;

/// Records of one kind. Each is encrypted for its own place.
pub(super) struct SealedRecords {
    records: Records,
    kind: &'static str,
    seal: Arc<Seal>,
}

impl SealedRecords {
    pub(super) fn new(sessions: &Records, kind: &'static str, seal: &Arc<Seal>) -> Self {
        Self { records: sessions.within(kind), kind, seal: seal.clone() }
    }

    /// Adds a record that lives for this long. Returns whether it was added.
    pub(super) async fn put(&self, id: &str, value: &str, life: Duration) -> bool {
        match self.seal.seal(&self.place(id), value) {
            Some(sealed) => self.records.put_for(id, sealed.as_bytes(), life).await.is_ok(),
            None => false,
        }
    }

    /// Adds a record that lives for this long, unless there is another one. Returns whether it is this one that is there. As it may be
    /// there although the reply was lost, this is tried for a while.
    pub(super) async fn put_new(
        &self,
        id: &str,
        value: &str,
        life: Duration,
    ) -> Result<bool, RedisUnavailable> {
        let Some(sealed) = self.seal.seal(&self.place(id), value) else { return Ok(false) };
        let until = Instant::now() + limits::TAKE_TIME;
        loop {
            match self.records.put_new_for(id, sealed.as_bytes(), life).await {
                Err(_) if Instant::now() < until => sleep(limits::TAKE_PAUSE).await,
                put => return put,
            }
        }
    }

    /// Lets a record live for only this long, or adds this one if there is none. If that fails, it expires later.
    pub(super) async fn retire(&self, id: &str, value: &str, life: Duration) {
        let Some(sealed) = self.seal.seal(&self.place(id), value) else { return };
        if let Ok(false) = self.records.put_new_for(id, sealed.as_bytes(), life).await {
            self.records.shorten(id, life).await.ok();
        }
    }

    /// A record. One of another writer is none.
    pub(super) async fn find(&self, id: &str) -> Result<Option<String>, RedisUnavailable> {
        let sealed = self.records.peek(id).await?.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(sealed.and_then(|sealed| self.seal.open_only_sealed(&self.place(id), &sealed)))
    }

    /// Takes a record, which nobody else can then. The one who has this name may ask again.
    pub(super) async fn take(&self, id: &str, taker: &str) -> Result<bool, RedisUnavailable> {
        self.records.take(id, taker).await
    }

    /// Removes a record. If that fails, it expires.
    pub(super) async fn remove(&self, id: &str) {
        self.records.remove(id).await.ok();
    }

    fn place(&self, id: &str) -> String {
        format!("{}:{id}", self.kind)
    }
}
