//! The Redis that the replicas of a server share.
//!
//! Every request to it ends within [`limits::REDIS_TIME`], with a response or an error.

mod connection;
mod error;

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use ::redis::{Cmd, FromRedisValue, RedisError, ToRedisArgs, Value, cmd, from_redis_value};
use skep_config::env;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::{ConfigError, limits};
use connection::Connection;
pub(crate) use error::Cause;
pub use error::RedisUnavailable;
use error::{Failure, describe, is_permanent, is_unknown_script, timed_out};

/// A Redis, whether it is available or not.
pub(crate) struct Redis {
    /// The field of the configuration that names it.
    field: &'static str,
    address: String,
    connection: Connection,
    log: Mutex<LogThrottle>,
}

/// A script, which Redis keeps by its digest.
pub(crate) struct Script {
    source: &'static str,
    digest: String,
}

impl Script {
    pub(crate) fn new(source: &'static str) -> Self {
        Self { source, digest: ::redis::Script::new(source).get_hash().to_owned() }
    }

    /// The command that runs it, by its digest or by its source.
    fn command(&self, name: &str, script: &str, keys: &[String], arguments: &impl ToRedisArgs) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
        command
    }
}

/// When a failure was last logged, and how many were not logged since.
#[derive(Default)]
struct LogThrottle {
    logged: Option<Instant>,
    suppressed: u64,
}

impl Redis {
    /// The Redis at this address, with the password of the environment. It is not connected to yet.
    pub(crate) fn new(field: &'static str, address: &str, db: i32) -> Result<Self, ConfigError> {
        let password = std::env::var(env::SESSION_REDIS_PASSWORD).unwrap_or_default();
        Self::with_password(field, address, db, &password)
    }

    fn with_password(
        field: &'static str,
        address: &str,
        db: i32,
        password: &str,
    ) -> Result<Self, ConfigError> {
        let connection = Connection::new(address, db, password)
            .map_err(|message| ConfigError::new(format!("{field}: {message}")))?;
        Ok(Self { field, address: address.to_owned(), connection, log: Mutex::default() })
    }

    /// Checks that it responds, and waits for one that starts at the same time.
    pub(crate) async fn check(&self) -> Result<(), ConfigError> {
        let begin = Instant::now();
        loop {
            let Err(failure) = self.try_query::<()>(&cmd("PING")).await else { return Ok(()) };
            if let Failure::New(error) = &failure
                && (begin.elapsed() > limits::REDIS_START_TIME || is_permanent(error))
            {
                let Self { field, address, .. } = self;
                let message = format!("{field}: the Redis at {address} cannot be used: {}", describe(error));
                return Err(ConfigError::new(message));
            }
            self.log_throttled(failure);
            sleep(limits::REDIS_PAUSE).await;
        }
    }

    /// Sends a command, which may be executed twice.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisUnavailable> {
        self.try_query(command).await.map_err(|failure| self.log_throttled(failure))
    }

    /// Runs a script, which is sent if Redis does not know it. It may run twice.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &(impl ToRedisArgs + Sync),
    ) -> Result<T, RedisUnavailable> {
        let by_digest = script.command("EVALSHA", &script.digest, keys, arguments);
        let reply = in_time(async {
            match self.connection.send(&by_digest).await {
                Err(Failure::New(error)) if is_unknown_script(&error) => {
                    self.connection.send(&script.command("EVAL", script.source, keys, arguments)).await
                }
                other => other,
            }
        });
        reply.await.map_err(|failure| self.log_throttled(failure))
    }

    async fn try_query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        in_time(self.connection.send(command)).await
    }

    /// Logs a failure, unless one was logged just before.
    fn log_throttled(&self, failure: Failure) -> RedisUnavailable {
        let unavailable = RedisUnavailable(failure.cause());
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = log.logged.is_none_or(|logged| logged.elapsed() >= limits::REDIS_LOG_PAUSE);
        match failure {
            Failure::New(error) if is_due => {
                let (field, address, suppressed) = (self.field, &self.address, log.suppressed);
                *log = LogThrottle { logged: Some(Instant::now()), suppressed: 0 };
                warn!(field, address, error = describe(&error), suppressed, "Redis unavailable");
            }
            _ => log.suppressed += 1,
        }
        unavailable
    }
}

/// A reply, if it comes in time.
async fn in_time<T: FromRedisValue>(
    reply: impl Future<Output = Result<Value, Failure>>,
) -> Result<T, Failure> {
    let reply = timeout(limits::REDIS_TIME, reply).await.unwrap_or_else(|_| Err(timed_out().into()));
    from_redis_value(reply?).map_err(|error| RedisError::from(error).into())
}

/// Keys name callers, and the connection has the password.
impl fmt::Debug for Redis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redis").field("address", &self.address).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use skep_testkit::ReplyFault;

    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for valid in ["redis.ns.svc:6379", "127.0.0.1:1", "[::1]:6379"] {
            assert!(Redis::with_password("a.field", valid, 0, "").is_ok(), "{valid}");
        }
        for invalid in
            ["", "redis", ":6379", "redis:", "redis:0", "redis:port", "::1:6379", "redis:99999", "a@b:1"]
        {
            let error = Redis::with_password("a.field", invalid, 0, "").unwrap_err().to_string();
            assert!(error.starts_with("a.field: "), "{error}");
        }
        assert!(Redis::with_password("a.field", "redis:1", -1, "").is_err());
    }

    #[tokio::test]
    async fn a_password_is_used_and_is_in_no_message() {
        let redis = skep_testkit::Redis::with_password("correct-horse").await;
        let with = |password| Redis::with_password("a.field", &redis.address(), 3, password).unwrap();
        with("correct-horse").query::<()>(&cmd("PING")).await.unwrap();
        let db: String = with("correct-horse").query(cmd("CLIENT").arg("INFO")).await.unwrap();
        assert!(db.contains(" db=3 "), "{db}");
        let beyond = Redis::with_password("a.field", &redis.address(), 99, "correct-horse").unwrap();
        let error = beyond.check().await.unwrap_err().to_string();
        assert!(error.contains("there is no such database"), "{error}");

        for (password, expected) in [("battery-staple", "rejects the password"), ("", "password")] {
            let client = with(password);
            let error = client.check().await.unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("THV_SESSION_REDIS_PASSWORD"), "{error}");
            let shown = format!("{client:?} {error}");
            assert!(!shown.contains("battery-staple"), "{shown}");
        }
    }

    #[tokio::test]
    async fn a_message_of_redis_that_repeats_a_command_is_not_logged() {
        let redis = skep_testkit::Redis::start().await;
        let client = Redis::with_password("a.field", &redis.address(), 0, "").unwrap();
        let failure = client.try_query::<()>(cmd("NOSUCH").arg("the-secret-key")).await.unwrap_err();
        let Failure::New(error) = failure else { panic!("Redis is available") };
        assert!(error.to_string().contains("the-secret-key"), "{error}");
        assert!(!describe(&error).contains("the-secret-key"), "{}", describe(&error));
    }

    #[tokio::test]
    async fn a_reply_that_comes_twice_is_no_reply_to_another_command() {
        let redis = skep_testkit::Redis::start().await;
        let network = skep_testkit::RedisNetwork::before(&redis).await;
        let client = Redis::with_password("a.field", &network.address(), 0, "").unwrap();
        for (key, value) in [("one", "1"), ("two", "2")] {
            client.query::<()>(cmd("SET").arg(key).arg(value)).await.unwrap();
        }
        network.fail("one", ReplyFault::Doubled);
        for (key, value) in [("one", "1"), ("two", "2"), ("one", "1")] {
            assert_eq!(client.query::<String>(cmd("GET").arg(key)).await.unwrap(), value);
        }
    }
}
