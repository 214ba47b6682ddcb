//! Checks that several kinds of configuration share. Each error quotes the value and states what to do.

use std::net::IpAddr;

use http::Uri;
use skep_api::refs::SecretKeyRef;
use skep_authz::Matcher;
use skep_config::{FieldError, FieldPath};

/// Checks that a value is a URL of http or https with a host.
pub(super) fn url(field: impl Into<FieldPath>, value: &str) -> Result<Uri, FieldError> {
    let uri = value.parse::<Uri>().ok().filter(|uri| {
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        is_web && uri.host().is_some_and(|host| !host.is_empty())
    });
    let message = || format!("{value:?} is not a URL: use one such as https://host/path");
    uri.ok_or_else(|| FieldError::new(field, message()))
}

/// Checks that a value is such a URL, and one of https unless plain HTTP is allowed. `flag` is the field that allows it.
pub(super) fn secure_url(
    field: impl Into<FieldPath>,
    value: &str,
    plain_http: bool,
    flag: &str,
) -> Result<(), FieldError> {
    let field = field.into();
    if is_http(&url(field.clone(), value)?) && !plain_http {
        let message = format!("{value:?} is not encrypted: use https, or for a test set {flag}");
        return Err(FieldError::new(field, message));
    }
    Ok(())
}

/// Checks that a reference names a Secret and a key of it.
pub(super) fn secret(field: impl Into<FieldPath>, reference: &SecretKeyRef) -> Result<(), FieldError> {
    let error = if reference.name.is_empty() {
        FieldError::new("name", "is empty: name the Secret")
    } else if reference.key.is_empty() {
        FieldError::new("key", format!("is empty: name the key of the Secret {:?}", reference.name))
    } else {
        return Ok(());
    };
    Err(error.within(field))
}

/// Checks that a text is an expression over claims that the proxy can evaluate.
pub(super) fn matcher(field: impl Into<FieldPath>, text: &str) -> Result<(), FieldError> {
    Matcher::compile(text).map(drop).map_err(|error| FieldError::new(field, error.to_string()))
}

/// The same errors, in a field that is part of `parent`.
pub(super) fn within(
    parent: impl Into<FieldPath>,
    errors: Vec<FieldError>,
) -> impl Iterator<Item = FieldError> {
    let parent = parent.into();
    errors.into_iter().map(move |error| error.within(parent.clone()))
}

pub(super) fn is_http(uri: &Uri) -> bool {
    uri.scheme_str() == Some("http")
}

/// Whether a URL addresses the machine itself: its requests never cross a network.
pub(super) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_the_scheme_http_or_https_and_a_host() {
        for good in ["https://login.example", "http://10.0.0.1:8080/a?b=c", "https://[::1]/keys"] {
            assert!(url("issuer", good).is_ok(), "{good}");
        }
        for bad in
            ["", "login.example", "/keys", "https://", "https:///keys", "ftp://a.example", "https://a b"]
        {
            let message = format!("{bad:?} is not a URL: use one such as https://host/path");
            assert_eq!(url("issuer", bad), Err(FieldError::new("issuer", message)));
        }
    }

    #[test]
    fn plain_http_needs_a_flag() {
        let check =
            |plain_http| secure_url("issuer", "http://login.example", plain_http, "insecureAllowHTTP");
        assert_eq!(check(true), Ok(()));
        let error = "issuer: \"http://login.example\" is not encrypted: use https, or for a test set insecureAllowHTTP";
        assert_eq!(check(false).unwrap_err().to_string(), error);
    }

    #[test]
    fn a_secret_needs_a_name_and_a_key() {
        let reference = |name: &str, key: &str| SecretKeyRef { name: name.into(), key: key.into() };
        assert_eq!(secret("ref", &reference("s", "k")), Ok(()));
        for (name, key, field) in [("", "k", "ref.name"), ("s", "", "ref.key")] {
            assert_eq!(secret("ref", &reference(name, key)).unwrap_err().field.to_string(), field);
        }
    }

    #[test]
    fn the_machine_itself_has_several_names() {
        let loopback = |text: &str| is_loopback(&text.parse().unwrap());
        assert!(["http://localhost:1", "http://127.0.0.9", "http://[::1]:80"].into_iter().all(loopback));
        assert!(!["http://localhost.example", "http://10.0.0.1"].into_iter().any(loopback));
    }
}
