//! The address for messages that a client of 2024 receives.

use http::{HeaderMap, header};
use skep_config::RunConfig;

/// Builds addresses for clients.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Whether the headers of a proxy in front are trusted.
    trusted: bool,
    /// The prefix of the path for clients.
    prefix: String,
}

impl Endpoint {
    pub(crate) fn new(config: &RunConfig) -> Self {
        Self { trusted: config.trust_proxy_headers, prefix: config.endpoint_prefix.clone() }
    }

    /// The address of this path, as the client of this request can reach it.
    pub(crate) fn address(&self, headers: &HeaderMap, path: &str) -> String {
        let host = header_value(headers, header::HOST.as_str()).filter(|host| !host.is_empty());
        match (self.outer(headers), host) {
            (Some(outer), _) => outer + &self.path(headers, path),
            (None, Some(host)) => format!("{}://{host}{}", self.scheme(headers), self.path(headers, path)),
            (None, None) => self.path(headers, path),
        }
    }

    /// The same, without a host unless a trusted proxy names one: the client knows best how it has reached us.
    pub(crate) fn reference(&self, headers: &HeaderMap, path: &str) -> String {
        self.outer(headers).unwrap_or_default() + &self.path(headers, path)
    }

    fn path(&self, headers: &HeaderMap, path: &str) -> String {
        let prefix = if self.prefix.is_empty() {
            let forwarded = self.trusted(headers, "x-forwarded-prefix").unwrap_or_default();
            forwarded.trim_end_matches('/').trim_end_matches("/sse")
        } else {
            &self.prefix
        };
        match prefix.trim_matches('/') {
            "" => path.to_owned(),
            prefix => format!("/{prefix}{path}"),
        }
    }

    /// The address of a proxy in front, if it is trusted and names it.
    fn outer(&self, headers: &HeaderMap) -> Option<String> {
        let host = self.trusted(headers, "x-forwarded-host")?;
        let scheme = self.scheme(headers);
        Some(match self.trusted(headers, "x-forwarded-port") {
            Some(port) if !has_port(host) => format!("{scheme}://{host}:{port}"),
            _ => format!("{scheme}://{host}"),
        })
    }

    fn scheme<'a>(&self, headers: &'a HeaderMap) -> &'a str {
        self.trusted(headers, "x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http")
    }

    fn trusted<'a>(&self, headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
        header_value(headers, name).filter(|value| self.trusted && !value.is_empty())
    }
}

fn header_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(first)
}

/// Each proxy appends a value after a comma; the first is the nearest to the client.
fn first(value: &str) -> &str {
    value.split(',').next().unwrap_or_default().trim()
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(trusted: bool, prefix: &str, headers: &[(&'static str, &'static str)]) -> String {
        let endpoint = Endpoint { trusted, prefix: prefix.into() };
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        endpoint.address(&headers.collect(), "/messages?session_id=s")
    }

    #[test]
    fn an_address_has_the_client_s_host_and_forwarded_headers_count_only_if_trusted() {
        let host = ("host", "in:8080");
        let forwarded = [
            host,
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "out.example, in"),
            ("x-forwarded-port", "8443"),
            ("x-forwarded-prefix", "/team/files/sse/"),
        ];
        let expected = "http://in:8080/messages?session_id=s";
        assert_eq!(address(false, "", &[host]), expected);
        assert_eq!(address(false, "", &forwarded), expected);
        let outer = "https://out.example:8443/team/files/messages?session_id=s";
        assert_eq!(address(true, "", &forwarded), outer);
        assert_eq!(address(false, "a/b/", &[host]), "http://in:8080/a/b/messages?session_id=s");
        assert_eq!(address(true, "/a", &forwarded), "https://out.example:8443/a/messages?session_id=s");
        assert_eq!(address(true, "", &[]), "/messages?session_id=s");
    }

    #[test]
    fn a_reference_leaves_the_host_to_the_client_unless_a_trusted_proxy_names_one() {
        let reference = |trusted, headers: &[(&'static str, &'static str)]| {
            let endpoint = Endpoint { trusted, prefix: "a".into() };
            let headers = headers.iter().map(|(name, value)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            });
            endpoint.reference(&headers.collect(), "/messages")
        };
        let headers =
            [("host", "in:8080"), ("x-forwarded-host", "out.example"), ("x-forwarded-proto", "https")];
        assert_eq!(reference(false, &headers), "/a/messages");
        assert_eq!(reference(true, &headers), "https://out.example/a/messages");
        assert_eq!(reference(true, &headers[..1]), "/a/messages");
    }
}
