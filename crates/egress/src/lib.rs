//! Connections to other hosts.
//!
//! A [`Client`] sends requests, directly or through the egress proxy that the environment names ([`Proxies`]): those for
//! `https` through a tunnel (CONNECT), those for `http` to the proxy itself. Credentials of a proxy are sent to that proxy
//! and to no other host, and are in no message. Where a host speaks HTTP/2, requests share one connection.
//!
//! What may be connected to is decided by the [`Connector`](connector::Egress)'s direct connector, and by a caller of
//! [`Proxies::of`] before it sends anything through a proxy, which resolves names itself.

mod authorities;
mod client;
mod connector;
mod error;
mod no_proxy;
mod proxies;
mod stream;
mod tunnel;

pub use authorities::verified_by_system;
pub use client::{Client, Idle};
pub use connector::Egress;
pub use error::EgressError;
pub use proxies::{Proxies, ProxyServer, SettingsError};
pub use stream::Stream;

use std::time::Duration;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a connection to a proxy, and its tunnel, may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
