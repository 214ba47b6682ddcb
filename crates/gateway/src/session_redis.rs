//! The Redis with sessions and rate limits, which is configured by an address and a password.

use skep_config::env;
use skep_redis::{Place, Redis, Settings, Timeouts};

use crate::{ConfigError, limits};

/// Parses its address. `field` is the part of the configuration that has it.
pub(crate) fn place(field: &'static str, address: &str) -> Result<Place, ConfigError> {
    address.parse().map_err(|error| ConfigError::new(format!("{field}: the address {error}")))
}

/// The Redis at this place, with the password of the environment. It is not connected yet.
pub(crate) fn redis(field: &'static str, place: Place, db: i32) -> Result<Redis, ConfigError> {
    let settings = Settings {
        field,
        place,
        db,
        user: None,
        password: std::env::var(env::SESSION_REDIS_PASSWORD).unwrap_or_default(),
        password_variable: env::SESSION_REDIS_PASSWORD.to_owned(),
        timeouts: Timeouts {
            connect: limits::REDIS_CONNECT_TIME,
            response: limits::REDIS_ANSWER_TIME,
            total: limits::REDIS_TIME,
        },
    };
    Redis::new(settings).map_err(|error| ConfigError::new(format!("{field}: {error}")))
}

/// Checks that it responds, and waits for one that starts at the same time.
pub(crate) async fn check(redis: &Redis) -> Result<(), ConfigError> {
    redis.check().await.map_err(|error| ConfigError::new(format!("{}: {error}", error.field)))
}
