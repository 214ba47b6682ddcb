//! MCPOIDCConfig: whose tokens are accepted.

use skep_api::kinds::MCPOIDCConfigSpec;
use skep_config::annotations::OIDC_CONFIG_FINALIZER;
use skep_converge::Finalizer;

use crate::{configs::Config, parts, watched::OidcConfigs};

/// MCPOIDCConfig, as a configuration.
pub(super) struct McpOidcConfig;

impl Config for McpOidcConfig {
    type Resource = OidcConfigs;

    const MANAGER: &'static str = "skep-mcpoidcconfig";
    const FINALIZER: Finalizer = Finalizer(OIDC_CONFIG_FINALIZER);
    const VALID: &'static str = "ConfigValid";

    fn check(spec: &MCPOIDCConfigSpec) -> Result<(), String> {
        parts::oidc::check(spec)
    }

    fn invalid(_: &MCPOIDCConfigSpec) -> &'static str {
        "ConfigInvalid"
    }
}
