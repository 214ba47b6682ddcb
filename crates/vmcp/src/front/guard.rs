//! Requests of web pages to a server on the same machine. A page that a user opens must not be able to call it, neither
//! directly nor by a name that resolves to this machine.

use http::{HeaderMap, Response, StatusCode, Uri, header};
use skep_gateway::http::{Body, is_this_machine, response};

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
        let of = |name| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
        let is_ours = !self.is_local
            || (of(header::HOST).all(is_this_machine)
                && of(header::ORIGIN).all(|origin| of(header::HOST).any(|host| is_own(origin, host))));
        (!is_ours)
            .then(|| response::text(StatusCode::FORBIDDEN, "requests of other origins are not allowed\n"))
    }
}

/// Whether an origin is the server itself, by any name of this machine. What another port serves is another one, as to a proxy.
fn is_own(origin: &str, host: &str) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let usual = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return false,
    };
    let Ok(host) = host.parse::<http::uri::Authority>() else { return false };
    origin.authority().is_some_and(|authority| is_this_machine(authority.as_str()))
        && origin.port_u16().unwrap_or(usual) == host.port_u16().unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn is_rejected(host: &str, origin: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if !origin.is_empty() {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        assert!(Guard::new(false).rejection(&headers).is_none(), "elsewhere the names are not known");
        Guard::new(true).rejection(&headers).is_some()
    }

    #[test]
    fn only_programs_and_pages_of_the_server_itself_may_call_it() {
        for (host, origin) in [
            ("localhost:4483", ""),
            ("127.0.0.1:4483", "http://localhost:4483"),
            ("[::1]:4483", "http://[::1]:4483"),
            ("localhost", "http://localhost"),
            ("localhost", "https://localhost:443"),
        ] {
            assert!(!is_rejected(host, origin), "{host} {origin}");
        }
        for (host, origin) in [
            ("evil.test", ""),
            ("127.0.0.1.evil.test:4483", "http://127.0.0.1.evil.test:4483"),
            ("localhost:4483", "http://evil.test"),
            ("localhost:4483", "http://localhost:3000"),
            ("localhost:4483", "http://localhost"),
            ("localhost:4483", "null"),
            ("localhost:4483", "chrome-extension://localhost:4483"),
        ] {
            assert!(is_rejected(host, origin), "{host} {origin}");
        }
    }
}
