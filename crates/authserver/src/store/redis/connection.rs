//! The connection to Redis: one for all requests, opened when it is needed, and again when it is lost.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, RedisResult, aio::MultiplexedConnection,
};
use tokio::{sync::Mutex, time::Instant};

use crate::config::RedisSettings;

/// How long requests fail at once after one could not connect.
const PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Connection {
    client: Client,
    config: AsyncConnectionConfig,
    state: Mutex<State>,
}

enum State {
    Closed,
    Open(MultiplexedConnection),
    Failed(Instant, String),
}

impl Connection {
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, String> {
        let invalid = || format!("{:?} is not an address: write it as host:port", settings.address);
        let (host, port) = settings.address.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let mut user =
            RedisConnectionInfo::default().set_skip_set_lib_name().set_password(&*settings.password);
        if let Some(name) = &settings.user {
            user = user.set_username(&**name);
        }
        let client = ConnectionAddr::Tcp(host, port)
            .into_connection_info()
            .and_then(|info| Client::open(info.set_redis_settings(user)))
            .map_err(|error| describe(&error))?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(settings.connect_time))
            .set_response_timeout(Some(settings.response_time));
        Ok(Self { client, config, state: Mutex::new(State::Closed) })
    }

    /// Sends a command. If the connection was lost while it was idle, a new one may work. No command is sent again that may
    /// have been executed.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, String> {
        let mut connection = self.open().await?;
        match self.send(command, &mut connection).await {
            Err(error) if error.is_connection_refusal() || error.is_connection_dropped() => {
                let mut connection = self.open().await?;
                self.send(command, &mut connection).await.map_err(|error| describe(&error))
            }
            other => other.map_err(|error| describe(&error)),
        }
    }

    async fn send<T: FromRedisValue>(
        &self,
        command: &Cmd,
        connection: &mut MultiplexedConnection,
    ) -> RedisResult<T> {
        let response = command.query_async(connection).await;
        if let Err(error) = &response
            && (error.is_unrecoverable_error() || error.is_timeout() || error.code() == Some("READONLY"))
        {
            *self.state.lock().await = State::Closed;
        }
        response
    }

    async fn open(&self) -> Result<MultiplexedConnection, String> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Open(connection) => return Ok(connection.clone()),
            State::Failed(at, error) if at.elapsed() < PAUSE => return Err(error.clone()),
            State::Failed(..) | State::Closed => {}
        }
        match self.client.get_multiplexed_async_connection_with_config(&self.config).await {
            Ok(connection) => {
                *state = State::Open(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                let error = describe(&error);
                *state = State::Failed(Instant::now(), error.clone());
                Err(error)
            }
        }
    }
}

/// The error for a log: of Redis's message only the code, because it may repeat a command.
fn describe(error: &RedisError) -> String {
    match (error.kind(), error.code()) {
        (ErrorKind::AuthenticationFailed, _) => "it rejects the user or the password".into(),
        (ErrorKind::Io | ErrorKind::InvalidClientConfig, _) => error.to_string(),
        (_, Some(code)) => format!("it responds with {code}"),
        (_, None) => error.category().to_owned(),
    }
}
