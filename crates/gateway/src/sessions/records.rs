//! Records of sessions in Redis, which expire when they are not used.

use std::{borrow::Cow, sync::Arc, time::Duration};

use skep_redis::{Redis, RedisUnavailable, Script, cmd};
use uuid::Uuid;

use crate::{ConfigError, session_redis};

/// Ten years. Redis refuses what its clock cannot reach.
const LONGEST_LIFE: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

/// Takes a record for one who may ask again, as the reply may be lost: in its place is whose it is, until that is removed.
const TAKE: &str = include_str!("take.lua");

/// Records by the ids of their sessions.
pub struct Records {
    redis: Arc<Redis>,
    take: Arc<Script>,
    prefix: String,
    /// How long an idle session lives, in milliseconds.
    life: u64,
}

impl Records {
    /// Records in this database, under keys with this prefix. `field` is the part of the configuration that has them.
    pub fn new(
        field: &'static str,
        address: &str,
        db: i32,
        prefix: &str,
        life: Duration,
    ) -> Result<Self, ConfigError> {
        if !prefix.ends_with(':') {
            let message = format!("{field}.key_prefix: {prefix:?} must end with a colon");
            return Err(ConfigError::new(message));
        }
        let place = session_redis::place(field, address)?;
        if !place.keeps_together(prefix) {
            let message = format!(
                "{field}.key_prefix: {prefix:?} must have a hash tag, as in \"thv:{{name}}:\", so that a cluster keeps all keys on one node"
            );
            return Err(ConfigError::new(message));
        }
        Ok(Self {
            redis: Arc::new(session_redis::redis(field, place, db)?),
            take: Arc::new(Script::new(TAKE)),
            prefix: prefix.to_owned(),
            life: millis(life),
        })
    }

    /// Other records in the same database, under keys of their own.
    pub fn within(&self, name: &str) -> Self {
        Self {
            redis: self.redis.clone(),
            take: self.take.clone(),
            prefix: format!("{}{name}:", self.prefix),
            life: self.life,
        }
    }

    /// Checks that they can be used.
    pub async fn check(&self) -> Result<(), ConfigError> {
        session_redis::check(&self.redis).await
    }

    /// The record of a session, which counts as a use.
    pub async fn get(&self, id: &str) -> Result<Option<Vec<u8>>, RedisUnavailable> {
        self.redis.query(cmd("GETEX").arg(self.key(id)).arg("PX").arg(self.life)).await
    }

    /// Whether there is a record, which does not count as a use.
    pub async fn contains(&self, id: &str) -> Result<bool, RedisUnavailable> {
        self.redis.query(cmd("EXISTS").arg(self.key(id))).await
    }

    /// Adds a record.
    pub async fn put(&self, id: &str, record: &[u8]) -> Result<(), RedisUnavailable> {
        self.redis.query(cmd("SET").arg(self.key(id)).arg(record).arg("PX").arg(self.life)).await
    }

    /// Adds a record that lives for this long, used or not.
    pub async fn put_for(&self, id: &str, record: &[u8], life: Duration) -> Result<(), RedisUnavailable> {
        self.redis.query(cmd("SET").arg(self.key(id)).arg(record).arg("PX").arg(millis(life))).await
    }

    /// The same, unless there is another one. Returns whether it is this one that is there.
    pub async fn put_new_for(
        &self,
        id: &str,
        record: &[u8],
        life: Duration,
    ) -> Result<bool, RedisUnavailable> {
        let mut command = cmd("SET");
        command.arg(self.key(id)).arg(record).arg("NX").arg("PX").arg(millis(life));
        let put: Option<String> = self.redis.query(&command).await?;
        // If the first reply was lost, it is what was sent then.
        Ok(put.is_some() || self.peek(id).await?.as_deref() == Some(record))
    }

    /// Lets a record live for only this long, used or not.
    pub async fn shorten(&self, id: &str, life: Duration) -> Result<(), RedisUnavailable> {
        self.redis.query(cmd("PEXPIRE").arg(self.key(id)).arg(millis(life))).await
    }

    /// A record, which does not count as a use.
    pub async fn peek(&self, id: &str) -> Result<Option<Vec<u8>>, RedisUnavailable> {
        self.redis.query(cmd("GET").arg(self.key(id))).await
    }

    /// Takes a record, which nobody else can then. Of several that do this at once, one gets it. The one who has this name may ask
    /// again, until the record is removed.
    pub async fn take(&self, id: &str, taker: &str) -> Result<bool, RedisUnavailable> {
        self.redis.run(&self.take, &[self.key(id)], &taker).await
    }

    /// Changes a record, unless the session has ended meanwhile.
    pub async fn change(&self, id: &str, record: &[u8]) -> Result<(), RedisUnavailable> {
        let mut command = cmd("SET");
        command.arg(self.key(id)).arg(record).arg("XX").arg("PX").arg(self.life);
        self.redis.query(&command).await
    }

    /// Removes these records.
    pub async fn remove_all(&self, ids: &[Arc<str>]) -> Result<(), RedisUnavailable> {
        let keys: Vec<String> = ids.iter().map(|id| self.key(id)).collect();
        self.redis.query(cmd("DEL").arg(keys)).await
    }

    /// Removes a record.
    pub async fn remove(&self, id: &str) -> Result<(), RedisUnavailable> {
        self.redis.query(cmd("DEL").arg(self.key(id))).await
    }

    pub(super) fn key(&self, id: &str) -> String {
        format!("{}{}", self.prefix, name(id))
    }
}

fn millis(life: Duration) -> u64 {
    u64::try_from(life.as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_LIFE)
}

/// The form of an id in a key. ToolHive's store has UUIDs alone: another id becomes one, by its digest.
pub(super) fn name(id: &str) -> Cow<'_, str> {
    match Uuid::try_parse(id) {
        Ok(_) => id.into(),
        Err(_) => Uuid::new_v5(&Uuid::NAMESPACE_DNS, id.as_bytes()).to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(address: &str, db: i32, prefix: &str) -> Option<String> {
        Records::new("field", address, db, prefix, Duration::MAX).err().map(|error| error.to_string())
    }

    #[test]
    fn cluster_needs_a_prefix_with_a_hash_tag() {
        assert_eq!(error("redis:1", 0, "thv:"), None);
        assert_eq!(error("redis+cluster://redis:1", 0, "thv:{a}:"), None);
        let error = error("redis+cluster://redis:1", 0, "thv:").unwrap();
        assert!(error.starts_with("field.key_prefix: ") && error.contains("hash tag"), "{error}");
    }

    #[test]
    fn error_names_the_field_and_not_the_password() {
        for (address, db) in [("redis", 0), ("redis://:secret@redis:1", 0), ("redis:1", -1)] {
            let error = error(address, db, "thv:").unwrap();
            assert!(error.starts_with("field: ") && !error.contains("secret"), "{error}");
        }
    }
}
