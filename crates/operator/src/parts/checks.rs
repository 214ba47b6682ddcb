//! Checks that several kinds of configuration share. Each names the field, quotes the value and says what to do.

use std::net::IpAddr;

use http::Uri;
use skep_api::refs::SecretKeyRef;
use skep_authz::Matcher;

/// Checks that a value is a URL of http or https with a host.
pub(super) fn url(field: &str, value: &str) -> Result<Uri, String> {
    let wrong = || format!("{field}: {value:?} is not a URL: write it as https://host/path");
    let uri = value.parse::<Uri>().map_err(|_| wrong())?;
    let known = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.host().is_some_and(|host| !host.is_empty());
    if known && host { Ok(uri) } else { Err(wrong()) }
}

/// Checks that a value is such a URL, and one of https unless plain HTTP is allowed. The flag is what allows it.
pub(super) fn secure_url(field: &str, value: &str, plain_http: bool, flag: &str) -> Result<(), String> {
    if is_http(&url(field, value)?) && !plain_http {
        return Err(format!("{field}: {value:?} is not encrypted: use https, or for a test set {flag}"));
    }
    Ok(())
}

/// Checks that a reference names a Secret and a key of it.
pub(super) fn secret(field: &str, reference: &SecretKeyRef) -> Result<(), String> {
    if reference.name.is_empty() {
        return Err(format!("{field}.name: name the Secret"));
    }
    if reference.key.is_empty() {
        return Err(format!("{field}.key: name the key within the Secret {:?}", reference.name));
    }
    Ok(())
}

/// Checks that a text is an expression over claims that the proxy can evaluate.
pub(super) fn matcher(field: &str, text: &str) -> Result<(), String> {
    Matcher::compile(text).map(drop).map_err(|error| format!("{field}: {error}"))
}

pub(super) fn is_http(uri: &Uri) -> bool {
    uri.scheme_str() == Some("http")
}

/// Whether a URL is of the machine itself, where nothing travels over a network.
pub(super) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_of_the_web_and_a_host() {
        for good in ["https://login.example", "http://10.0.0.1:8080/a?b=c", "https://[::1]/keys"] {
            assert!(url("issuer", good).is_ok(), "{good}");
        }
        for bad in
            ["", "login.example", "/keys", "https://", "https:///keys", "ftp://a.example", "https://a b"]
        {
            let error = url("issuer", bad).unwrap_err();
            assert_eq!(error, format!("issuer: {bad:?} is not a URL: write it as https://host/path"));
        }
    }

    #[test]
    fn plain_http_needs_a_flag() {
        let check =
            |plain_http| secure_url("issuer", "http://login.example", plain_http, "insecureAllowHTTP");
        assert_eq!(check(true), Ok(()));
        let error = "issuer: \"http://login.example\" is not encrypted: use https, or for a test set insecureAllowHTTP";
        assert_eq!(check(false), Err(error.into()));
    }

    #[test]
    fn the_machine_itself_has_several_names() {
        let loopback = |text: &str| is_loopback(&text.parse().unwrap());
        assert!(["http://localhost:1", "http://127.0.0.9", "http://[::1]:80"].into_iter().all(loopback));
        assert!(!["http://localhost.example", "http://10.0.0.1"].into_iter().any(loopback));
    }
}
