//! How clients are authenticated, and what they may do.

use skep_api::kinds::IncomingAuthType;
use skep_config::{
    AuthServer, Json, ports,
    run_config::{self, AuthzDocument, Cedar},
    vmcp::{Authz, IncomingAuth},
};

use super::inputs::Inputs;
use crate::{
    driver::Blocked,
    parts::{self, strategy::provider},
    proxied::AuthzProblem,
    reference::object,
};

impl Inputs {
    /// Whose tokens are accepted, as a proxy would be told.
    pub(super) fn oidc_config(&self) -> Option<run_config::Oidc> {
        let auth = &self.spec().incoming_auth;
        let reference = auth.oidc_config_ref.as_ref().filter(|_| auth.type_ == IncomingAuthType::Oidc)?;
        let config = object(&self.oidc)?;
        Some(parts::oidc::oidc(&config.spec, reference, &self.identity, ports::VMCP.into()))
    }

    /// The authorization server to run.
    pub(super) fn auth_server_config(&self) -> Result<Option<AuthServer>, String> {
        let Some(server) = self.auth_server() else { return Ok(None) };
        let oidc = self.oidc_config();
        let made = parts::auth_server::auth_server(server, oidc.as_ref(), &self.identity)?;
        match oidc {
            Some(oidc) if oidc.issuer != made.issuer => Err(format!(
                "issuer: {:?} is not {:?}, whose tokens incomingAuth.oidcConfigRef accepts: make them the same",
                made.issuer, oidc.issuer
            )),
            _ => Ok(Some(made)),
        }
    }

    /// The policies that requests are held to.
    pub(super) fn cedar(&self) -> Result<Option<Cedar>, AuthzProblem> {
        let auth = &self.spec().incoming_auth;
        if let Some(authz) = object(&self.authz) {
            let document = parts::authz::document(&authz.spec).map_err(AuthzProblem::Invalid)?;
            return cedar_of(&document).map(Some).map_err(AuthzProblem::Invalid);
        }
        let Some(authz) = &auth.authz_config else { return Ok(None) };
        let Some(source) = &authz.config_map else {
            let document = parts::authz::inline_document(authz).map_err(AuthzProblem::Invalid)?;
            return cedar_of(&document).map(Some).map_err(AuthzProblem::Invalid);
        };
        let Some(data) = &self.policies else {
            let message = format!("authzConfig.configMap: there is no ConfigMap {}: create it", source.name);
            return Err(AuthzProblem::MissingConfigMap(message));
        };
        let text = data.get(source.key()).ok_or_else(|| {
            let message =
                format!("authzConfig.configMap: the ConfigMap {} has no key {}", source.name, source.key());
            AuthzProblem::InvalidConfigMap(message)
        })?;
        let document =
            parts::authz::config_map_document(authz, text).map_err(AuthzProblem::InvalidConfigMap)?;
        cedar_of(&document).map(Some).map_err(AuthzProblem::InvalidConfigMap)
    }

    /// The upstream provider whose token policies look at, if the object names one, with the field that does.
    pub(super) fn named_provider(&self) -> Option<(&'static str, &str)> {
        let server = self.auth_server().and_then(|server| server.primary_upstream_provider.as_deref());
        let inline = self.spec().incoming_auth.authz_config.as_ref();
        let inline = inline.and_then(|authz| authz.inline.as_ref()?.primary_upstream_provider.as_deref());
        let server = server.map(|name| ("authServerConfig.primaryUpstreamProvider", name));
        let inline = inline.map(|name| ("incomingAuth.authzConfig.inline.primaryUpstreamProvider", name));
        server.or(inline).filter(|(_, name)| !name.is_empty())
    }

    /// The same, or the first of all.
    fn primary_provider(&self) -> Option<String> {
        let first = || Some(provider(&self.auth_server()?.upstream_providers.first()?.name));
        self.named_provider().map(|(_, name)| name.to_owned()).or_else(first)
    }

    /// What the file says of clients.
    pub(super) fn incoming_auth(&self) -> Result<IncomingAuth, Blocked> {
        let cedar = self.cedar().map_err(|problem| Blocked::new(problem.message()))?;
        let oidc = self.oidc_config();
        let config = object(&self.oidc);
        Ok(IncomingAuth {
            type_: self.spec().incoming_auth.type_.as_str().into(),
            oidc: config
                .zip(oidc.as_ref())
                .map(|(config, oidc)| parts::oidc::of_virtual_server(&config.spec, oidc)),
            authz: cedar.map(|cedar| Authz {
                type_: Authz::CEDAR.into(),
                policies: cedar.policies,
                entities_json: cedar.entities_json,
                primary_upstream_provider: self.primary_provider().unwrap_or_default(),
                group_claim_name: cedar.group_claim_name,
                role_claim_name: cedar.role_claim_name,
                group_entity_type: cedar.group_entity_type,
            }),
        })
    }
}

/// A virtual MCP server evaluates policies itself, so they must be ones that it can.
fn cedar_of(document: &Json) -> Result<Cedar, String> {
    let document: AuthzDocument = document.read().map_err(|error| error.to_string())?;
    let type_ = document.type_;
    document.cedar.ok_or_else(|| {
        format!(
            "type: {type_:?} is not for a VirtualMCPServer: write policies in Cedar, as {}",
            AuthzDocument::CEDAR
        )
    })
}
