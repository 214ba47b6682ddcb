//! The store of the authorization server.

use serde::{Deserialize, Serialize};
use serde_with::apply;

use crate::zero::zero;

/// The store of clients, sessions and tokens.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct AuthServerStorage {
    /// The type of the store. The default is memory.
    #[serde(rename = "type")]
    pub type_: Option<AuthServerStorageType>,
    /// The connection to Redis.
    pub redis_config: Option<RedisStorage>,
}

/// The type of the authorization server's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthServerStorageType {
    /// In the process.
    Memory,
    /// In Redis.
    Redis,
}

/// A Redis store.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RedisStorage {
    /// Its address, as `host:port`.
    pub addr: String,
    /// The Sentinels of the Redis.
    pub sentinel_config: Option<RedisSentinel>,
    /// Whether it is a cluster.
    pub cluster_mode: bool,
    /// The type of authentication: always [`RedisStorage::ACL_USER`].
    pub auth_type: String,
    /// The user to log in as.
    pub acl_user_config: Option<RedisAclUser>,
    /// A prefix for every key.
    pub key_prefix: String,
    /// The timeout of connecting, as a Go duration.
    pub dial_timeout: String,
    /// The timeout of reading a response, as a Go duration.
    pub read_timeout: String,
    /// The timeout of writing a command, as a Go duration.
    pub write_timeout: String,
    /// TLS to Redis itself.
    pub tls: Option<RedisTls>,
    /// TLS to the Sentinels.
    pub sentinel_tls: Option<RedisTls>,
    /// A file with 32 bytes. Tokens of upstream providers are encrypted with them.
    pub encryption_key_file: String,
}

impl RedisStorage {
    /// The only type of authentication: a user with a password.
    pub const ACL_USER: &str = "aclUser";

    /// The prefix of the keys of a workload. The braces keep them on one node of a cluster.
    pub fn key_prefix(namespace: &str, workload: &str) -> String {
        format!("thv:auth:{{{namespace}:{workload}}}:")
    }
}

/// The Sentinels of a Redis.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RedisSentinel {
    /// The name of the primary.
    #[serde_with(skip_apply)]
    pub master_name: String,
    /// Their addresses, as `host:port`.
    #[serde_with(skip_apply)]
    pub sentinel_addrs: Vec<String>,
    /// The number of the database.
    pub db: i32,
}

/// A user of Redis.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RedisAclUser {
    /// The variable with the user's name. Without it, the user named default.
    pub username_env_var: String,
    /// The variable with the password.
    #[serde_with(skip_apply)]
    pub password_env_var: String,
}

/// TLS to Redis or its Sentinels.
#[apply(_ => #[serde(skip_serializing_if = "zero")])]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RedisTls {
    /// Whether the server's certificate is not verified.
    pub insecure_skip_verify: bool,
    /// A file with the certificate authority.
    pub ca_cert_file: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_workload_share_a_hash_tag() {
        assert_eq!(RedisStorage::key_prefix("team", "files"), "thv:auth:{team:files}:");
    }
}
