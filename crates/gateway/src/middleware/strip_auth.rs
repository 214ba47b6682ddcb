//! What a caller authenticates with is for the proxy alone.

use http::header;

use crate::{http::ErrorResponse, message::Exchange};

pub(super) fn request(exchange: &mut Exchange) -> Result<(), ErrorResponse> {
    for name in [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION] {
        exchange.headers.remove(name);
    }
    Ok(())
}
