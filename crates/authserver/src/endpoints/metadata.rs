//! Metadata of the server.

use serde_json::{Value, json};

use crate::{AuthServer, rules::GrantType};

impl AuthServer {
    /// RFC 8414, section 2.
    pub(super) fn oauth_metadata(&self) -> Value {
        let settings = &self.settings;
        let issuer = &settings.issuer;
        let mut grants = vec![GrantType::Code, GrantType::Refresh, GrantType::Exchange];
        if settings.has_jwt_bearer() {
            grants.push(GrantType::JwtBearer);
        }
        let grants: Vec<&str> = grants.into_iter().map(GrantType::name).collect();
        let mut methods = vec!["none"];
        let registration = &settings.registration;
        if registration.allows_secrets || !registration.forced.is_empty() || !settings.delegates.is_empty() {
            methods.extend(["client_secret_basic", "client_secret_post"]);
        }
        if self.documents.is_some() {
            methods.push("private_key_jwt");
        }
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{}/oauth/authorize", settings.authorize_base),
            "token_endpoint": settings.token_endpoint(),
            "jwks_uri": format!("{issuer}/.well-known/jwks.json"),
            "revocation_endpoint": format!("{issuer}/oauth/revoke"),
            "response_types_supported": ["code"],
            "grant_types_supported": grants,
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "response_modes_supported": ["query"],
            "scopes_supported": settings.scopes,
            // RFC 9207, section 3.
            "authorization_response_iss_parameter_supported": true,
        });
        if registration.is_open {
            metadata["registration_endpoint"] = format!("{issuer}/oauth/register").into();
        }
        if self.documents.is_some() {
            metadata["client_id_metadata_document_supported"] = true.into();
            // Required where clients may sign (RFC 8414, section 2).
            for endpoint in ["token", "revocation"] {
                metadata[format!("{endpoint}_endpoint_auth_signing_alg_values_supported")] =
                    json!(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384"]);
            }
        }
        metadata
    }

    /// OpenID Connect Discovery 1.0, section 3. Some clients look for metadata there only.
    pub(super) fn openid_metadata(&self) -> Value {
        let mut metadata = self.oauth_metadata();
        metadata["subject_types_supported"] = json!(["public"]);
        metadata["id_token_signing_alg_values_supported"] = json!([self.settings.keys.algorithm()]);
        metadata
    }
}
