//! MCPExternalAuthConfig: how a proxy authenticates to what stands behind it.

use skep_api::{
    auth_server::UpstreamType,
    kinds::{ExternalAuthType, MCPExternalAuthConfigSpec},
};
use skep_config::annotations::EXTERNAL_AUTH_CONFIG_FINALIZER;
use skep_converge::Finalizer;

use crate::{conditions::Finding, configs::Config, parts, watched::ExternalAuthConfigs};

/// MCPExternalAuthConfig, as a configuration.
pub(super) struct McpExternalAuthConfig;

impl Config for McpExternalAuthConfig {
    type Resource = ExternalAuthConfigs;

    const MANAGER: &'static str = "skep-mcpexternalauthconfig";
    const FINALIZER: Finalizer = Finalizer(EXTERNAL_AUTH_CONFIG_FINALIZER);
    const VALID: &'static str = "ValidationSucceeded";

    fn check(spec: &MCPExternalAuthConfigSpec) -> Result<(), String> {
        parts::external_auth::check(spec)
    }

    fn invalid(spec: &MCPExternalAuthConfigSpec) -> &'static str {
        // What clusters of this API are used to: the type is known, and is not to be had without a licence.
        if spec.type_ == ExternalAuthType::Obo { "EnterpriseRequired" } else { "ValidationFailed" }
    }

    fn remarks(spec: &MCPExternalAuthConfigSpec) -> Vec<Finding> {
        identity_synthesized(spec).into_iter().collect()
    }
}

/// Without a place to ask who a user is, the authorization server makes up a name for each login.
fn identity_synthesized(spec: &MCPExternalAuthConfigSpec) -> Option<Finding> {
    const TYPE: &str = "IdentitySynthesized";
    let server = spec.embedded_auth_server.as_ref()?;
    let nameless = server.upstream_providers.iter().filter(|upstream| {
        let oauth2 = upstream.oauth2_config.as_ref();
        upstream.type_ == UpstreamType::Oauth2
            && oauth2.is_none_or(|oauth2| oauth2.user_info.is_none() && oauth2.identity_from_token.is_none())
    });
    let mut names: Vec<&str> = nameless.map(|upstream| upstream.name.as_str()).collect();
    names.sort_unstable();
    Some(if names.is_empty() {
        Finding::no(TYPE, "AllUpstreamsHaveUserInfo", "every upstream provider tells who a user is")
    } else {
        let message = format!(
            "users of {} get a made-up name at each login: set userInfo or identityFromToken",
            names.join(", ")
        );
        Finding::yes(TYPE, "OAuth2UpstreamWithoutUserInfo", message)
    })
}
