//! Requests of web pages to a server on the same machine. A page that a user opens must not be able to call it, neither
//! directly nor by a name that resolves to this machine.

use http::{HeaderMap, Response, StatusCode, Uri, header};
use skep_gateway::http::{Body, response};

/// Which requests are answered at all.
pub(super) struct Guard {
    is_local: bool,
}

impl Guard {
    pub(super) fn new(is_local: bool) -> Self {
        Self { is_local }
    }

    /// The response to a request that must not be processed, if it is one.
    pub(super) fn rejection(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        let of = |name| headers.get_all(name).iter();
        let is_ours = !self.is_local
            || (of(header::HOST).all(|host| host.to_str().is_ok_and(is_this_machine))
                && of(header::ORIGIN).all(|origin| origin.to_str().is_ok_and(is_local_origin)));
        (!is_ours)
            .then(|| response::text(StatusCode::FORBIDDEN, "requests of other origins are not allowed\n"))
    }
}

fn is_local_origin(origin: &str) -> bool {
    origin
        .parse::<Uri>()
        .ok()
        .and_then(|uri| uri.authority().map(|host| is_this_machine(host.as_str())))
        .unwrap_or(false)
}

/// Whether a host, with or without a port, is this machine.
fn is_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<http::uri::Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for host in ["localhost", "localhost:4483", "127.0.0.1:1", "[::1]:4483", "LOCALHOST"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "10.0.0.1", ""] {
            assert!(!is_this_machine(host), "{host}");
        }
        assert!(is_local_origin("http://localhost:3000") && !is_local_origin("http://evil.test"));
        assert!(!is_local_origin("null"));
    }
}
