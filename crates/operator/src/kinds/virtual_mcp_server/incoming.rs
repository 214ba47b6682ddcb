//! How callers are authenticated, and what they may do.

use skep_api::{
    kinds::IncomingAuthType,
    strategy::provider,
    vmcp::{Authz, IncomingAuth},
};
use skep_config::{
    AuthServer, FieldError, ports,
    run_config::{Cedar, Oidc},
};

use super::inputs::Inputs;
use crate::config_refs;

impl Inputs {
    /// How tokens are validated, as in the RunConfig of a proxy.
    pub(super) fn oidc_config(&self) -> Option<Oidc> {
        let is_oidc = self.spec().incoming_auth.type_ == IncomingAuthType::Oidc;
        self.oidc.oidc(&self.identity, ports::VMCP.into()).filter(|_| is_oidc)
    }

    /// The authorization server to run.
    pub(super) fn auth_server_config(&self) -> Result<Option<AuthServer>, FieldError> {
        let Some(server) = self.auth_server() else { return Ok(None) };
        let oidc = self.oidc_config();
        config_refs::auth_server::auth_server(server, oidc.as_ref(), &self.identity).map(Some)
    }

    /// The upstream provider whose tokens policies evaluate, if the spec names one, with the field that does.
    pub(super) fn named_provider(&self) -> Option<(&'static str, &str)> {
        let server = self.auth_server().and_then(|server| server.primary_upstream_provider.as_deref());
        let inline = self.policies.primary_provider();
        let server = server.map(|name| ("authServerConfig.primaryUpstreamProvider", name));
        let inline = inline.map(|name| ("incomingAuth.authzConfig.inline.primaryUpstreamProvider", name));
        server.or(inline).filter(|(_, name)| !name.is_empty())
    }

    /// The same, or the first of all.
    fn primary_provider(&self) -> Option<String> {
        let first = || Some(provider(&self.auth_server()?.upstream_providers.first()?.name));
        self.named_provider().map(|(_, name)| name.to_owned()).or_else(first)
    }

    /// The part of the configuration file.
    pub(super) fn incoming_auth(&self, cedar: Option<Cedar>) -> IncomingAuth {
        IncomingAuth {
            type_: self.spec().incoming_auth.type_.as_str().into(),
            oidc: self.oidc_config().map(|oidc| self.oidc.of_virtual_server(&oidc)),
            authz: cedar.map(|cedar| Authz {
                type_: Authz::CEDAR.into(),
                policies: cedar.policies,
                entities_json: set(cedar.entities_json),
                primary_upstream_provider: self.primary_provider(),
                group_claim_name: set(cedar.group_claim_name),
                role_claim_name: set(cedar.role_claim_name),
                group_entity_type: set(cedar.group_entity_type),
            }),
        }
    }
}

/// A field, unless it is empty.
fn set(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
