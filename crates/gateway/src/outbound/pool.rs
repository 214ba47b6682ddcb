//! Connections that are kept for the next request.

use std::time::Duration;

use rustls::ClientConfig;
use skep_egress::{Client, Idle, Proxies};

/// A pool of connections, to any number of hosts.
pub(crate) type Pool = Client;

/// A pool that keeps so many idle connections to each host for this long, and uses the proxies of the environment.
pub(crate) fn pool(tls: ClientConfig, time: Duration, connections: usize) -> Result<Pool, String> {
    let proxies = Proxies::from_env().map_err(|error| error.to_string())?;
    pool_through(proxies, tls, time, connections)
}

/// A pool that uses these proxies.
pub(crate) fn pool_through(
    proxies: Proxies,
    tls: ClientConfig,
    time: Duration,
    connections: usize,
) -> Result<Pool, String> {
    Client::new(tls, proxies, Idle { time, connections })
        .map_err(|error| format!("TLS cannot be set up: {error}"))
}
