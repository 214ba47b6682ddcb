//! The storage of the authorization server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{Duration, enums::text_enum, list, refs::SecretKeyRef};

text_enum! {
    /// Where the authorization server stores its data.
    pub enum AuthServerStorageType {
        /// In the pod's memory. Users log in again after a restart, and replicas do not share data.
        #[default]
        Memory = "memory",
        /// In Redis, shared by all replicas.
        Redis = "redis",
    }
}

/// Where clients, sessions and tokens are stored.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthServerStorage {
    /// Where the data is stored. With more than one replica, choose redis.
    #[serde(rename = "type")]
    #[schemars(extend("default" = AuthServerStorageType::default()))]
    pub type_: Option<AuthServerStorageType>,
    /// How to reach Redis. Set it with type redis.
    pub redis: Option<RedisStorage>,
}

impl AuthServerStorage {
    /// Where the data is stored.
    pub fn type_(&self) -> AuthServerStorageType {
        self.type_.unwrap_or_default()
    }
}

/// A Redis for storage: a single server or a cluster behind one address, or one that Sentinel monitors.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(has(self.addr) && self.addr.size() > 0) != has(self.sentinelConfig)",
        "message": "set either addr, as host:port, or sentinelConfig, not both",
    },
    {
        "rule": "!(has(self.clusterMode) && self.clusterMode) || (has(self.addr) && self.addr.size() > 0)",
        "message": "clusterMode needs addr, as host:port of the cluster",
    },
]))]
pub struct RedisStorage {
    /// The address of Redis, as host:port. For a cluster, that of any of its nodes.
    pub addr: Option<String>,
    /// Whether addr is that of a Redis Cluster.
    pub cluster_mode: Option<bool>,
    /// The Sentinels that know where the primary is. Set it instead of addr.
    pub sentinel_config: Option<RedisSentinel>,
    /// The credentials to authenticate with.
    pub acl_user_config: RedisAclUser,
    /// How long to wait for a connection.
    #[schemars(extend("default" = RedisStorage::DIAL_TIMEOUT))]
    pub dial_timeout: Option<Duration>,
    /// How long to wait for a response.
    #[schemars(extend("default" = RedisStorage::READ_TIMEOUT))]
    pub read_timeout: Option<Duration>,
    /// How long sending a command may take.
    #[schemars(extend("default" = RedisStorage::WRITE_TIMEOUT))]
    pub write_timeout: Option<Duration>,
    /// TLS to Redis itself. Without it, the connection is not encrypted.
    pub tls: Option<RedisTls>,
    /// TLS to the Sentinels. Without it, the connection to them is not encrypted.
    pub sentinel_tls: Option<RedisTls>,
    /// A key of 32 bytes, with which the tokens of upstream providers are encrypted in Redis. Tokens that were stored
    /// without it can still be read. Without the key, or with another one, users log in again.
    pub encryption_key_secret_ref: Option<SecretKeyRef>,
}

impl RedisStorage {
    const DIAL_TIMEOUT: &str = "5s";
    const READ_TIMEOUT: &str = "3s";
    const WRITE_TIMEOUT: &str = "3s";

    /// How long to wait for a connection.
    pub fn dial_timeout(&self) -> Duration {
        self.dial_timeout.clone().unwrap_or_else(|| Self::DIAL_TIMEOUT.into())
    }

    /// How long to wait for a response.
    pub fn read_timeout(&self) -> Duration {
        self.read_timeout.clone().unwrap_or_else(|| Self::READ_TIMEOUT.into())
    }

    /// How long sending a command may take.
    pub fn write_timeout(&self) -> Duration {
        self.write_timeout.clone().unwrap_or_else(|| Self::WRITE_TIMEOUT.into())
    }
}

/// Redis Sentinels.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisSentinel {
    /// The name of the primary, as configured in the Sentinels.
    pub master_name: String,
    /// The addresses of the Sentinels, as host:port. Set this or sentinelService.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = list::atomic)]
    pub sentinel_addrs: Vec<String>,
    /// The Service in front of the Sentinels. Set this or sentinelAddrs.
    pub sentinel_service: Option<RedisSentinelService>,
    /// The number of the Redis database.
    #[schemars(extend("default" = 0))]
    pub db: Option<i32>,
}

/// A Service in front of Redis Sentinels.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisSentinelService {
    /// The name of the Service.
    pub name: String,
    /// The namespace of the Service. The default is the namespace of the workload.
    pub namespace: Option<String>,
    /// The port of the Service.
    #[schemars(extend("default" = RedisSentinelService::DEFAULT_PORT))]
    pub port: Option<i32>,
}

impl RedisSentinelService {
    const DEFAULT_PORT: i32 = 26379;

    /// The port of the Service.
    pub fn port(&self) -> i32 {
        self.port.unwrap_or(Self::DEFAULT_PORT)
    }
}

/// A user of Redis.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisAclUser {
    /// The Secret key that holds the user name. Leave it out for the user named default.
    pub username_secret_ref: Option<SecretKeyRef>,
    /// The Secret key that holds the password.
    pub password_secret_ref: SecretKeyRef,
}

/// TLS to Redis or its Sentinels.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisTls {
    /// Whether verification of the server's certificate is skipped. The connection can then be intercepted: for tests
    /// only.
    pub insecure_skip_verify: Option<bool>,
    /// The Secret key that holds the CA certificates, in PEM, for the server's certificate. Without it, the public
    /// certificate authorities are trusted.
    pub ca_cert_secret_ref: Option<SecretKeyRef>,
}
