//! The store of a configuration.

use std::{fs, time::Duration};

use skep_config::{
    AuthServer, FieldError,
    auth_server::{self as config, AuthServerStorageType, RedisStorage},
    duration,
};

/// Where rows are stored.
pub(crate) enum StorageSettings {
    /// In this process.
    Memory,
    /// In Redis.
    Redis(Box<RedisSettings>),
}

/// A Redis.
pub(crate) struct RedisSettings {
    pub(crate) place: RedisPlace,
    pub(crate) tls: Option<RedisTls>,
    pub(crate) user: Option<String>,
    pub(crate) password: String,
    pub(crate) prefix: String,
    pub(crate) connect_time: Duration,
    pub(crate) response_time: Duration,
    /// The key that encrypts tokens of upstreams.
    pub(crate) key: Option<[u8; 32]>,
}

/// Where a Redis is. Addresses are written as `host:port`.
#[derive(Clone)]
pub(crate) enum RedisPlace {
    /// At this address.
    Address(String),
    /// On the node of a cluster that has the keys. The address is of any node.
    Cluster(String),
    /// Where these Sentinels have it.
    Sentinels { primary: String, addresses: Vec<String>, db: i32, tls: Option<RedisTls> },
}

/// TLS to a Redis.
#[derive(Clone)]
pub(crate) struct RedisTls {
    /// Whether certificates are not verified.
    pub(crate) is_insecure: bool,
    /// The certificate authority in PEM, if it is not one of the system's.
    pub(crate) authority: Option<Vec<u8>>,
}

/// The store of a configuration.
pub(crate) fn storage(server: &AuthServer) -> Result<StorageSettings, Vec<FieldError>> {
    let storage = server.storage.clone().unwrap_or_default();
    if storage.type_ != Some(AuthServerStorageType::Redis) {
        return Ok(StorageSettings::Memory);
    }
    let within = |error: FieldError| error.within("storage.redis_config");
    let Some(redis) = &storage.redis_config else {
        return Err(vec![FieldError::new("storage.redis_config", "must be set for redis")]);
    };
    let mut errors = Vec::new();
    if redis.key_prefix.is_empty() {
        errors.push(FieldError::new("key_prefix", "must not be empty"));
    }
    let mut time = |field: &'static str, text: &str, default: u64| match text {
        "" => Duration::from_secs(default),
        text => duration::parse(text).unwrap_or_else(|error| {
            errors.push(FieldError::new(field, format!("is not a duration: {error}")));
            Duration::from_secs(default)
        }),
    };
    let connect_time = time("dial_timeout", &redis.dial_timeout, 5);
    let response_time =
        time("read_timeout", &redis.read_timeout, 3) + time("write_timeout", &redis.write_timeout, 3);
    let mut checked = |error: FieldError| errors.push(error);
    let place = place(redis).map_err(&mut checked);
    let tls = tls("tls", redis.tls.as_ref()).map_err(&mut checked);
    let login = credentials(redis).map_err(&mut checked);
    let key = key(&redis.encryption_key_file).map_err(&mut checked);
    match (place, tls, login, key) {
        (Ok(place), Ok(tls), Ok((user, password)), Ok(key)) if errors.is_empty() => {
            let prefix = redis.key_prefix.clone();
            let settings =
                RedisSettings { place, tls, user, password, prefix, connect_time, response_time, key };
            Ok(StorageSettings::Redis(Box::new(settings)))
        }
        _ => Err(errors.into_iter().map(within).collect()),
    }
}

fn place(redis: &RedisStorage) -> Result<RedisPlace, FieldError> {
    match &redis.sentinel_config {
        None if redis.addr.is_empty() => Err(FieldError::new("addr", "must not be empty")),
        None if redis.cluster_mode => Ok(RedisPlace::Cluster(redis.addr.clone())),
        None => Ok(RedisPlace::Address(redis.addr.clone())),
        Some(_) if redis.cluster_mode || !redis.addr.is_empty() => {
            Err(FieldError::new("sentinel_config", "must not be set together with addr or cluster_mode"))
        }
        Some(sentinel) if sentinel.master_name.is_empty() || sentinel.sentinel_addrs.is_empty() => {
            Err(FieldError::new("sentinel_config", "must have master_name and sentinel_addrs"))
        }
        Some(sentinel) => Ok(RedisPlace::Sentinels {
            primary: sentinel.master_name.clone(),
            addresses: sentinel.sentinel_addrs.clone(),
            db: sentinel.db,
            tls: tls("sentinel_tls", redis.sentinel_tls.as_ref())?,
        }),
    }
}

fn tls(field: &'static str, tls: Option<&config::RedisTls>) -> Result<Option<RedisTls>, FieldError> {
    let Some(tls) = tls else { return Ok(None) };
    let file = &tls.ca_cert_file;
    let authority = match &**file {
        "" => None,
        file => Some(fs::read(file).map_err(|error| {
            FieldError::new("ca_cert_file", format!("{file} cannot be read: {error}")).within(field)
        })?),
    };
    Ok(Some(RedisTls { is_insecure: tls.insecure_skip_verify, authority }))
}

fn credentials(redis: &RedisStorage) -> Result<(Option<String>, String), FieldError> {
    let Some(user) = &redis.acl_user_config else {
        return Err(FieldError::new("acl_user_config", "must be set"));
    };
    let variable = |field: &'static str, name: &str| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty());
        let missing = || FieldError::new(field, format!("the environment variable {name} is not set"));
        value.ok_or_else(missing).map_err(|error| error.within("acl_user_config"))
    };
    let name = match &*user.username_env_var {
        "" => None,
        name => Some(variable("username_env_var", name)?),
    };
    Ok((name, variable("password_env_var", &user.password_env_var)?))
}

fn key(file: &str) -> Result<Option<[u8; 32]>, FieldError> {
    if file.is_empty() {
        return Ok(None);
    }
    let wrong = |message: String| FieldError::new("encryption_key_file", message);
    let bytes = fs::read(file).map_err(|error| wrong(format!("{file} cannot be read: {error}")))?;
    let key = bytes.try_into().map_err(|_| wrong(format!("{file} must have 32 bytes")))?;
    Ok(Some(key))
}
