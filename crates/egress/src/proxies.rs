//! The egress proxies that the environment names.

use std::{env, fmt};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderValue, Uri, header,
    uri::{Authority, Scheme},
};
use percent_encoding::percent_decode_str;

use crate::no_proxy::NoProxy;

/// Why an egress proxy cannot be used. The value of the variable is not part of it: it may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct SettingsError {
    variable: String,
    problem: &'static str,
}

/// Which hosts are reached through which proxy: `HTTPS_PROXY` for `https`, `HTTP_PROXY` for `http`, and none for the hosts
/// in `NO_PROXY`. Each may be in lower case.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<ProxyServer>,
    https: Option<ProxyServer>,
    direct: NoProxy,
}

/// An egress proxy.
#[derive(Clone)]
pub struct ProxyServer {
    /// Where it listens.
    pub(crate) uri: Uri,
    /// Its credentials.
    pub(crate) authorization: Option<HeaderValue>,
}

impl Proxies {
    /// Those of the environment.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::new(|name| env::var(name).ok())
    }

    /// Those of these variables.
    pub fn new(variable: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let first = |names: [&str; 2]| {
            let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
            names.iter().find_map(|name| Some(((*name).to_owned(), set(name)?)))
        };
        let proxy = |names| match first(names) {
            Some((variable, value)) => ProxyServer::parse(value.trim())
                .map(Some)
                .map_err(|problem| SettingsError { variable, problem }),
            None => Ok(None),
        };
        Ok(Self {
            http: proxy(["HTTP_PROXY", "http_proxy"])?,
            https: proxy(["HTTPS_PROXY", "https_proxy"])?,
            direct: first(["NO_PROXY", "no_proxy"])
                .map(|(_, list)| NoProxy::parse(&list))
                .unwrap_or_default(),
        })
    }

    /// The proxy for an address, unless it is reached directly.
    pub fn of(&self, uri: &Uri) -> Option<&ProxyServer> {
        let is_secured = uri.scheme() == Some(&Scheme::HTTPS);
        let proxy = if is_secured { self.https.as_ref() } else { self.http.as_ref() }?;
        let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if is_secured { 443 } else { 80 });
        (!self.direct.contains(host, port)).then_some(proxy)
    }

    /// Adds the credentials of the proxy to a request that is sent to the proxy itself. In a tunnel, the host would get
    /// them.
    pub(crate) fn add_credentials(&self, uri: &Uri, headers: &mut HeaderMap) {
        headers.remove(header::PROXY_AUTHORIZATION);
        if uri.scheme() == Some(&Scheme::HTTP)
            && let Some(authorization) = self.of(uri).and_then(|proxy| proxy.authorization.clone())
        {
            headers.insert(header::PROXY_AUTHORIZATION, authorization);
        }
    }
}

impl ProxyServer {
    fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "is not the address of a proxy: write it as http://host:port";
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::HTTP,
            "https" => Scheme::HTTPS,
            "socks5" | "socks5h" => return Err("SOCKS is not supported: use a proxy that speaks HTTP"),
            _ => return Err(WRONG),
        };
        let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, rest),
        };
        let authority: Authority = host.parse().map_err(|_| WRONG)?;
        if authority.host().is_empty() {
            return Err(WRONG);
        }
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query("/");
        let authorization = credentials.map(basic).transpose()?;
        Ok(Self { uri: uri.build().map_err(|_| WRONG)?, authorization })
    }

    /// Its host and port, without credentials.
    pub fn place(&self) -> &str {
        self.uri.authority().map(Authority::as_str).unwrap_or_default()
    }
}

/// The value of `Proxy-Authorization` for `name:password` of an address.
fn basic(credentials: &str) -> Result<HeaderValue, &'static str> {
    let (name, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let joined = [decoded(name), decoded(password)].join(&b':');
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(joined)));
    let mut value = value.map_err(|_| "its credentials cannot be sent")?;
    value.set_sensitive(true);
    Ok(value)
}

/// Without credentials.
impl fmt::Debug for ProxyServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ProxyServer").field(&self.place()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, SettingsError> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Proxies::new(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    fn place(variables: &[(&str, &str)], uri: &str) -> Option<String> {
        proxies(variables).unwrap().of(&uri.parse().unwrap()).map(|proxy| proxy.uri.to_string())
    }

    #[test]
    fn the_scheme_of_the_address_selects_the_variable_and_upper_case_comes_first() {
        let both = [("HTTP_PROXY", "http://plain:1"), ("https_proxy", "https://secured")];
        assert_eq!(place(&both, "http://a.example").as_deref(), Some("http://plain:1/"));
        assert_eq!(place(&both, "https://a.example").as_deref(), Some("https://secured/"));
        let two = [("HTTPS_PROXY", "upper:3128"), ("https_proxy", "lower:3128")];
        assert_eq!(place(&two, "https://a.example").as_deref(), Some("http://upper:3128/"));
        assert_eq!(place(&two, "http://a.example"), None);
        let empty = [("HTTPS_PROXY", ""), ("https_proxy", "lower:3128")];
        assert_eq!(place(&empty, "https://a.example").as_deref(), Some("http://lower:3128/"));
        let except = [("HTTPS_PROXY", "p"), ("no_proxy", "a.example:8443,[fd00::1]")];
        assert_eq!(place(&except, "https://a.example:8443/x"), None);
        assert_eq!(place(&except, "https://[fd00::1]/"), None);
        assert_eq!(place(&except, "https://a.example/x").as_deref(), Some("http://p/"));
    }

    #[test]
    fn credentials_are_decoded_and_in_no_text() {
        let secret = proxies(&[("HTTP_PROXY", "http://us%65r:p%40ss:w@ord@proxy:3128/path")]).unwrap();
        let uri: Uri = "http://a.example".parse().unwrap();
        let proxy = secret.of(&uri).unwrap();
        assert_eq!(proxy.uri, "http://proxy:3128/");
        let value = proxy.authorization.as_ref().unwrap();
        assert_eq!(value, &format!("Basic {}", STANDARD.encode("user:p@ss:w@ord")));
        let printed = format!("{secret:?}");
        assert!(printed.contains("proxy:3128") && !printed.contains("w@ord"), "{printed}");
        for wrong in ["http://user:hunter2@", "ftp://user:hunter2@proxy", "socks5://user:hunter2@proxy"] {
            let error = proxies(&[("HTTP_PROXY", wrong)]).unwrap_err().to_string();
            assert!(error.starts_with("HTTP_PROXY: ") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_request_has_the_credentials_only_where_the_proxy_reads_it() {
        let proxies =
            proxies(&[("HTTP_PROXY", "a:b@p"), ("HTTPS_PROXY", "a:b@p"), ("NO_PROXY", "own.example")]);
        let proxies = proxies.unwrap();
        let has = |uri: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::PROXY_AUTHORIZATION, HeaderValue::from_static("of the caller"));
            proxies.add_credentials(&uri.parse().unwrap(), &mut headers);
            headers.get(header::PROXY_AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(has("http://a.example").as_deref(), Some("Basic YTpi"));
        assert_eq!(
            (has("https://a.example"), has("http://own.example"), has("http://127.0.0.1")),
            (None, None, None)
        );
    }
}
