//! New connections to the node that has the data.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, select_ok};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, RedisResult, TlsCertificates, aio::MultiplexedConnection, cmd,
};

use crate::{
    Address, Place, Settings, SettingsError, Tls, Topology,
    error::{Failure, describe},
};

/// Opens connections to the server, to the primary, or to the node of a cluster that has the keys.
pub(crate) struct Connector {
    place: Place,
    db: i32,
    login: RedisConnectionInfo,
    config: AsyncConnectionConfig,
    /// The node of a cluster that another node has named last, until a connection to it is opened.
    redirect: Mutex<Option<Address>>,
}

impl Connector {
    pub(crate) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let Settings { place, db, user, password, timeouts, .. } = settings;
        match place.topology {
            _ if *db < 0 => return Err(SettingsError::NegativeDatabase),
            Topology::Cluster(_) if *db > 0 => return Err(SettingsError::DatabaseOfCluster),
            _ => {}
        }
        let mut login = RedisConnectionInfo::default().set_skip_set_lib_name();
        if let Some(user) = user {
            login = login.set_username(&**user);
        }
        if !password.is_empty() {
            login = login.set_password(&**password);
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(timeouts.connect))
            .set_response_timeout(Some(timeouts.response));
        let connector = Self { place: place.clone(), db: *db, login, config, redirect: Mutex::default() };
        connector.check_certificates()?;
        Ok(connector)
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Opens a connection. In a box, so that the futures of requests, which rarely connect, do not contain
    /// all of this.
    pub(crate) fn connect(&self) -> BoxFuture<'_, Result<MultiplexedConnection, Failure>> {
        Box::pin(self.try_connect())
    }

    async fn try_connect(&self) -> Result<MultiplexedConnection, Failure> {
        let address = match &self.place.topology {
            Topology::Server(address) => address.clone(),
            Topology::Cluster(node) => self.redirect().take().unwrap_or_else(|| node.clone()),
            Topology::Sentinels { primary, addresses, tls } => {
                self.find_primary(primary, addresses, tls.as_ref()).await?
            }
        };
        let client = client(&address, self.login.clone(), self.place.tls.as_ref())?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&self.config).await?;
        if self.db != 0 {
            // The library would do so, without the cause of an error.
            cmd("SELECT").arg(self.db).exec_async(&mut connection).await.map_err(missing_database)?;
        }
        // A load balancer accepts connections even if Redis does not respond.
        cmd("PING").exec_async(&mut connection).await?;
        Ok(connection)
    }

    /// The address of the primary, by the first Sentinel that responds with one: some may be down.
    async fn find_primary(
        &self,
        primary: &str,
        sentinels: &[Address],
        tls: Option<&Tls>,
    ) -> Result<Address, Failure> {
        if sentinels.is_empty() {
            return Err(RedisError::from((ErrorKind::InvalidClientConfig, "there are no Sentinels")).into());
        }
        let queries = sentinels.iter().map(|sentinel| {
            Box::pin(async move {
                let found = self.primary_of(primary, sentinel, tls).await;
                let found = found.map_err(|error| Failure::Sentinel(sentinel.clone(), error))?;
                let (host, port) =
                    found.ok_or_else(|| Failure::UnknownPrimary(sentinel.clone(), primary.to_owned()))?;
                Ok(Address { host, port })
            })
        });
        select_ok(queries).await.map(|(address, _)| address)
    }

    async fn primary_of(
        &self,
        primary: &str,
        sentinel: &Address,
        tls: Option<&Tls>,
    ) -> RedisResult<Option<(String, u16)>> {
        let login = RedisConnectionInfo::default().set_skip_set_lib_name();
        let client = client(sentinel, login, tls)?;
        let mut connection = client.get_multiplexed_async_connection_with_config(&self.config).await?;
        let mut command = cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(primary);
        command.query_async(&mut connection).await
    }

    /// Has the next connection be to the node of the cluster that an error names. `false`: it names none.
    pub(crate) fn follow_redirect(&self, error: &RedisError) -> bool {
        let Topology::Cluster(_) = self.place.topology else { return false };
        let Some(node) = error.redirect_node().and_then(|(node, _)| Address::of_node(node)) else {
            return false;
        };
        *self.redirect() = Some(node);
        true
    }

    fn redirect(&self) -> MutexGuard<'_, Option<Address>> {
        self.redirect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the certificates of the settings, which the library reads when a client is built.
    fn check_certificates(&self) -> Result<(), SettingsError> {
        let sentinels = match &self.place.topology {
            Topology::Sentinels { tls, .. } => tls.as_ref(),
            Topology::Server(_) | Topology::Cluster(_) => None,
        };
        let any = Address { host: "localhost".to_owned(), port: 1 };
        for tls in [self.place.tls.as_ref(), sentinels].into_iter().flatten() {
            client(&any, RedisConnectionInfo::default(), Some(tls))
                .map_err(|error| SettingsError::Certificates(describe(&error)))?;
        }
        Ok(())
    }
}

fn client(address: &Address, login: RedisConnectionInfo, tls: Option<&Tls>) -> RedisResult<Client> {
    let Address { host, port } = address.clone();
    let Some(Tls { is_insecure, authority }) = tls else {
        let info = ConnectionAddr::Tcp(host, port).into_connection_info()?;
        return Client::open(info.set_redis_settings(login));
    };
    let address = ConnectionAddr::TcpTls { host, port, insecure: *is_insecure, tls_params: None };
    let info = address.into_connection_info()?.set_redis_settings(login);
    Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: authority.clone() })
}

fn missing_database(error: RedisError) -> RedisError {
    match error.code() {
        Some("ERR") => (ErrorKind::InvalidClientConfig, "there is no such database").into(),
        _ => error,
    }
}
