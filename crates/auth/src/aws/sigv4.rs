//! AWS Signature Version 4.
//!
//! The signature covers the method, the address, the body and the required headers: the host, the content type and
//! AWS's own. Headers that others add on the way do not invalidate it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header, uri::Scheme};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Credentials;
use crate::mac::{hash_hex, hmac, hmac_hex};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const OWN: &str = "x-amz-";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
/// The characters that are not encoded: the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A request cannot be signed: a part of it cannot be a header value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be signed")]
pub struct SignError;

/// Signs requests to one service in one region.
#[derive(Clone, Debug)]
pub struct Signer {
    region: String,
    service: String,
}

impl Signer {
    /// Signs for this service.
    pub fn new(region: &str, service: &str) -> Self {
        Self { region: region.to_owned(), service: service.to_owned() }
    }

    /// Adds the signature to the headers, and replaces the headers of AWS that they have. The time has the format
    /// `20150830T123600Z`.
    pub fn sign(
        &self,
        credentials: &Credentials,
        time: &str,
        (method, uri): (&Method, &Uri),
        headers: &mut HeaderMap,
        body: &[u8],
    ) -> Result<(), SignError> {
        let date = time.get(..8).ok_or(SignError)?;
        let theirs: Vec<_> = headers.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
        for name in theirs {
            headers.remove(name);
        }
        headers.insert(DATE, HeaderValue::from_str(time).map_err(|_| SignError)?);
        if !credentials.session_token.is_empty() {
            headers.insert(TOKEN, secret(&credentials.session_token)?);
        }
        let signed = signed(uri, headers)?;
        let names = signed.keys().copied().collect::<Vec<_>>().join(";");
        let head: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let (path, query) = (path(uri.path()), query(uri.query().unwrap_or_default()));
        let canonical = format!("{method}\n{path}\n{query}\n{head}\n{names}\n{}", hash_hex(body));
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        let to_sign = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hash_hex(canonical.as_bytes()));
        let first = Bytes::from(format!("AWS4{}", credentials.secret_access_key));
        let parts = [date, &self.region, &self.service, "aws4_request"];
        let key = parts.iter().try_fold(first, |key, part| hmac(&key, &[part.as_bytes()]));
        let signature = key.and_then(|key| hmac_hex(&key, &[to_sign.as_bytes()])).ok_or(SignError)?;
        let key = &credentials.access_key_id;
        let authorization =
            format!("{ALGORITHM} Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}");
        headers.insert(header::AUTHORIZATION, secret(&authorization)?);
        Ok(())
    }
}

fn secret(text: &str) -> Result<HeaderValue, SignError> {
    let mut value = HeaderValue::from_str(text).map_err(|_| SignError)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The headers that are signed, by name.
fn signed<'a>(uri: &Uri, headers: &'a HeaderMap) -> Result<BTreeMap<&'a str, String>, SignError> {
    let mut signed = BTreeMap::from([("host", host(uri).ok_or(SignError)?)]);
    for name in headers.keys().map(HeaderName::as_str) {
        if name == header::CONTENT_TYPE.as_str() || name.starts_with(OWN) {
            let values = headers.get_all(name).iter().map(|value| Ok(words(value.to_str()?)));
            let values: Result<Vec<_>, http::header::ToStrError> = values.collect();
            signed.insert(name, values.map_err(|_| SignError)?.join(","));
        }
    }
    Ok(signed)
}

/// The host as a client sends it: without the default port of the scheme.
fn host(uri: &Uri) -> Option<String> {
    let usual = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    let host = uri.host()?;
    Some(match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    })
}

fn words(text: &str) -> String {
    text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The normalised path, encoded once more than it is sent.
fn path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(encoded(segment)),
        }
    }
    let end = if segments.is_empty() || !path.ends_with('/') { "" } else { "/" };
    format!("/{}{end}", segments.join("/"))
}

/// The query, sorted and normalised.
fn query(query: &str) -> String {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let mut pairs: Vec<_> = pairs.map(|(name, value)| (encoded(&name), encoded(&value))).collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test suite that AWS publishes.
    const SESSION: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    fn signature(method: &str, path: &str, token: &str, type_: Option<&str>, body: &str) -> String {
        let credentials = Credentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: token.into(),
        };
        let uri: Uri = format!("https://example.amazonaws.com{path}").parse().unwrap();
        let mut headers = HeaderMap::new();
        if let Some(type_) = type_ {
            headers.insert(header::CONTENT_TYPE, type_.parse().unwrap());
        }
        // Headers of AWS that a caller sends are replaced.
        headers.insert("x-amz-target", "forged".parse().unwrap());
        headers.insert("x-other", "unsigned".parse().unwrap());
        let method: Method = method.parse().unwrap();
        Signer::new("us-east-1", "service")
            .sign(&credentials, "20150830T123600Z", (&method, &uri), &mut headers, body.as_bytes())
            .unwrap();
        assert_eq!(headers.get("x-amz-target"), None);
        headers[header::AUTHORIZATION].to_str().unwrap().to_owned()
    }

    #[test]
    fn it_matches_the_test_vectors_of_aws() {
        const SCOPE: &str =
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=";
        const FORM: Option<&str> = Some("application/x-www-form-urlencoded");
        for (name, request, names, expected) in [
            (
                "get-vanilla",
                ("GET", "/", "", None, ""),
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "get-slash",
                ("GET", "//", "", None, ""),
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "get-relative-relative",
                ("GET", "/example1/example2/../..", "", None, ""),
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "get-slashes",
                ("GET", "//example//", "", None, ""),
                "host;x-amz-date",
                "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
            ),
            (
                "get-vanilla-query-order-key-case",
                ("GET", "/?Param2=value2&Param1=value1", "", None, ""),
                "host;x-amz-date",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "post-vanilla",
                ("POST", "/", "", None, ""),
                "host;x-amz-date",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "post-x-www-form-urlencoded",
                ("POST", "/", "", FORM, "Param1=value1"),
                "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            (
                "post-sts-header-before",
                ("POST", "/", SESSION, None, ""),
                "host;x-amz-date;x-amz-security-token",
                "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
            ),
        ] {
            let (method, path, token, type_, body) = request;
            let expected = format!("{SCOPE}{names}, Signature={expected}");
            assert_eq!(signature(method, path, token, type_, body), expected, "{name}");
        }
    }

    #[test]
    fn a_path_is_encoded_once_more_than_it_is_sent() {
        assert_eq!(path("/a%20b/c:d/"), "/a%2520b/c%3Ad/");
        assert_eq!(query("b=x y&a=1+2&a=%2F&c"), "a=%2F&a=1%202&b=x%20y&c=");
    }

    #[test]
    fn the_host_is_signed_as_it_is_sent() {
        for (uri, expected) in [
            ("https://a.example/", "a.example"),
            ("https://a.example:443/", "a.example"),
            ("https://a.example:8443/", "a.example:8443"),
            ("http://a.example:80/", "a.example"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(host(&uri.parse().unwrap()).as_deref(), Some(expected), "{uri}");
        }
    }
}
