//! Redirect URIs.

use super::Uri;
use crate::limits;

/// Schemes that a browser runs, reads from the machine, or sends elsewhere than to the client.
const UNSAFE: [&str; 31] = [
    "javascript",
    "data",
    "vbscript",
    "file",
    "filesystem",
    "blob",
    "about",
    "view-source",
    "ws",
    "wss",
    "ftp",
    "mailto",
    "intent",
    "search",
    "search-ms",
    "smb",
    "cifs",
    "nfs",
    "ldap",
    "ldaps",
    "telnet",
    "ssh",
    "sftp",
    "tel",
    "sms",
    "chrome",
    "chrome-extension",
    "moz-extension",
    "edge",
    "res",
    "jar",
];
/// What those of the handlers begin with that an operating system brings along.
const OF_SYSTEM: &str = "ms-";

/// Why a redirect URI cannot be registered, if it cannot (RFC 6749, section 3.1.2, and RFC 8252, sections 7 and 8.4).
pub(crate) fn registration_error(text: &str) -> Option<&'static str> {
    if text.len() > limits::URI {
        return Some("a redirect URI is too long (at most 2048 characters)");
    }
    let Some(uri) = Uri::parse(text) else { return Some("a redirect URI must be an absolute URI in ASCII") };
    match () {
        () if uri.has_fragment => Some("a redirect URI must not have a fragment"),
        () if uri.user.is_some() => Some("a redirect URI must not have a user name"),
        () if uri.has_dot_segments() => Some("a redirect URI must not have dot segments"),
        () if uri.is("https") && uri.has_host() => None,
        () if uri.is("http") && uri.is_loopback() => None,
        () if uri.is("https") || uri.is("http") => {
            Some("a redirect URI must use https, or http on this machine, or a scheme of its own")
        }
        () if UNSAFE.iter().any(|scheme| uri.is(scheme))
            || uri.scheme.to_ascii_lowercase().starts_with(OF_SYSTEM) =>
        {
            Some("a redirect URI must lead to an application")
        }
        () if uri.rest.is_empty() && uri.host.is_empty() => Some("a redirect URI must not be a scheme alone"),
        () => None,
    }
}

/// Whether codes of a client with a secret may be sent there: to a web server, not to a program on the machine of a user,
/// which could not keep a secret (RFC 8252, section 8.5).
pub(crate) fn is_confidential_target(text: &str) -> bool {
    Uri::parse(text).is_some_and(|uri| uri.is("https") && !uri.is_loopback())
}

/// Whether a requested redirect URI is the registered one. They are compared character by character (OAuth 2.1,
/// section 4.1.3); of `http` on this machine the port may differ (RFC 8252, section 7.3).
pub(crate) fn is_redirect_to(registered: &str, requested: &str, may_vary_port: bool) -> bool {
    if registered == requested {
        return Uri::parse(requested).is_some();
    }
    let (Some(left), Some(right)) = (Uri::parse(registered), Uri::parse(requested)) else { return false };
    let is_plain_loopback = |uri: &Uri<'_>| uri.scheme == "http" && uri.is_loopback() && uri.user.is_none();
    may_vary_port
        && is_plain_loopback(&left)
        && is_plain_loopback(&right)
        && !right.has_fragment
        && left.host.eq_ignore_ascii_case(right.host)
        && left.rest == right.rest
}

/// A redirect URI without the port that differs with each login.
pub(crate) fn without_loopback_port(text: &str) -> String {
    match Uri::parse(text) {
        Some(uri) if uri.is("http") && uri.is_loopback() => format!("http://{}{}", uri.host, uri.rest),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_targets_that_are_applications_can_be_registered() {
        for fine in [
            "https://client.example/cb?x=1",
            "http://127.0.0.1/cb",
            "http://127.0.0.2:1/cb",
            "http://[::1]:9/cb",
            "http://localhost:8080/",
            "http://app.localhost/cb",
            "com.example.app:/cb",
            "myapp://cb",
        ] {
            assert_eq!(registration_error(fine), None, "{fine}");
        }
        for wrong in [
            "/cb",
            "http://client.example/cb",
            "https://client.example/cb#",
            "https://u:p@client.example/cb",
            "https://client.example/a/../cb",
            "https://client.example/a/..;/cb",
            "https://client.example/%2E%2e/cb",
            "https://*.example/cb",
            "https://client.example\\@evil.example/cb",
            "javascript:alert(1)//",
            "JavaScript:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "blob:https://a.example/1",
            "search-ms:query=x",
            "MS-MSDT:/id",
            "ms-settings:privacy",
            "smb://a.example/b",
            "chrome-extension://abc/cb",
            " https://client.example/cb",
            "https://client.example/cb\r\nx",
            "https://cl\u{456}ent.example/cb",
            "https://",
            "app:",
            "http://localhost:0/cb",
            "http://localhost:99999/cb",
        ] {
            assert!(registration_error(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn redirect_uris_are_compared_exactly_but_for_the_port_of_this_machine() {
        let same = |registered: &str, requested: &str| is_redirect_to(registered, requested, true);
        assert!(same("http://127.0.0.1/cb", "http://127.0.0.1:51234/cb"));
        assert!(same("http://localhost:1/cb", "http://LOCALHOST:2/cb"));
        assert!(same("https://c.example/cb", "https://c.example/cb"));
        assert!(!is_redirect_to("http://127.0.0.1/cb", "http://127.0.0.1:51234/cb", false));
        for (registered, requested) in [
            ("https://c.example/cb", "https://C.example/cb"),
            ("https://c.example/cb", "https://c.example:443/cb"),
            ("https://c.example/cb", "https://c.example/cb/"),
            ("https://c.example/cb", "https://c.example/%63b"),
            ("https://127.0.0.1/cb", "http://127.0.0.1:1/cb"),
            ("http://127.0.0.1/cb", "https://127.0.0.1:1/cb"),
            ("http://127.0.0.1/cb", "http://localhost:1/cb"),
            ("http://127.0.0.1/cb", "http://a@127.0.0.1:1/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:1/%63b"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:1/cb?x=1"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:1/cb#x"),
            ("http://localhost/cb", "http://localhost.:1/cb"),
            ("http://localhost/cb", "http://localhost:0/cb"),
        ] {
            assert!(!same(registered, requested), "{registered} {requested}");
        }
    }
}
