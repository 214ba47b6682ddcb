//! Access on one machine, for the user who started the console.
//!
//! They get an address with a token, which no other user of the machine and no web page knows. The token is in the fragment of
//! the address, which browsers do not send; the page sends it in a header. It is not in a cookie, because servers on other
//! ports of the same host would get that as well.

use aws_lc_rs::{constant_time::verify_slices_are_equal, rand};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, header};

use super::{Rejected, bearer, text};

/// Access by a token.
pub struct LocalAccess {
    token: String,
    /// The names of this host and port, as a browser sends them.
    hosts: [String; 3],
}

impl LocalAccess {
    /// Access to a console on this port of loopback, by a new token. None if the system has no random numbers.
    pub fn new(port: u16) -> Option<Self> {
        let mut bytes = [0; 24];
        rand::fill(&mut bytes).ok()?;
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        Some(Self { token: URL_SAFE_NO_PAD.encode(bytes), hosts })
    }

    /// The part of the address that lets its reader in.
    pub fn fragment(&self) -> String {
        format!("#token={}", self.token)
    }

    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), Rejected> {
        let host = text(headers, &header::HOST).unwrap_or_default();
        let is_own = self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        if is_own { Ok(()) } else { Err(Rejected::Foreign) }
    }

    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), Rejected> {
        let token = bearer(headers).unwrap_or_default();
        let equal = verify_slices_are_equal(token.as_bytes(), self.token.as_bytes());
        equal.map_err(|_| Rejected::Unauthenticated)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue, Method};

    use super::*;
    use crate::access::check_origin;

    fn check(
        access: &LocalAccess,
        method: &Method,
        headers: &[(&'static str, &str)],
    ) -> Result<(), Rejected> {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers = headers.iter().map(pair).collect();
        access.check_host(&headers)?;
        check_origin(method, &headers)?;
        access.check_token(&headers)
    }

    #[test]
    fn only_the_page_itself_with_the_token_gets_data() {
        let access = LocalAccess::new(4000).unwrap();
        let bearer = format!("Bearer {}", access.token);
        let (host, token) = (("host", "127.0.0.1:4000"), ("authorization", bearer.as_str()));
        assert_eq!(check(&access, &Method::GET, &[host, token]), Ok(()));
        assert_eq!(check(&access, &Method::GET, &[("host", "localhost:4000"), token]), Ok(()));
        let same = [host, token, ("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:4000")];
        assert_eq!(check(&access, &Method::GET, &same), Ok(()));
        assert_eq!(check(&access, &Method::GET, &[host]), Err(Rejected::Unauthenticated));
        let empty = [host, ("authorization", "Bearer ")];
        assert_eq!(check(&access, &Method::GET, &empty), Err(Rejected::Unauthenticated));
        for foreign in [
            // The name of another site that resolves to 127.0.0.1.
            &[("host", "evil.example:4000"), token][..],
            &[("host", "127.0.0.1"), token],
            &[token],
            &[host, token, ("sec-fetch-site", "cross-site")],
            // A server on another port of the same host.
            &[host, token, ("sec-fetch-site", "same-site")],
            &[host, token, ("origin", "http://127.0.0.1:5000")],
            &[host, token, ("origin", "null")],
            // An address that someone opens.
            &[host, token, ("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
        ] {
            assert_eq!(check(&access, &Method::GET, foreign), Err(Rejected::Foreign), "{foreign:?}");
        }
        assert_eq!(check(&access, &Method::POST, &[host, token]), Err(Rejected::Foreign));
        assert_eq!(check(&access, &Method::POST, &[host, token, ("x-skep-console", "1")]), Ok(()));
    }

    #[test]
    fn each_run_has_its_own_token() {
        let [one, other] = [LocalAccess::new(1).unwrap(), LocalAccess::new(1).unwrap()];
        assert!(one.token.len() == 32 && one.token != other.token);
    }
}
