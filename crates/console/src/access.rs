//! Who may look.
//!
//! On one machine, it is the user who started it: they get an address with a token, and no other user of the machine and no web
//! page knows it. The token is in the fragment of the address, which browsers do not send; the page sends it in a header. It is
//! not in a cookie, because servers on other ports of the same host would get that as well.

use aws_lc_rs::{constant_time::verify_slices_are_equal, rand};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderName, Method, header};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// A header that a page of another origin cannot send without the consent of this one.
pub(crate) const CONSOLE: HeaderName = HeaderName::from_static("x-skep-console");

/// Access on one machine: for whoever knows the token.
pub struct LocalAccess {
    token: String,
    /// The names of this host and port, as a browser sends them.
    hosts: [String; 3],
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// It was sent to another name, or by the page of another site.
    Foreign,
    /// It has no token, or not this one.
    Unauthenticated,
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

    /// Rejects requests that a name of another site has led here: its pages could read the responses.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), Rejected> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
            Ok(())
        } else {
            Err(Rejected::Foreign)
        }
    }

    /// Rejects requests for data that are not from the page itself, or have no token.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Rejected> {
        self.check_host(headers)?;
        let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        if text(&FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none") {
            return Err(Rejected::Foreign);
        }
        let own_origin = |origin: &str| {
            origin.strip_prefix("http://").is_some_and(|host| self.hosts.iter().any(|own| own == host))
        };
        if text(&header::ORIGIN).is_some_and(|origin| !own_origin(origin)) {
            return Err(Rejected::Foreign);
        }
        if !matches!(*method, Method::GET | Method::HEAD) && !headers.contains_key(CONSOLE) {
            return Err(Rejected::Foreign);
        }
        let token =
            text(&header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        verify_slices_are_equal(token.as_bytes(), self.token.as_bytes())
            .map_err(|_| Rejected::Unauthenticated)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(
        access: &LocalAccess,
        method: &Method,
        headers: &[(&'static str, &str)],
    ) -> Result<(), Rejected> {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        access.check(method, &headers.iter().map(pair).collect())
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
        assert_eq!(
            check(&access, &Method::GET, &[host, ("authorization", "Bearer ")]),
            Err(Rejected::Unauthenticated)
        );
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
