//! Protected resource metadata (RFC 9728), and challenges for unauthenticated callers (RFC 6750).

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, Uri, header, uri::Authority};
use serde_json::json;
use skep_config::run_config::Oidc;

use crate::AuthenticationError;

/// The prefix of the path of a resource's metadata.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Set by an ingress that terminates TLS.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The metadata of a protected resource.
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    issuer: String,
    resource: String,
    /// Whether the address is the default of the operator. No Service has that name, so a client is given the address that
    /// it used.
    is_default: bool,
    scopes: Vec<String>,
}

impl ProtectedResource {
    /// The resource that a configuration describes. The name is that of the server.
    pub fn new(oidc: &Oidc, server: &str) -> Self {
        Self {
            issuer: oidc.issuer.clone(),
            resource: oidc.resource_url.clone(),
            is_default: is_default(&oidc.resource_url, server),
            scopes: oidc.scopes.clone(),
        }
    }

    /// The document of RFC 9728 for a request with these headers, if clients have an address for the resource.
    pub fn description(&self, headers: &HeaderMap) -> Option<String> {
        if self.resource.is_empty() {
            return None;
        }
        let openid = [String::from("openid")];
        let scopes = if self.scopes.is_empty() { &openid[..] } else { &self.scopes };
        let description = json!({
            "resource": self.address(headers),
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": scopes,
        });
        Some(description.to_string())
    }

    /// The `WWW-Authenticate` header for an unauthenticated request with these headers.
    pub fn challenge(&self, error: &AuthenticationError, headers: &HeaderMap) -> HeaderValue {
        let parameters = [
            ("realm", self.issuer.clone()),
            ("resource_metadata", metadata_address(&self.address(headers)).unwrap_or_default()),
            ("scope", self.scopes.join(" ")),
            ("error", error.code().to_owned()),
            ("error_description", error.to_string()),
        ];
        let set = parameters.iter().filter(|(_, value)| !value.is_empty());
        let set: Vec<_> = set.map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let challenge = format!("Bearer {}", set.join(", "));
        HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"))
    }

    /// The address of the resource for the client that sent these headers.
    fn address(&self, headers: &HeaderMap) -> Cow<'_, str> {
        let used = if self.is_default { used_origin(headers) } else { None };
        used.map_or(Cow::Borrowed(&self.resource), Cow::Owned)
    }
}

/// Whether this is the address that the operator gives a server without one.
fn is_default(resource: &str, server: &str) -> bool {
    let uri: Option<Uri> = resource.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).and_then(|host| host.strip_suffix(".svc.cluster.local"));
    host.and_then(|host| host.split_once('.')).is_some_and(|(name, _)| !name.is_empty() && name == server)
}

/// The origin of the resource as the client has reached it. Only this client gets it, so what it claims harms no other.
fn used_origin(headers: &HeaderMap) -> Option<String> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host: Authority = text(header::HOST)?.parse().ok()?;
    if host.as_str().contains('@') {
        return None;
    }
    let scheme = text(FORWARDED_PROTO).filter(|scheme| scheme.eq_ignore_ascii_case("https"));
    Some(format!("{}://{host}", scheme.map_or("http", |_| "https")))
}

/// The address of the document: the well-known path is inserted between the host and the path of the resource.
fn metadata_address(resource: &str) -> Option<String> {
    let uri: Uri = resource.parse().ok()?;
    let path = uri.path().trim_end_matches('/');
    Some(format!("{}://{}{WELL_KNOWN}{path}", uri.scheme_str()?, uri.authority()?))
}

/// A text as a quoted-string of RFC 9110, section 5.6.4. Characters that a header cannot have are omitted.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars().filter(|c| matches!(c, ' '..='~')) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(issuer: &str, resource: &str, scopes: &[&str]) -> ProtectedResource {
        let scopes = scopes.iter().copied().map(str::to_owned).collect();
        let oidc = Oidc { issuer: issuer.into(), resource_url: resource.into(), scopes, ..Oidc::default() };
        ProtectedResource::new(&oidc, "crm")
    }

    #[test]
    fn a_challenge_names_the_metadata_and_the_error() {
        let full = resource("https://issuer.example", "https://crm.example:8443/mcp/", &["openid", "crm"]);
        assert_eq!(
            full.challenge(&AuthenticationError::Token("the token has expired"), &HeaderMap::new()),
            "Bearer realm=\"https://issuer.example\", \
             resource_metadata=\"https://crm.example:8443/.well-known/oauth-protected-resource/mcp\", \
             scope=\"openid crm\", error=\"invalid_token\", error_description=\"the token has expired\""
        );
        let bare = resource("", "", &[]);
        assert_eq!(
            bare.challenge(&AuthenticationError::Request("x"), &HeaderMap::new()),
            r#"Bearer error="invalid_request", error_description="x""#
        );
    }

    #[test]
    fn no_configured_text_can_add_a_parameter_or_a_header() {
        let odd = resource("a\", error=\"none\r\nX-Y: \\é", "", &[]);
        assert_eq!(
            odd.challenge(&AuthenticationError::Request("x"), &HeaderMap::new()),
            r#"Bearer realm="a\", error=\"noneX-Y: \\", error="invalid_request", error_description="x""#
        );
    }

    #[test]
    fn a_resource_without_an_address_has_no_metadata() {
        assert_eq!(resource("https://issuer.example", "", &[]).description(&HeaderMap::new()), None);
        let described = resource("https://issuer.example", "https://crm.example/mcp", &[])
            .description(&HeaderMap::new())
            .unwrap();
        let described: serde_json::Value = serde_json::from_str(&described).unwrap();
        let expected = json!({
            "resource": "https://crm.example/mcp", "authorization_servers": ["https://issuer.example"],
            "bearer_methods_supported": ["header"], "scopes_supported": ["openid"],
        });
        assert_eq!(described, expected);
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_default_that_no_service_has_is_replaced_by_the_address_that_the_client_used() {
        let metadata = |resource: &ProtectedResource, headers: &HeaderMap| {
            let challenge = resource.challenge(&AuthenticationError::Request("x"), headers);
            let challenge = challenge.to_str().unwrap().to_owned();
            challenge.split('"').nth(3).unwrap().trim_end_matches(WELL_KNOWN).to_owned()
        };
        let default = resource("https://issuer.example", "http://crm.team.svc.cluster.local:8080", &[]);
        let ingress = headers(&[("host", "mcp.example"), ("x-forwarded-proto", "https")]);
        assert_eq!(metadata(&default, &ingress), "https://mcp.example");
        assert!(default.description(&ingress).unwrap().contains(r#""resource":"https://mcp.example""#));
        let service = headers(&[("host", "mcp-crm-proxy.team:8080")]);
        assert_eq!(metadata(&default, &service), "http://mcp-crm-proxy.team:8080");
        for odd in ["user@mcp.example", "mcp.example/path", ""] {
            let odd = headers(&[("host", odd)]);
            assert_eq!(metadata(&default, &odd), "http://crm.team.svc.cluster.local:8080");
        }
        // What people set stays.
        let set = resource("https://issuer.example", "http://mcp-crm-proxy.team.svc.cluster.local:8080", &[]);
        assert_eq!(metadata(&set, &ingress), "http://mcp-crm-proxy.team.svc.cluster.local:8080");
    }
}
