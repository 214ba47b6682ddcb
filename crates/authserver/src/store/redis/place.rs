//! Where Redis is: at an address, where Sentinels say, or on a node of a cluster.

use std::sync::{Mutex, PoisonError};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, TlsCertificates,
    aio::MultiplexedConnection, cmd,
};

use super::failure::describe;
use crate::config::{RedisPlace, RedisSettings, RedisTls};

/// The place, and how to connect there.
pub(super) struct Place {
    place: RedisPlace,
    login: RedisConnectionInfo,
    tls: Option<RedisTls>,
    /// The node of a cluster that has the keys. All keys of a server have one hash tag, so one node has them all.
    node: Mutex<Option<Address>>,
}

#[derive(Clone)]
struct Address {
    host: String,
    port: u16,
}

impl Address {
    fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is not an address: write it as host:port");
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(invalid)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() { Err(invalid()) } else { Ok(Self { host, port }) }
    }

    fn client(&self, login: RedisConnectionInfo, tls: Option<&RedisTls>) -> Result<Client, String> {
        let Self { host, port } = self.clone();
        let opened = match tls {
            None => ConnectionAddr::Tcp(host, port)
                .into_connection_info()
                .and_then(|info| Client::open(info.set_redis_settings(login))),
            Some(RedisTls { is_insecure, authority }) => {
                let address = ConnectionAddr::TcpTls { host, port, insecure: *is_insecure, tls_params: None };
                let certificates = TlsCertificates { client_tls: None, root_cert: authority.clone() };
                address
                    .into_connection_info()
                    .and_then(|info| Client::build_with_tls(info.set_redis_settings(login), certificates))
            }
        };
        opened.map_err(|error| describe(&error))
    }
}

impl Place {
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, String> {
        let mut login =
            RedisConnectionInfo::default().set_skip_set_lib_name().set_password(&*settings.password);
        if let Some(name) = &settings.user {
            login = login.set_username(&**name);
        }
        match &settings.place {
            RedisPlace::Address(address) | RedisPlace::Cluster(address) => {
                Address::parse(address)?;
            }
            RedisPlace::Sentinels { addresses, db, .. } => {
                login = login.set_db(i64::from(*db));
                for address in addresses {
                    Address::parse(address)?;
                }
            }
        }
        Ok(Self { place: settings.place.clone(), login, tls: settings.tls.clone(), node: Mutex::default() })
    }

    pub(super) async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, String> {
        let address = match &self.place {
            RedisPlace::Address(address) => Address::parse(address)?,
            RedisPlace::Cluster(address) => {
                let node = self.node.lock().unwrap_or_else(PoisonError::into_inner).take();
                node.map_or_else(|| Address::parse(address), Ok)?
            }
            RedisPlace::Sentinels { primary, addresses, tls, .. } => {
                self.primary(primary, addresses, tls.as_ref(), config).await?
            }
        };
        let client = address.client(self.login.clone(), self.tls.as_ref())?;
        let connected = client.get_multiplexed_async_connection_with_config(config).await;
        connected.map_err(|error| describe(&error))
    }

    /// The address of the primary, by the first Sentinel that knows it.
    async fn primary(
        &self,
        primary: &str,
        sentinels: &[String],
        tls: Option<&RedisTls>,
        config: &AsyncConnectionConfig,
    ) -> Result<Address, String> {
        let mut failure = "there are no Sentinels".to_owned();
        for sentinel in sentinels {
            let login = RedisConnectionInfo::default().set_skip_set_lib_name();
            let client = Address::parse(sentinel)?.client(login, tls)?;
            let found = async {
                let mut connection = client.get_multiplexed_async_connection_with_config(config).await?;
                let mut command = cmd("SENTINEL");
                command.arg("GET-MASTER-ADDR-BY-NAME").arg(primary);
                command.query_async::<Option<(String, u16)>>(&mut connection).await
            };
            match found.await {
                Ok(Some((host, port))) => return Ok(Address { host, port }),
                Ok(None) => failure = format!("the Sentinel {sentinel} knows no {primary}"),
                Err(error) => failure = format!("the Sentinel {sentinel}: {}", describe(&error)),
            }
        }
        Err(failure)
    }

    /// Another node of the cluster has the keys. `false`: this is no cluster, or the address is malformed.
    pub(super) fn moved(&self, node: &str) -> bool {
        let (RedisPlace::Cluster(_), Ok(address)) = (&self.place, Address::parse(node)) else { return false };
        *self.node.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
        true
    }
}
