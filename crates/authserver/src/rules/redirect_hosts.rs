//! To which hosts users may be sent back.

use super::Uri;

/// What means all names and addresses of the user's own machine.
const LOOPBACK: &str = "localhost";

/// Whether users may be sent back to this redirect URI: its host is one of these, or below `*.`. A URI with a scheme of its own is named by that
/// scheme and a colon. Without any hosts, all are allowed.
pub(crate) fn is_redirect_allowed(hosts: &[String], redirect_uri: &str) -> bool {
    if hosts.is_empty() {
        return true;
    }
    let Some(uri) = Uri::parse(redirect_uri) else { return false };
    if !uri.is("https") && !uri.is("http") {
        return hosts.iter().any(|host| host.strip_suffix(':').is_some_and(|scheme| uri.is(scheme)));
    }
    if uri.is_loopback() {
        return hosts.iter().any(|host| host.eq_ignore_ascii_case(LOOPBACK));
    }
    let name = uri.host.to_ascii_lowercase();
    hosts.iter().map(|host| host.to_ascii_lowercase()).any(|host| match host.strip_prefix("*.") {
        Some(parent) => {
            name.strip_suffix(parent).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
        }
        None => host == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hosts_that_are_named_are_allowed() {
        let hosts = ["app.example.com", "*.corp.example", "localhost", "cursor:"].map(str::to_owned);
        for fine in [
            "https://app.example.com/cb",
            "https://APP.example.com:8443/cb?x=1",
            "https://a.corp.example/cb",
            "https://a.b.Corp.example/cb",
            "http://127.0.0.1:1234/cb",
            "http://[::1]/cb",
            "http://localhost/cb",
            "cursor://anysphere/cb",
        ] {
            assert!(is_redirect_allowed(&hosts, fine), "{fine}");
        }
        for foreign in [
            "https://evil.test/cb",
            "https://app.example.com.evil.test/cb",
            "https://evil.test/app.example.com",
            "https://evil.test?https://app.example.com",
            "https://app.example.com@evil.test/cb",
            "https://corp.example/cb",
            "https://.corp.example/cb",
            "https://evilcorp.example/cb",
            "https://app.example.com./cb",
            "https://localhost.evil.test/cb",
            "cursors://x/cb",
            "app.example.com:/cb",
            "app.example.com",
            "",
        ] {
            assert!(!is_redirect_allowed(&hosts, foreign), "{foreign}");
        }
        assert!(is_redirect_allowed(&[], "https://evil.test/cb"), "without a list, all are");
        assert!(!is_redirect_allowed(&hosts[..1], "http://127.0.0.1/cb"), "this machine is named, too");
    }
}
