//! What a caller authenticates with is for the proxy alone.

use http::{Response, header};

use crate::{body::Body, exchange::Exchange};

pub(super) fn request(exchange: &mut Exchange) -> Result<(), Response<Body>> {
    for name in [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION] {
        exchange.headers.remove(name);
    }
    Ok(())
}
