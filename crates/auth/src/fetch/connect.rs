//! Connections to permitted addresses.
//!
//! The address is checked when connecting, not when a name is first resolved: DNS may return another address the
//! next time.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{BoxFuture, FutureExt};
use http::Uri;
use hyper_util::{
    client::legacy::connect::{HttpConnector, dns::Name},
    rt::TokioIo,
};
use tokio::net::{TcpStream, lookup_host};
use tower::Service;

use super::{Reach, address::is_public};
use crate::limits;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// Resolves a name.
pub(super) type Resolve =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Resolves names, and decides which addresses may be connected to.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) resolve: Resolve,
    /// Whether an address is permitted. `None`: all are.
    pub(super) permits: Option<fn(IpAddr) -> bool>,
}

impl Guard {
    /// With the resolver of the system.
    pub(super) fn new(reach: Reach) -> Self {
        let resolve = |name| async move { Ok(lookup_host((name, 0)).await?.collect()) }.boxed();
        Self { resolve: Arc::new(resolve), permits: (!reach.private).then_some(is_public) }
    }

    fn permits(&self, address: IpAddr) -> bool {
        self.permits.is_none_or(|permits| permits(address))
    }

    /// Checks the address of a request that a proxy forwards, which resolves the name itself. A name that means a private
    /// address here is not given to the proxy; of one that only the proxy can resolve, the proxy decides.
    pub(super) async fn check_for_proxy(&self, uri: &Uri) -> io::Result<()> {
        if self.permits.is_none() {
            return Ok(());
        }
        let host = host(uri);
        let is_permitted = match host.parse() {
            Ok(address) => self.permits(address),
            Err(_) => match (self.resolve)(host.to_owned()).await {
                Ok(addresses) => addresses.iter().all(|address| self.permits(address.ip())),
                Err(_) => true,
            },
        };
        if is_permitted { Ok(()) } else { Err(private_address_error()) }
    }
}

/// The connector connects to the addresses that this returns, and to no others: it does not resolve the name again.
impl Service<Name> for Guard {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let guard = self.clone();
        async move {
            let mut addresses = (guard.resolve)(name.as_str().to_owned()).await?;
            let is_empty = addresses.is_empty();
            addresses.retain(|address| guard.permits(address.ip()));
            if addresses.is_empty() && !is_empty {
                return Err(private_address_error());
            }
            Ok(addresses.into_iter())
        }
        .boxed()
    }
}

fn private_address_error() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "its address is private, which is not allowed")
}

/// The host of an address, without the brackets of IPv6.
fn host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Connects to permitted addresses.
#[derive(Clone)]
pub(super) struct Guarded {
    connector: HttpConnector<Guard>,
    guard: Guard,
}

impl Guarded {
    pub(super) fn new(guard: Guard) -> Self {
        let mut connector = HttpConnector::new_with_resolver(guard.clone());
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limits::CONNECT_TIME));
        connector.enforce_http(false);
        Self { connector, guard }
    }
}

impl Service<Uri> for Guarded {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // A literal address does not pass through the resolver.
        if host(&uri).parse().is_ok_and(|address| !self.guard.permits(address)) {
            return async { Err(private_address_error().into()) }.boxed();
        }
        self.connector.call(uri).map(|connected| connected.map_err(Into::into)).boxed()
    }
}
