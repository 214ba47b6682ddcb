//! The address that a client of 2024 is told to send its messages to.

use http::{HeaderMap, header};
use skep_config::RunConfig;

/// What addresses are made of.
pub(super) struct Endpoint {
    /// Whether what a proxy before us says is believed.
    trusted: bool,
    /// What is before the path for clients.
    prefix: String,
}

impl Endpoint {
    pub(super) fn new(config: &RunConfig) -> Self {
        Self { trusted: config.trust_proxy_headers, prefix: config.endpoint_prefix.clone() }
    }

    /// The address for a session, as the client of this request can reach it.
    pub(super) fn address(&self, headers: &HeaderMap, session: &str) -> String {
        let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(first);
        let trusted = |name: &str| said(name).filter(|value| self.trusted && !value.is_empty());
        let prefix = if self.prefix.is_empty() {
            let forwarded = trusted("x-forwarded-prefix").unwrap_or_default();
            forwarded.trim_end_matches('/').trim_end_matches("/sse")
        } else {
            &self.prefix
        };
        let prefix = match prefix.trim_matches('/') {
            "" => String::new(),
            path => format!("/{path}"),
        };
        let path = format!("{prefix}/messages?session_id={session}");
        let scheme = trusted("x-forwarded-proto").filter(|scheme| *scheme == "https").unwrap_or("http");
        let forwarded = trusted("x-forwarded-host").map(|host| match trusted("x-forwarded-port") {
            Some(port) if !has_port(host) => format!("{host}:{port}"),
            _ => host.to_owned(),
        });
        match forwarded.or_else(|| said(header::HOST.as_str()).map(str::to_owned)) {
            Some(host) if !host.is_empty() => format!("{scheme}://{host}{path}"),
            _ => path,
        }
    }
}

/// Proxies add what they know behind a comma; the first is the nearest to the client.
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
        endpoint.address(&headers.collect(), "s")
    }

    #[test]
    fn an_address_is_the_clients_own_and_forwarded_ones_are_believed_only_if_trusted() {
        let host = ("host", "in:8080");
        let forwarded = [
            host,
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "out.example, in"),
            ("x-forwarded-port", "8443"),
            ("x-forwarded-prefix", "/team/files/sse/"),
        ];
        let own = "http://in:8080/messages?session_id=s";
        assert_eq!(address(false, "", &[host]), own);
        assert_eq!(address(false, "", &forwarded), own);
        let outer = "https://out.example:8443/team/files/messages?session_id=s";
        assert_eq!(address(true, "", &forwarded), outer);
        assert_eq!(address(false, "a/b/", &[host]), "http://in:8080/a/b/messages?session_id=s");
        assert_eq!(address(true, "/a", &forwarded), "https://out.example:8443/a/messages?session_id=s");
        assert_eq!(address(true, "", &[]), "/messages?session_id=s");
    }
}
