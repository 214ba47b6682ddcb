//! A connection to the Redis that replicas share, for sessions, rate limits and the authorization server.
//!
//! The crate [`redis`] implements the protocol; this crate decides what happens when something fails. It
//! replaces that crate's `ConnectionManager`, which keeps a connection whose responses time out, one to a
//! demoted primary, and one that failed while it was set up.
//!
//! # One connection
//!
//! A [`Redis`] has one connection, which all requests share: commands are pipelined in the order in which
//! they are sent. It is opened when the first request needs it, and again when it is lost: it broke, a reply
//! did not come in time, the primary was demoted, or the keys are on another node of a cluster.
//!
//! # Where it is
//!
//! A [`Place`] is a server, a cluster, or a primary behind Sentinels, each with or without TLS. Before a
//! connection is opened, all Sentinels are queried concurrently, so that those that are down cost no time. In
//! a cluster, a node that does not have the keys names the one that does. As there is one connection, all
//! keys must be on one node: they need the same hash tag ([`Place::keeps_together`]).
//!
//! # Failing fast
//!
//! Every operation ends within [`Timeouts::total`]. While Redis is unavailable, one request at a time
//! connects, and the others fail immediately; they wait for no lock. Only if a connection that worked is
//! lost, the others wait for the new one, because Redis is probably back within milliseconds.
//!
//! # Replies that are lost, late or doubled
//!
//! A command is sent again if the connection broke before its reply came. Redis may then execute it twice,
//! and long after the request has ended: **every command must be one that can be executed twice.**
//!
//! Replies have no ids. After one too many or one too few, every caller would get the reply to another
//! command, which may have the session of another user. So each command is followed by a `PING` with a
//! number, and its reply is accepted only if that number follows it. Otherwise the connection is replaced.
//!
//! # Errors and the log
//!
//! Callers get [`RedisUnavailable`] with its [`Cause`], which is a label of metrics. The reason is in the
//! log, at most once in ten seconds, with the number of lines that were left out. No message contains the
//! password, a key or a value: an error of Redis is reported by its code, because its message may repeat the
//! command.

mod connection;
mod connector;
mod error;
mod limits;
mod log;
mod place;
mod script;

use std::{fmt, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use connection::Connection;
use error::Failure;
use log::ThrottledLog;

pub use error::{Cause, CheckError, RedisUnavailable};
pub use place::{Address, AddressError, Place, PlaceError, Tls, Topology};
pub use redis::{Cmd, FromRedisValue, ToRedisArgs, cmd};
pub use script::Script;

/// The settings of a [`Redis`].
pub struct Settings {
    /// The part of the configuration that has them, for messages.
    pub field: &'static str,
    /// Where it is.
    pub place: Place,
    /// The number of the database.
    pub db: i32,
    /// The user to log in as. `None`: the default user.
    pub user: Option<String>,
    /// The password. Empty: Redis requires none.
    pub password: String,
    /// The environment variable with the password, for messages.
    pub password_variable: String,
    /// How long operations may take.
    pub timeouts: Timeouts,
}

/// How long an operation and its parts may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The time to open a connection.
    pub connect: Duration,
    /// The time until a reply.
    pub response: Duration,
    /// The time of an operation with all of its attempts.
    pub total: Duration,
}

/// Settings that contradict each other or the certificates.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The number of the database is negative.
    #[error("the number of the database must not be negative")]
    NegativeDatabase,
    /// A cluster has database 0 only.
    #[error("a cluster has no database but 0")]
    DatabaseOfCluster,
    /// The certificate authorities cannot be read.
    #[error("the certificate authorities cannot be used: {0}")]
    Certificates(String),
}

/// A Redis, whether it is available or not.
pub struct Redis {
    field: &'static str,
    password_variable: String,
    total_time: Duration,
    connection: Connection,
    log: ThrottledLog,
}

impl Redis {
    /// Creates one that is not connected yet.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        Ok(Self {
            field: settings.field,
            connection: Connection::new(&settings)?,
            total_time: settings.timeouts.total,
            password_variable: settings.password_variable,
            log: ThrottledLog::default(),
        })
    }

    /// Checks that Redis responds. If it is not available yet, it may have been started at the same time:
    /// waits for it.
    pub async fn check(&self) -> Result<(), CheckError> {
        let start = Instant::now();
        loop {
            let Err(failure) = self.try_query::<()>(&cmd("PING")).await else { return Ok(()) };
            let is_late = start.elapsed() > limits::START_TIME && !matches!(failure, Failure::FailFast(_));
            if is_late || failure.is_permanent() {
                return Err(CheckError {
                    field: self.field,
                    place: self.connection.place().to_string(),
                    reason: failure.describe(&self.password_variable),
                });
            }
            self.report(&failure);
            sleep(limits::PAUSE).await;
        }
    }

    /// Sends a command, which may be executed twice.
    pub async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisUnavailable> {
        self.try_query(command).await.map_err(|failure| self.report(&failure))
    }

    /// Runs a script, which may run twice. It is sent if Redis does not know it.
    pub async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[String],
        arguments: &(impl ToRedisArgs + Sync),
    ) -> Result<T, RedisUnavailable> {
        let reply = self.in_time(async {
            match self.connection.send(&script.by_digest(keys, arguments)).await {
                Err(failure) if failure.is_unknown_script() => {
                    self.connection.send(&script.by_source(keys, arguments)).await
                }
                other => other,
            }
        });
        reply.await.map_err(|failure| self.report(&failure))
    }

    async fn try_query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        self.in_time(self.connection.send(command)).await
    }

    /// The value of a reply, if it comes in time.
    async fn in_time<T: FromRedisValue>(
        &self,
        reply: impl Future<Output = Result<redis::Value, Failure>>,
    ) -> Result<T, Failure> {
        let reply = timeout(self.total_time, reply).await.unwrap_or_else(|_| Err(Failure::timeout()));
        redis::from_redis_value(reply?).map_err(|error| redis::RedisError::from(error).into())
    }

    fn report(&self, failure: &Failure) -> RedisUnavailable {
        match failure {
            Failure::FailFast(_) => self.log.suppress(),
            _ => self.log.warn(
                self.field,
                &self.connection.place().to_string(),
                &failure.describe(&self.password_variable),
            ),
        }
        RedisUnavailable(failure.cause())
    }
}

/// Keys name callers, and the connection has the password.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("place", &self.connection.place().to_string()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn description_leaves_out_the_command_that_redis_repeats() {
        let redis = skep_testkit::Redis::start().await;
        let second = Duration::from_secs(1);
        let client = Redis::new(Settings {
            field: "a.field",
            place: redis.address().parse().unwrap(),
            db: 0,
            user: None,
            password: String::new(),
            password_variable: String::new(),
            timeouts: Timeouts { connect: second, response: second, total: 2 * second },
        });
        let failure = client.unwrap().try_query::<()>(cmd("NOSUCH").arg("the-secret-key")).await.unwrap_err();
        let Failure::Redis(error) = &failure else { panic!("Redis is available: {failure:?}") };
        assert!(error.to_string().contains("the-secret-key"), "{error}");
        assert!(!failure.describe("").contains("the-secret-key"), "{}", failure.describe(""));
    }
}
