//! Protected resource metadata (RFC 9728), and challenges for unauthenticated callers (RFC 6750).

use http::{HeaderValue, Uri};
use serde_json::json;
use skep_config::run_config::Oidc;

use crate::AuthenticationError;

/// The prefix of the path of a resource's metadata.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The metadata of a protected resource.
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    issuer: String,
    resource: String,
    scopes: Vec<String>,
}

impl ProtectedResource {
    /// The resource that a configuration describes.
    pub fn new(oidc: &Oidc) -> Self {
        Self { issuer: oidc.issuer.clone(), resource: oidc.resource_url.clone(), scopes: oidc.scopes.clone() }
    }

    /// The document of RFC 9728, if clients have an address for the resource.
    pub fn description(&self) -> Option<String> {
        if self.resource.is_empty() {
            return None;
        }
        let openid = [String::from("openid")];
        let scopes = if self.scopes.is_empty() { &openid[..] } else { &self.scopes };
        let description = json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": scopes,
        });
        Some(description.to_string())
    }

    /// The `WWW-Authenticate` header for an unauthenticated request.
    pub fn challenge(&self, error: &AuthenticationError) -> HeaderValue {
        let parameters = [
            ("realm", self.issuer.clone()),
            ("resource_metadata", self.address().unwrap_or_default()),
            ("scope", self.scopes.join(" ")),
            ("error", error.code().to_owned()),
            ("error_description", error.to_string()),
        ];
        let set = parameters.iter().filter(|(_, value)| !value.is_empty());
        let set: Vec<_> = set.map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let challenge = format!("Bearer {}", set.join(", "));
        HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer"))
    }

    /// The address of the document: the well-known path is inserted between the host and the path of the resource.
    fn address(&self) -> Option<String> {
        let uri: Uri = self.resource.parse().ok()?;
        let path = uri.path().trim_end_matches('/');
        Some(format!("{}://{}{WELL_KNOWN}{path}", uri.scheme_str()?, uri.authority()?))
    }
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
        ProtectedResource { issuer: issuer.into(), resource: resource.into(), scopes }
    }

    #[test]
    fn a_challenge_names_the_metadata_and_the_error() {
        let full = resource("https://issuer.example", "https://crm.example:8443/mcp/", &["openid", "crm"]);
        assert_eq!(
            full.challenge(&AuthenticationError::Token("the token has expired")),
            "Bearer realm=\"https://issuer.example\", \
             resource_metadata=\"https://crm.example:8443/.well-known/oauth-protected-resource/mcp\", \
             scope=\"openid crm\", error=\"invalid_token\", error_description=\"the token has expired\""
        );
        let bare = resource("", "", &[]);
        assert_eq!(
            bare.challenge(&AuthenticationError::Request("x")),
            r#"Bearer error="invalid_request", error_description="x""#
        );
    }

    #[test]
    fn no_configured_text_can_add_a_parameter_or_a_header() {
        let odd = resource("a\", error=\"none\r\nX-Y: \\é", "", &[]);
        assert_eq!(
            odd.challenge(&AuthenticationError::Request("x")),
            r#"Bearer realm="a\", error=\"noneX-Y: \\", error="invalid_request", error_description="x""#
        );
    }

    #[test]
    fn a_resource_without_an_address_has_no_metadata() {
        assert_eq!(resource("https://issuer.example", "", &[]).description(), None);
        let described =
            resource("https://issuer.example", "https://crm.example/mcp", &[]).description().unwrap();
        let described: serde_json::Value = serde_json::from_str(&described).unwrap();
        let expected = json!({
            "resource": "https://crm.example/mcp", "authorization_servers": ["https://issuer.example"],
            "bearer_methods_supported": ["header"], "scopes_supported": ["openid"],
        });
        assert_eq!(described, expected);
    }
}
