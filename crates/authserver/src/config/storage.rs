//! The store of a configuration.

use std::{fs, time::Duration};

use skep_config::{
    AuthServer, FieldError, FieldPath,
    auth_server::{self as config, AuthServerStorageType, RedisStorage},
    duration,
};
use skep_redis::{Address, Place, Settings, Timeouts, Tls, Topology};

/// The field of the settings.
const FIELD: &str = "storage.redis_config";

/// Where rows are stored.
pub(crate) enum StorageSettings {
    /// In this process.
    Memory,
    /// In Redis.
    Redis(Box<RedisSettings>),
}

/// The settings of a store in Redis.
pub(crate) struct RedisSettings {
    pub(crate) connection: Settings,
    pub(crate) prefix: String,
    /// The key that encrypts tokens of upstreams.
    pub(crate) key: Option<[u8; 32]>,
}

/// The store of a configuration.
pub(crate) fn storage(server: &AuthServer) -> Result<StorageSettings, Vec<FieldError>> {
    let storage = server.storage.clone().unwrap_or_default();
    if storage.type_ != Some(AuthServerStorageType::Redis) {
        return Ok(StorageSettings::Memory);
    }
    let Some(redis) = &storage.redis_config else {
        return Err(vec![FieldError::new(FIELD, "must be set for redis")]);
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
    let connect = time("dial_timeout", &redis.dial_timeout, 5);
    let response =
        time("read_timeout", &redis.read_timeout, 3) + time("write_timeout", &redis.write_timeout, 3);
    let timeouts = Timeouts { connect, response, total: connect + response };
    let mut checked = |error: FieldError| errors.push(error);
    let topology = topology(redis).map_err(&mut checked);
    let tls = tls("tls", redis.tls.as_ref()).map_err(&mut checked);
    let login = credentials(redis).map_err(&mut checked);
    let key = key(&redis.encryption_key_file).map_err(&mut checked);
    match (topology, tls, login, key) {
        (Ok((topology, db)), Ok(tls), Ok((user, password)), Ok(key)) if errors.is_empty() => {
            let (place, prefix) = (Place { topology, tls }, redis.key_prefix.clone());
            if !place.keeps_together(&prefix) {
                let message = "must have a hash tag, as in \"thv:auth:{name}:\", so that a cluster keeps all keys on one node";
                return Err(vec![FieldError::new("key_prefix", message).within(FIELD)]);
            }
            let password_variable = redis.acl_user_config.as_ref().map(|user| user.password_env_var.clone());
            let password_variable = password_variable.unwrap_or_default();
            let connection =
                Settings { field: FIELD, place, db, user, password, password_variable, timeouts };
            Ok(StorageSettings::Redis(Box::new(RedisSettings { connection, prefix, key })))
        }
        _ => Err(errors.into_iter().map(|error| error.within(FIELD)).collect()),
    }
}

/// The nodes, and the number of the database.
fn topology(redis: &RedisStorage) -> Result<(Topology, i32), FieldError> {
    match &redis.sentinel_config {
        None if redis.addr.is_empty() => Err(FieldError::new("addr", "must not be empty")),
        None => {
            let address = address("addr", &redis.addr)?;
            Ok((if redis.cluster_mode { Topology::Cluster(address) } else { Topology::Server(address) }, 0))
        }
        Some(_) if redis.cluster_mode || !redis.addr.is_empty() => {
            Err(FieldError::new("sentinel_config", "must not be set together with addr or cluster_mode"))
        }
        Some(sentinel) if sentinel.master_name.is_empty() || sentinel.sentinel_addrs.is_empty() => {
            Err(FieldError::new("sentinel_config", "must have master_name and sentinel_addrs"))
        }
        Some(sentinel) => {
            let addresses = sentinel.sentinel_addrs.iter().enumerate().map(|(index, text)| {
                address(FieldPath::from("sentinel_config.sentinel_addrs").index(index), text)
            });
            let topology = Topology::Sentinels {
                primary: sentinel.master_name.clone(),
                addresses: addresses.collect::<Result<_, _>>()?,
                tls: tls("sentinel_tls", redis.sentinel_tls.as_ref())?,
            };
            Ok((topology, sentinel.db))
        }
    }
}

fn address(field: impl Into<FieldPath>, text: &str) -> Result<Address, FieldError> {
    text.parse().map_err(|error| FieldError::new(field, format!("{error}")))
}

fn tls(field: &'static str, tls: Option<&config::RedisTls>) -> Result<Option<Tls>, FieldError> {
    let Some(tls) = tls else { return Ok(None) };
    let file = &tls.ca_cert_file;
    let authority = match &**file {
        "" => None,
        file => Some(fs::read(file).map_err(|error| {
            FieldError::new("ca_cert_file", format!("{file} cannot be read: {error}")).within(field)
        })?),
    };
    Ok(Some(Tls { is_insecure: tls.insecure_skip_verify, authority }))
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
