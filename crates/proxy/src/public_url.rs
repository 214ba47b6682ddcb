//! The URL at which a client of the HTTP+SSE transport sends messages.

use http::HeaderMap;
use skep_config::RunConfig;

/// Builds URLs for clients.
#[derive(Clone)]
pub(crate) struct PublicUrl {
    /// Whether the headers of a proxy in front are trusted.
    trusted: bool,
    /// The prefix of the path for clients.
    prefix: String,
}

impl PublicUrl {
    pub(crate) fn new(config: &RunConfig) -> Self {
        Self { trusted: config.trust_proxy_headers, prefix: config.endpoint_prefix.clone() }
    }

    /// The address of this path for a client, without a host unless a trusted proxy names one: the client knows best how it
    /// has reached us, by TLS or not.
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

    fn reference(trusted: bool, prefix: &str, headers: &[(&'static str, &'static str)]) -> String {
        let endpoint = PublicUrl { trusted, prefix: prefix.into() };
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        endpoint.reference(&headers.collect(), "/messages?session_id=s")
    }

    #[test]
    fn a_reference_leaves_the_host_to_the_client_unless_a_trusted_proxy_names_one() {
        let host = ("host", "in:8080");
        let forwarded = [
            host,
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "out.example, in"),
            ("x-forwarded-port", "8443"),
            ("x-forwarded-prefix", "/team/files/sse/"),
        ];
        let expected = "/messages?session_id=s";
        assert_eq!(reference(false, "", &[host]), expected);
        assert_eq!(reference(false, "", &forwarded), expected);
        assert_eq!(reference(true, "", &[host]), expected);
        let outer = "https://out.example:8443/team/files/messages?session_id=s";
        assert_eq!(reference(true, "", &forwarded), outer);
        assert_eq!(reference(false, "a/b/", &[host]), "/a/b/messages?session_id=s");
        assert_eq!(reference(true, "/a", &forwarded), "https://out.example:8443/a/messages?session_id=s");
    }
}
