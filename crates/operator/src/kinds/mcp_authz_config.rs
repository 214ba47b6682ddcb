//! MCPAuthzConfig: policies that several workloads share.

use skep_api::kinds::MCPAuthzConfigSpec;
use skep_config::annotations::AUTHZ_CONFIG_FINALIZER;
use skep_converge::Finalizer;

use crate::{conditions::Finding, configs::Config, parts, watched::AuthzConfigs};

/// MCPAuthzConfig, as a configuration.
pub(super) struct McpAuthzConfig;

impl Config for McpAuthzConfig {
    type Resource = AuthzConfigs;

    const MANAGER: &'static str = "skep-mcpauthzconfig";
    const FINALIZER: Finalizer = Finalizer(AUTHZ_CONFIG_FINALIZER);
    const VALID: &'static str = "ConfigValid";

    fn check(spec: &MCPAuthzConfigSpec) -> Result<(), String> {
        parts::authz::check(spec)
    }

    fn invalid(_: &MCPAuthzConfigSpec) -> &'static str {
        "ConfigInvalid"
    }

    fn remarks(spec: &MCPAuthzConfigSpec) -> Vec<Finding> {
        let document = parts::authz::document(spec).ok();
        // The document has the settings of the type under a key of their own; the object has them in `config`.
        document.and_then(|document| parts::authz::warning("config.", &document)).into_iter().collect()
    }
}
