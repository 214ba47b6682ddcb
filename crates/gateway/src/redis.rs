//! The Redis that the proxies of a server share: one connection, made when it is needed and again when it is lost.
//!
//! Every command ends within [`limits::REDIS_TIME`], with a response or an error. While Redis is unavailable, one request
//! at a time tries to connect, and the others fail at once.

use std::{
    fmt,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, RedisResult, Script, ServerErrorKind, aio::MultiplexedConnection, cmd,
};
use skep_config::env;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::{ConfigError, limits};

/// A Redis, whether it can be reached or not.
pub(crate) struct Redis {
    /// The field of the configuration that names it.
    field: &'static str,
    address: String,
    db: i32,
    client: Client,
    /// Held while a request connects.
    link: tokio::sync::Mutex<Link>,
    /// Whether the last try to connect failed.
    away: AtomicBool,
    complaints: Mutex<LogThrottle>,
}

#[derive(Default)]
struct Link {
    connection: Option<MultiplexedConnection>,
    /// How many connections there were, to distinguish a new one from a lost one.
    number: u64,
    /// When it was last tried in vain.
    failed: Option<Instant>,
}

#[derive(Default)]
struct LogThrottle {
    said: Option<Instant>,
    held_back: u64,
    /// Why the last attempt failed.
    cause: Option<Cause>,
}

/// A script that Redis runs as a whole, with nothing in between.
pub(crate) struct Code {
    text: &'static str,
    /// What Redis calls it, once it knows it.
    hash: String,
}

impl Code {
    pub(crate) fn new(text: &'static str) -> Self {
        Self { text, hash: Script::new(text).get_hash().to_owned() }
    }
}

/// Redis does not respond, or not as it should. The log has the details.
#[derive(Debug)]
pub struct RedisUnavailable(pub Cause);

/// Why, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Timeout,
    Connection,
    Auth,
    Other,
}

impl Cause {
    fn of(error: &RedisError) -> Self {
        if is_refusal(error) {
            Self::Auth
        } else if error.is_timeout() {
            Self::Timeout
        } else if error.is_io_error() || error.is_unrecoverable_error() {
            Self::Connection
        } else {
            Self::Other
        }
    }
}

/// Why there is no response.
#[derive(Debug)]
enum Failure {
    /// Another request has tried just now, or is about to.
    Known,
    New(RedisError),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::New(error)
    }
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
        let wrong = |what: &str| ConfigError::new(format!("{field}: {what}"));
        let (host, port) = host_and_port(address)
            .ok_or_else(|| wrong(&format!("{address:?} is not an address: write it as host:port")))?;
        if db < 0 {
            return Err(wrong("the number of the database must not be negative"));
        }
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if !password.is_empty() {
            settings = settings.set_password(password);
        }
        let client = ConnectionAddr::Tcp(host.to_owned(), port)
            .into_connection_info()
            .and_then(|info| Client::open(info.set_redis_settings(settings)))
            .map_err(|error| wrong(&said(&error)))?;
        Ok(Self {
            field,
            address: address.to_owned(),
            db,
            client,
            link: tokio::sync::Mutex::default(),
            away: AtomicBool::new(false),
            complaints: Mutex::default(),
        })
    }

    /// Checks that it responds, with some patience for one that starts at the same time. A mistake is reported before it is
    /// relied on.
    pub(crate) async fn check(&self) -> Result<(), ConfigError> {
        let begin = Instant::now();
        loop {
            let Err(failure) = self.asked::<()>(&cmd("PING")).await else { return Ok(()) };
            let late = begin.elapsed() > limits::REDIS_START_TIME;
            if let Failure::New(error) = &failure
                && (late || is_a_mistake(error))
            {
                let Self { field, address, .. } = self;
                let message = format!("{field}: the Redis at {address} cannot be used: {}", said(error));
                return Err(ConfigError::new(message));
            }
            self.log_throttled(failure);
            sleep(limits::REDIS_PAUSE).await;
        }
    }

    /// The response to a command.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisUnavailable> {
        self.asked(command).await.map_err(|failure| self.log_throttled(failure))
    }

    /// The response of a script, which is sent when Redis does not know it.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        code: &Code,
        keys: &[String],
        arguments: &[u64],
    ) -> Result<T, RedisUnavailable> {
        let call = |name: &str, code: &str| {
            let mut call = cmd(name);
            call.arg(code).arg(keys.len()).arg(keys).arg(arguments);
            call
        };
        let known = self.asked(&call("EVALSHA", &code.hash)).await;
        let answer = match known {
            Err(Failure::New(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.asked(&call("EVAL", code.text)).await
            }
            other => other,
        };
        answer.map_err(|failure| self.log_throttled(failure))
    }

    async fn asked<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        let asking = async {
            match self.answer(self.connection().await?, command).await {
                // Lost while it was idle, as when Redis restarts: a new one may work.
                Err(error) if error.is_connection_dropped() => {
                    Ok(self.answer(self.connection().await?, command).await?)
                }
                other => Ok(other?),
            }
        };
        timeout(limits::REDIS_TIME, asking).await.unwrap_or_else(|_| Err(timed_out().into()))
    }

    async fn answer<T: FromRedisValue>(
        &self,
        (number, mut connection): (u64, MultiplexedConnection),
        command: &Cmd,
    ) -> RedisResult<T> {
        let answer = command.query_async(&mut connection).await;
        if let Err(error) = &answer
            && is_lost(error)
        {
            let mut link = self.link.lock().await;
            if link.number == number {
                link.connection = None;
                self.away.store(error.is_timeout(), Ordering::Relaxed);
            }
        }
        answer
    }

    async fn connection(&self) -> Result<(u64, MultiplexedConnection), Failure> {
        let mut link = match self.link.try_lock() {
            Ok(link) => link,
            // Another request tries.
            Err(_) if self.away.load(Ordering::Relaxed) => return Err(Failure::Known),
            Err(_) => self.link.lock().await,
        };
        if let Some(connection) = &link.connection {
            return Ok((link.number, connection.clone()));
        }
        if link.failed.is_some_and(|failed| failed.elapsed() < limits::REDIS_PAUSE) {
            return Err(Failure::Known);
        }
        let connected = timeout(limits::REDIS_CONNECT_TIME, self.connected()).await;
        let connected = connected.unwrap_or_else(|_| Err(timed_out()));
        self.away.store(connected.is_err(), Ordering::Relaxed);
        match connected {
            Ok(connection) => {
                info!(address = self.address, "connected to Redis");
                link.number += 1;
                link.failed = None;
                link.connection = Some(connection.clone());
                Ok((link.number, connection))
            }
            Err(error) => {
                link.failed = Some(Instant::now());
                Err(error.into())
            }
        }
    }

    async fn connected(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limits::REDIS_CONNECT_TIME))
            .set_response_timeout(Some(limits::REDIS_ANSWER_TIME));
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        if self.db != 0 {
            // The library would do so, without the cause.
            cmd("SELECT").arg(self.db).exec_async(&mut connection).await.map_err(|error| {
                match error.code() {
                    Some("ERR") => (ErrorKind::InvalidClientConfig, "there is no such database").into(),
                    _ => error,
                }
            })?;
        }
        // A machine may take connections for a Redis that does not answer.
        cmd("PING").exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// Logs a failure, unless one was logged just before.
    fn log_throttled(&self, failure: Failure) -> RedisUnavailable {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = complaints.said.is_some_and(|said| said.elapsed() < limits::REDIS_LOG_PAUSE);
        if let Failure::New(error) = &failure {
            complaints.cause = Some(Cause::of(error));
        }
        let away = RedisUnavailable(complaints.cause.unwrap_or(Cause::Connection));
        let error = match failure {
            Failure::New(error) if !lately => error,
            _ => {
                complaints.held_back += 1;
                return away;
            }
        };
        let before = std::mem::take(&mut complaints.held_back);
        complaints.said = Some(Instant::now());
        drop(complaints);
        let (field, address) = (self.field, &self.address);
        warn!(field, address, error = said(&error), failed_before = before, "Redis unavailable");
        away
    }
}

/// Keys name callers, and the client has the password.
impl fmt::Debug for Redis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redis").field("address", &self.address).finish_non_exhaustive()
    }
}

fn timed_out() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

/// Whether the connection is of no more use. A demoted Redis answers so, and another one is at its address.
fn is_lost(error: &RedisError) -> bool {
    let demoted = ErrorKind::Server(ServerErrorKind::ReadOnly);
    error.is_unrecoverable_error() || error.is_timeout() || error.kind() == demoted
}

/// Whether a retry cannot succeed.
fn is_a_mistake(error: &RedisError) -> bool {
    error.kind() == ErrorKind::InvalidClientConfig || is_refusal(error)
}

/// Whether it requires another password, or any.
fn is_refusal(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("NOAUTH")
}

/// The error for a log: of Redis's message no more than the code, because it may repeat a command.
fn said(error: &RedisError) -> String {
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) => {
            format!("it does not take the password in {}", env::SESSION_REDIS_PASSWORD)
        }
        (ErrorKind::Io | ErrorKind::InvalidClientConfig, _) => error.to_string(),
        (_, Some("NOAUTH")) => format!("it wants a password: set {}", env::SESSION_REDIS_PASSWORD),
        (_, Some(code)) => format!("it answers {code}"),
        (_, None) => error.category().to_owned(),
    }
}

fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = match host.strip_prefix('[') {
        Some(host) => host.strip_suffix(']')?,
        None if host.contains(':') => return None,
        None => host,
    };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        assert_eq!(host_and_port("redis.ns.svc:6379"), Some(("redis.ns.svc", 6379)));
        assert_eq!(host_and_port("[::1]:6379"), Some(("::1", 6379)));
        for wrong in ["", "redis", ":6379", "redis:", "redis:0", "redis:port", "::1:6379", "redis:99999"] {
            assert_eq!(host_and_port(wrong), None, "{wrong}");
            let error = Redis::with_password("a.field", wrong, 0, "").unwrap_err().to_string();
            assert!(error.starts_with("a.field: "), "{error}");
        }
        assert!(Redis::with_password("a.field", "redis:1", -1, "").is_err());
    }

    #[tokio::test]
    async fn a_password_is_used_and_is_not_in_what_is_said_about_it() {
        let redis = skep_testkit::Redis::with_password("correct-horse").await;
        let with = |password| Redis::with_password("a.field", &redis.address(), 3, password).unwrap();
        with("correct-horse").ask::<()>(&cmd("PING")).await.unwrap();
        let db: String = with("correct-horse").ask(cmd("CLIENT").arg("INFO")).await.unwrap();
        assert!(db.contains(" db=3 "), "{db}");
        let beyond = Redis::with_password("a.field", &redis.address(), 99, "correct-horse").unwrap();
        let error = beyond.check().await.unwrap_err().to_string();
        assert!(error.contains("there is no such database"), "{error}");

        for (password, expected) in [("battery-staple", "does not take the password"), ("", "password")] {
            let client = with(password);
            let error = client.check().await.unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("THV_SESSION_REDIS_PASSWORD"), "{error}");
            let shown = format!("{client:?} {error}");
            assert!(!shown.contains("battery-staple"), "{shown}");
        }
    }

    #[tokio::test]
    async fn what_redis_repeats_of_a_command_is_not_said() {
        let redis = skep_testkit::Redis::start().await;
        let client = Redis::with_password("a.field", &redis.address(), 0, "").unwrap();
        let failure = client.asked::<()>(cmd("NOSUCH").arg("the-secret-key")).await.unwrap_err();
        let Failure::New(error) = failure else { panic!("Redis is there") };
        assert!(error.to_string().contains("the-secret-key"), "{error}");
        assert!(!said(&error).contains("the-secret-key"), "{}", said(&error));
    }
}
