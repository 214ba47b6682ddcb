//! Where requests are sent.

use http::{
    Method, Uri,
    uri::{Authority, Parts, PathAndQuery, Scheme},
};
use percent_encoding::percent_decode_str;
use skep_config::run_config::Transport;

use crate::ConfigError;

/// Where MCP servers usually are.
const USUAL_PATHS: [&str; 3] = ["/", "/mcp", "/sse"];

/// The address of a server, and what becomes of the paths of requests.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) scheme: Scheme,
    authority: Authority,
    /// Put in place of paths: the address of a remote server is that of its endpoint.
    path: Option<String>,
    /// Whether that is only where to listen: a server of 2024 names the address for messages itself.
    only_listens: bool,
    /// Put before every query.
    query: Option<String>,
    /// Whether the server is remote.
    pub remote: bool,
}

impl Target {
    /// A server in the cluster, reached at this host and port.
    pub fn own(host: &str, port: u16) -> Result<Self, ConfigError> {
        let authority = format!("{host}:{port}");
        let wrong = |_| ConfigError::new(format!("target_host: {authority:?} is not an address"));
        let authority = authority.parse().map_err(wrong)?;
        Ok(Self {
            scheme: Scheme::HTTP,
            authority,
            path: None,
            only_listens: false,
            query: None,
            remote: false,
        })
    }

    /// A server elsewhere, that speaks this transport.
    pub fn remote(url: &str, transport: Transport) -> Result<Self, ConfigError> {
        let wrong =
            || ConfigError::new(format!("remote_url: {url:?} is not a URL: write it as https://host/path"));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let parts = uri.clone().into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else { return Err(wrong()) };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong());
        }
        // A URL without a path has the path "/" for the parser; only one that was written counts.
        let written = url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        let path = written.then(|| uri.path().to_owned());
        let query = uri.query().filter(|query| !query.is_empty()).map(Into::into);
        Ok(Self { scheme, authority, path, only_listens: transport == Transport::Sse, query, remote: true })
    }

    /// The address of the server, without credentials and query.
    pub fn place(&self) -> String {
        let port = self.authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}{}", self.authority.host(), self.path.as_deref().unwrap_or_default())
    }

    /// Whether a request to this path can be sent. A remote server gets credentials of the proxy, so the caller does not
    /// choose the path there: it is that of its address, or, where that has none, one of those that MCP servers have.
    /// Where a server of 2024 gets its messages is not known here: its streams announce it.
    pub fn accepts(&self, method: &Method, path: &str) -> bool {
        let is_fixed = self.path.is_some() && (!self.only_listens || method == Method::GET);
        !self.remote || is_fixed || USUAL_PATHS.contains(&path)
    }

    /// The address for a request to this path, at that pod, or at any.
    pub fn uri(&self, method: &Method, requested: &PathAndQuery, pod: Option<&Authority>) -> Option<Uri> {
        let mut parts = Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(pod.unwrap_or(&self.authority).clone());
        parts.path_and_query = Some(self.path(method, requested)?);
        Uri::from_parts(parts).ok()
    }

    fn path(&self, method: &Method, requested: &PathAndQuery) -> Option<PathAndQuery> {
        let endpoint = self.path.as_deref().filter(|_| !self.only_listens || method == Method::GET);
        let path = endpoint.unwrap_or_else(|| requested.path());
        let changed = match (&self.query, requested.query()) {
            (None, _) if endpoint.is_none() => return Some(requested.clone()),
            (None, None) => path.to_owned(),
            (Some(ours), Some(theirs)) => {
                let names: Vec<String> = ours.split('&').map(parameter).collect();
                // Of two values, servers take the first, the last, or both.
                let others = theirs.split('&').filter(|pair| !names.contains(&parameter(pair)));
                let query: Vec<&str> = std::iter::once(&**ours).chain(others).collect();
                format!("{path}?{}", query.join("&"))
            }
            (Some(ours), None) => format!("{path}?{ours}"),
            (None, Some(theirs)) => format!("{path}?{theirs}"),
        };
        changed.parse().ok()
    }
}

/// The name of a parameter of a query, as servers compare it: without what makes it one of a list.
fn parameter(pair: &str) -> String {
    let name = pair.split(['=', ';']).next().unwrap_or_default().replace('+', " ");
    let name = percent_decode_str(&name).decode_utf8_lossy();
    name.split(['[', '.']).next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(url: &str, requested: &str) -> String {
        let target = Target::remote(url, Transport::StreamableHttp).unwrap();
        target.uri(&Method::POST, &requested.parse().unwrap(), None).unwrap().to_string()
    }

    #[test]
    fn the_path_of_a_remote_server_is_that_of_its_address() {
        assert_eq!(uri("https://a.example/v1/mcp", "/mcp"), "https://a.example/v1/mcp");
        assert_eq!(uri("https://a.example", "/mcp"), "https://a.example/mcp");
        assert_eq!(uri("https://a.example/", "/mcp"), "https://a.example/");
        assert_eq!(uri("https://a.example/mcp?key=1", "/mcp?x=2"), "https://a.example/mcp?key=1&x=2");
        assert_eq!(uri("https://a.example/mcp?key=1", "/mcp"), "https://a.example/mcp?key=1");
    }

    #[test]
    fn a_caller_does_not_contradict_the_query_of_a_remote_server() {
        let ours = "https://a.example/mcp?project=a&read_only=true";
        for theirs in [
            "read_only=false",
            "Read_Only=false",
            "read%5Fonly=false",
            "read_only[]=false",
            "read_only%5B0%5D=false",
            "read_only.x=false",
            "read_only",
            "project=b&read_only=",
            "read_only;x=false",
        ] {
            assert_eq!(uri(ours, &format!("/mcp?{theirs}")), ours, "{theirs}");
        }
        assert_eq!(uri(ours, "/mcp?read_only=0&x=1"), format!("{ours}&x=1"));
    }

    #[test]
    fn messages_are_sent_to_the_endpoint_that_a_remote_server_of_2024_names() {
        let target = Target::remote("https://a.example/v1/sse", Transport::Sse).unwrap();
        let uri = |method, requested: &str| {
            target.uri(&method, &requested.parse().unwrap(), None).unwrap().to_string()
        };
        assert_eq!(uri(Method::GET, "/sse"), "https://a.example/v1/sse");
        assert_eq!(uri(Method::POST, "/v1/messages?s=1"), "https://a.example/v1/messages?s=1");
    }

    #[test]
    fn a_caller_does_not_choose_the_path_at_a_remote_server() {
        let accepts = |url: &str, transport, method: Method, path: &str| {
            Target::remote(url, transport).unwrap().accepts(&method, path)
        };
        for method in [Method::GET, Method::POST, Method::DELETE] {
            // The path is replaced.
            assert!(accepts("https://a.example/mcp", Transport::StreamableHttp, method.clone(), "/x"));
            assert!(accepts("https://a.example", Transport::StreamableHttp, method.clone(), "/mcp"));
            assert!(!accepts(
                "https://a.example",
                Transport::StreamableHttp,
                method.clone(),
                "/api/v4/users"
            ));
        }
        assert!(accepts("https://a.example/sse", Transport::Sse, Method::GET, "/x"));
        assert!(!accepts("https://a.example", Transport::Sse, Method::GET, "/api/v4/users"));
        assert!(!accepts("https://a.example/sse", Transport::Sse, Method::DELETE, "/api/v4/users"));
        assert!(Target::own("files", 80).unwrap().accepts(&Method::GET, "/any"));
    }

    #[test]
    fn the_place_of_a_server_contains_no_secret() {
        let place = |url: &str| Target::remote(url, Transport::Sse).unwrap().place();
        assert_eq!(place("https://user:secret@a.example:1/v1/mcp?key=secret"), "a.example:1/v1/mcp");
        assert_eq!(Target::own("files.ns.svc", 80).unwrap().place(), "files.ns.svc:80");
    }

    #[test]
    fn an_invalid_address_is_an_error() {
        for url in ["", "a.example", "ftp://a.example", "https://"] {
            assert!(Target::remote(url, Transport::Sse).is_err(), "{url}");
        }
    }
}
