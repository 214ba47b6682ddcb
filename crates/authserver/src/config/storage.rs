//! The store of a configuration.

use std::{fs, time::Duration};

use skep_config::{
    AuthServer, FieldError,
    auth_server::{AuthServerStorageType, RedisStorage},
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
    pub(crate) address: String,
    pub(crate) user: Option<String>,
    pub(crate) password: String,
    pub(crate) prefix: String,
    pub(crate) connect_time: Duration,
    pub(crate) response_time: Duration,
    /// The key that encrypts tokens of upstreams.
    pub(crate) key: Option<[u8; 32]>,
}

/// The store of a configuration.
pub(crate) fn storage(config: &AuthServer) -> Result<StorageSettings, Vec<FieldError>> {
    let storage = config.storage.clone().unwrap_or_default();
    if storage.type_ != Some(AuthServerStorageType::Redis) {
        return Ok(StorageSettings::Memory);
    }
    let within = |error: FieldError| error.within("storage.redis_config");
    let Some(redis) = &storage.redis_config else {
        return Err(vec![FieldError::new("storage.redis_config", "must be set for redis")]);
    };
    let mut errors = unsupported(redis);
    if redis.addr.is_empty() && redis.sentinel_config.is_none() {
        errors.push(FieldError::new("addr", "must not be empty"));
    }
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
    let (user, password) = credentials(redis).unwrap_or_else(|error| {
        errors.push(error);
        (None, String::new())
    });
    let key = key(&redis.encryption_key_file).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    if !errors.is_empty() {
        return Err(errors.into_iter().map(within).collect());
    }
    let (address, prefix) = (redis.addr.clone(), redis.key_prefix.clone());
    Ok(StorageSettings::Redis(Box::new(RedisSettings {
        address,
        user,
        password,
        prefix,
        connect_time,
        response_time,
        key,
    })))
}

/// Parts that this version does not support.
fn unsupported(redis: &RedisStorage) -> Vec<FieldError> {
    let fields = [
        ("sentinel_config", redis.sentinel_config.is_some()),
        ("cluster_mode", redis.cluster_mode),
        ("tls", redis.tls.is_some()),
    ];
    let set = fields.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(field, _)| FieldError::new(field, "is not supported by this version")).collect()
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
