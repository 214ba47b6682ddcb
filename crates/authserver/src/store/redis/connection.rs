//! The connection to Redis: one for all requests, opened when it is needed, and again when it is lost.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, FromRedisValue, RedisError, RedisResult, Value, aio::MultiplexedConnection,
    from_redis_value, pipe,
};
use tokio::{sync::Mutex, time::Instant};

use super::{failure::describe, place::Place};
use crate::config::RedisSettings;

/// How long requests fail at once after one could not connect.
const PAUSE: Duration = Duration::from_millis(500);
/// How often a command is sent at most: the node of a cluster that has the keys may have to be found first.
const TRIES: usize = 3;

pub(super) struct Connection {
    place: Place,
    config: AsyncConnectionConfig,
    state: Mutex<State>,
    /// The number of the next command.
    next: AtomicU64,
}

enum State {
    Closed,
    Open(MultiplexedConnection),
    Failed(Instant, String),
}

impl Connection {
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, String> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(settings.connect_time))
            .set_response_timeout(Some(settings.response_time));
        let state = Mutex::new(State::Closed);
        Ok(Self { place: Place::new(settings)?, config, state, next: AtomicU64::new(0) })
    }

    /// Sends a command. If the connection was lost, or is to a node that does not have the keys, a new one may work. The command
    /// may have been executed before the connection was lost: each is one that can be executed twice.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, String> {
        let mut tries = 1;
        loop {
            let mut connection = self.open().await?;
            match self.send(command, &mut connection).await {
                Err(error) if tries < TRIES && is_worth_another(&error) => tries += 1,
                other => return other.map_err(|error| describe(&error)),
            }
        }
    }

    async fn send<T: FromRedisValue>(
        &self,
        command: &Cmd,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<T> {
        let response = self.exchange(command, connection).await;
        if let Err(error) = &response {
            let is_moved = error.redirect_node().is_some_and(|(node, _)| self.place.moved(node));
            let is_lost =
                error.is_unrecoverable_error() || error.is_timeout() || error.code() == Some("READONLY");
            if is_moved || is_lost {
                *self.state.lock().await = State::Closed;
            }
        }
        response
    }

    /// Replies have no names: one that comes twice, or too late, would be taken for that of the next command, and the row of one
    /// user for that of another. So each command is followed by a number of its own, and so must be its reply.
    async fn exchange<T: FromRedisValue>(
        &self,
        command: &Cmd,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<T> {
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let mut both = pipe();
        both.add_command(command.clone()).cmd("PING").arg(&number);
        let replies = connection.send_packed_commands(&both, 0, 2).await?;
        match <[Value; 2]>::try_from(replies) {
            Ok([reply, Value::BulkString(own)]) if own == number.as_bytes() => {
                Ok(from_redis_value(reply.extract_error()?)?)
            }
            // A server that refuses all commands, as one without a login does.
            Ok([reply @ Value::ServerError(_), Value::ServerError(_)]) => {
                reply.extract_error().and_then(|reply| Ok(from_redis_value(reply)?))
            }
            _ => Err(io::Error::new(io::ErrorKind::ConnectionReset, "a reply is of another command").into()),
        }
    }

    async fn open(&self) -> Result<MultiplexedConnection, String> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Open(connection) => return Ok(connection.clone()),
            State::Failed(at, error) if at.elapsed() < PAUSE => return Err(error.clone()),
            State::Failed(..) | State::Closed => {}
        }
        match self.place.connect(&self.config).await {
            Ok(connection) => {
                *state = State::Open(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                *state = State::Failed(Instant::now(), error.clone());
                Err(error)
            }
        }
    }
}

/// Whether another try may do: a demoted primary and a node without the keys refuse a command.
fn is_worth_another(error: &RedisError) -> bool {
    error.is_connection_refusal()
        || error.is_connection_dropped()
        || error.redirect_node().is_some()
        || error.code() == Some("READONLY")
}
