//! One connection for all requests, opened when it is needed, and again when it is lost.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{Cmd, Pipeline, RedisError, RedisResult, Value, aio::MultiplexedConnection};
use tokio::time::{Instant, timeout};
use tracing::info;

use crate::{
    Cause, Place, Settings, SettingsError,
    connector::Connector,
    error::{Failure, is_demoted},
    limits,
};

pub(crate) struct Connection {
    connector: Connector,
    connect_time: Duration,
    state: Mutex<State>,
    /// Held by the request that connects.
    connecting: tokio::sync::Mutex<()>,
    /// The number of the next ping.
    next_ping: AtomicU64,
}

enum State {
    Closed,
    Open(Arc<MultiplexedConnection>),
    /// The last attempt failed, at this time.
    Failed(Instant, Cause),
}

impl Connection {
    pub(crate) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        Ok(Self {
            connector: Connector::new(settings)?,
            connect_time: settings.timeouts.connect,
            state: Mutex::new(State::Closed),
            connecting: tokio::sync::Mutex::default(),
            next_ping: AtomicU64::new(0),
        })
    }

    pub(crate) fn place(&self) -> &Place {
        self.connector.place()
    }

    /// Sends a command, and again on a new connection if the first one was lost or was to the wrong node.
    /// If only the reply was lost, the command is executed twice.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, Failure> {
        let mut tries = 0;
        loop {
            let connection = self.open().await?;
            let error = match self.exchange((*connection).clone(), command).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let is_wrong_node = self.connector.follow_redirect(&error) || is_demoted(&error);
            if is_wrong_node || error.is_unrecoverable_error() || error.is_timeout() {
                self.close(&connection, &error);
            }
            tries += 1;
            if tries == limits::TRIES || !(is_wrong_node || error.is_connection_dropped()) {
                return Err(error.into());
            }
        }
    }

    /// Sends a command and a ping with a number of its own. Replies have no ids: one that comes twice or late
    /// would shift all that follow, and a caller would get the data of another. Only the reply before that of
    /// the ping is the command's.
    async fn exchange(&self, mut connection: MultiplexedConnection, command: &Cmd) -> RedisResult<Value> {
        let ping = self.next_ping.fetch_add(1, Ordering::Relaxed).to_string();
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.add_command(command.clone()).cmd("PING").arg(&ping);
        let replies = connection.send_packed_commands(&pipeline, 0, 2).await?;
        match <[Value; 2]>::try_from(replies) {
            Ok([value, Value::BulkString(pong)]) if pong == ping.as_bytes() => value.extract_error(),
            // Without a login, both are rejected.
            Ok([Value::ServerError(error), Value::ServerError(_)]) => Err(error.into()),
            _ => Err(io::Error::new(io::ErrorKind::ConnectionReset, "a reply to another command").into()),
        }
    }

    /// Closes a connection that cannot be used any more, unless another request has replaced it already.
    fn close(&self, connection: &Arc<MultiplexedConnection>, error: &RedisError) {
        let mut state = self.state();
        if matches!(&*state, State::Open(open) if Arc::ptr_eq(open, connection)) {
            *state = match error.is_timeout() {
                true => State::Failed(Instant::now(), Cause::Timeout),
                false => State::Closed,
            };
        }
    }

    /// The open connection, or a new one.
    async fn open(&self) -> Result<Arc<MultiplexedConnection>, Failure> {
        if let Some(open) = self.current()? {
            return Ok(open);
        }
        let _guard = match self.last_failure() {
            Some(cause) => self.connecting.try_lock().map_err(|_| Failure::FailFast(cause))?,
            None => self.connecting.lock().await,
        };
        // Another request may have connected meanwhile, or have failed to.
        if let Some(open) = self.current()? {
            return Ok(open);
        }
        let connected = timeout(self.connect_time, self.connector.connect()).await;
        match connected.unwrap_or_else(|_| Err(Failure::timeout())) {
            Ok(connection) => {
                info!(address = %self.place(), "connected to Redis");
                let connection = Arc::new(connection);
                *self.state() = State::Open(connection.clone());
                Ok(connection)
            }
            Err(failure) => {
                *self.state() = State::Failed(Instant::now(), failure.cause());
                Err(failure)
            }
        }
    }

    /// The open connection, if there is one. Shortly after a failure, no other attempt is made.
    fn current(&self) -> Result<Option<Arc<MultiplexedConnection>>, Failure> {
        match &*self.state() {
            State::Open(open) => Ok(Some(open.clone())),
            State::Failed(at, cause) if at.elapsed() < limits::PAUSE => Err(Failure::FailFast(*cause)),
            State::Failed(..) | State::Closed => Ok(None),
        }
    }

    fn last_failure(&self) -> Option<Cause> {
        match &*self.state() {
            State::Failed(_, cause) => Some(*cause),
            State::Open(_) | State::Closed => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
