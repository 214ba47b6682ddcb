//! One connection for all requests, opened when it is needed, and again when it is lost.
//!
//! While Redis is unavailable, one request at a time tries to connect, and the others fail at once. The library's own
//! `ConnectionManager` does less: it keeps a connection whose responses time out, one to a demoted primary, and one that
//! failed while it was set up.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, IntoConnectionInfo, Pipeline,
    RedisConnectionInfo, RedisError, RedisResult, Value, aio::MultiplexedConnection, cmd,
};
use http::uri::Authority;
use tokio::time::{Instant, timeout};
use tracing::info;

use super::error::{Cause, Failure, describe, is_lost, timed_out};
use crate::limits;

pub(super) struct Connection {
    client: Client,
    address: String,
    db: i32,
    state: Mutex<State>,
    /// Held by the request that connects.
    connecting: tokio::sync::Mutex<()>,
    /// Numbers requests.
    number: AtomicU64,
}

enum State {
    Closed,
    Open(Arc<MultiplexedConnection>),
    /// The last attempt failed, at that time.
    Failed(Instant, Cause),
}

impl Connection {
    /// The error is about the address or the database.
    pub(super) fn new(address: &str, db: i32, password: &str) -> Result<Self, String> {
        let invalid = || format!("{address:?} is not an address: write it as host:port");
        let authority: Authority = address.parse().map_err(|_| invalid())?;
        let port = authority.port_u16().filter(|port| *port != 0).ok_or_else(invalid)?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || address.contains('@') {
            return Err(invalid());
        }
        if db < 0 {
            return Err("the number of the database must not be negative".into());
        }
        let mut settings = RedisConnectionInfo::default().set_skip_set_lib_name();
        if !password.is_empty() {
            settings = settings.set_password(password);
        }
        let client = ConnectionAddr::Tcp(host.to_owned(), port)
            .into_connection_info()
            .and_then(|info| Client::open(info.set_redis_settings(settings)))
            .map_err(|error| describe(&error))?;
        let state = Mutex::new(State::Closed);
        Ok(Self {
            client,
            address: address.to_owned(),
            db,
            state,
            connecting: tokio::sync::Mutex::default(),
            number: AtomicU64::new(0),
        })
    }

    /// Sends a command. If the connection was lost while it was idle, as when Redis restarts, a new one may work. If the reply was
    /// lost, the command is executed twice: it must be one that can be.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, Failure> {
        match self.send_once(command, self.open().await?).await {
            Err(error) if error.is_connection_dropped() => {
                Ok(self.send_once(command, self.open().await?).await?)
            }
            other => Ok(other?),
        }
    }

    async fn send_once(&self, command: &Cmd, connection: Arc<MultiplexedConnection>) -> RedisResult<Value> {
        let response = self.reply((*connection).clone(), command).await;
        if let Err(error) = &response
            && is_lost(error)
        {
            let mut state = self.state();
            // Another request may have replaced it already.
            if matches!(&*state, State::Open(open) if Arc::ptr_eq(open, &connection)) {
                *state = match error.is_timeout() {
                    true => State::Failed(Instant::now(), Cause::Timeout),
                    false => State::Closed,
                };
            }
        }
        response
    }

    /// The reply to a command. Replies have no ids, so one too many would shift all that follow, and a session would get the record
    /// of another. Each command is followed by a ping of its own, whose reply must come after that of the command.
    async fn reply(&self, mut connection: MultiplexedConnection, command: &Cmd) -> RedisResult<Value> {
        let ping = self.number.fetch_add(1, Ordering::Relaxed).to_string();
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.add_command(command.clone()).cmd("PING").arg(&ping);
        let replies = connection.send_packed_commands(&pipeline, 0, 2).await?;
        match <[Value; 2]>::try_from(replies) {
            // As without a password.
            Ok([Value::ServerError(error), Value::ServerError(_)]) => Err(error.into()),
            Ok([value, Value::BulkString(pong)]) if pong == ping.as_bytes() => value.extract_error(),
            _ => Err(RedisError::from((ErrorKind::Io, "a reply is not for the command that was sent"))),
        }
    }

    /// The open connection, or a new one.
    async fn open(&self) -> Result<Arc<MultiplexedConnection>, Failure> {
        let (open, failed) = self.current()?;
        if let Some(open) = open {
            return Ok(open);
        }
        let _guard = match failed {
            Some(cause) => self.connecting.try_lock().map_err(|_| Failure::Known(cause))?,
            None => self.connecting.lock().await,
        };
        // Another request may have connected meanwhile, or have failed to.
        if let (Some(open), _) = self.current()? {
            return Ok(open);
        }
        let opened = timeout(limits::REDIS_CONNECT_TIME, self.connect()).await;
        match opened.unwrap_or_else(|_| Err(timed_out())) {
            Ok(connection) => {
                info!(address = self.address, "connected to Redis");
                let connection = Arc::new(connection);
                *self.state() = State::Open(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                *self.state() = State::Failed(Instant::now(), Cause::of(&error));
                Err(error.into())
            }
        }
    }

    /// The open connection, or why the last attempt failed. Shortly after it, no other is made.
    fn current(&self) -> Result<(Option<Arc<MultiplexedConnection>>, Option<Cause>), Failure> {
        match &*self.state() {
            State::Open(open) => Ok((Some(open.clone()), None)),
            State::Failed(at, cause) if at.elapsed() < limits::REDIS_PAUSE => Err(Failure::Known(*cause)),
            State::Failed(_, cause) => Ok((None, Some(*cause))),
            State::Closed => Ok((None, None)),
        }
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(limits::REDIS_CONNECT_TIME))
            .set_response_timeout(Some(limits::REDIS_ANSWER_TIME));
        let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        if self.db != 0 {
            // The library would do so, without the cause of an error.
            cmd("SELECT").arg(self.db).exec_async(&mut connection).await.map_err(|error| {
                match error.code() {
                    Some("ERR") => (ErrorKind::InvalidClientConfig, "there is no such database").into(),
                    _ => error,
                }
            })?;
        }
        // A load balancer accepts connections even if Redis does not respond.
        cmd("PING").exec_async(&mut connection).await?;
        Ok(connection)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
