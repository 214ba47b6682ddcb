//! Connections to permitted addresses.
//!
//! The address is checked when connecting, not when a name is first resolved: DNS may return another address the
//! next time.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    task::{Context, Poll},
};

use futures::future::{BoxFuture, FutureExt};
use http::Uri;
use hyper_util::{
    client::legacy::connect::{
        HttpConnector,
        dns::{GaiResolver, Name},
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::Service;

use super::{Reach, address::is_public};
use crate::limits;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Reach {
    fn permits(self, address: IpAddr) -> bool {
        self.private || is_public(address)
    }
}

fn private_address_error() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "its address is private, which is not allowed")
}

/// Connects to permitted addresses.
#[derive(Clone)]
pub(super) struct Guarded {
    connector: HttpConnector<Addresses>,
    reach: Reach,
}

impl Guarded {
    pub(super) fn new(reach: Reach) -> Self {
        let mut connector =
            HttpConnector::new_with_resolver(Addresses { resolver: GaiResolver::new(), reach });
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(limits::CONNECT_TIME));
        connector.enforce_http(false);
        Self { connector, reach }
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
        let host = uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.parse().is_ok_and(|address| !self.reach.permits(address)) {
            return async { Err(private_address_error().into()) }.boxed();
        }
        self.connector.call(uri).map(|connected| connected.map_err(Into::into)).boxed()
    }
}

/// Checks the address of a request that a proxy forwards, which resolves the name itself. A name that means a private
/// address here is not given to the proxy; of one that only the proxy can resolve, the proxy decides.
pub(super) async fn check_for_proxy(reach: Reach, uri: &Uri) -> io::Result<()> {
    if reach.private {
        return Ok(());
    }
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_permitted = match host.parse() {
        Ok(address) => reach.permits(address),
        Err(_) => match tokio::net::lookup_host((host, 443)).await {
            Ok(mut addresses) => addresses.all(|address| reach.permits(address.ip())),
            Err(_) => true,
        },
    };
    if is_permitted { Ok(()) } else { Err(private_address_error()) }
}

/// Resolves names to permitted addresses.
#[derive(Clone)]
struct Addresses {
    resolver: GaiResolver,
    reach: Reach,
}

impl Service<Name> for Addresses {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.resolver.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (resolving, reach) = (self.resolver.call(name), self.reach);
        async move {
            let addresses: Vec<_> = resolving.await?.collect();
            let permitted: Vec<_> =
                addresses.iter().copied().filter(|address| reach.permits(address.ip())).collect();
            if permitted.is_empty() && !addresses.is_empty() {
                return Err(private_address_error());
            }
            Ok(permitted.into_iter())
        }
        .boxed()
    }
}
