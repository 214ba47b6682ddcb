//! MCPToolConfig: which tools are offered, and under what names.

use skep_api::kinds::MCPToolConfigSpec;
use skep_config::annotations::TOOL_CONFIG_FINALIZER;
use skep_converge::Finalizer;

use crate::{configs::Config, parts, watched::ToolConfigs};

/// MCPToolConfig, as a configuration.
pub(super) struct McpToolConfig;

impl Config for McpToolConfig {
    type Resource = ToolConfigs;

    const MANAGER: &'static str = "skep-mcptoolconfig";
    const FINALIZER: Finalizer = Finalizer(TOOL_CONFIG_FINALIZER);
    const VALID: &'static str = "ValidationSucceeded";

    fn check(spec: &MCPToolConfigSpec) -> Result<(), String> {
        parts::tools::check(spec)
    }

    fn invalid(_: &MCPToolConfigSpec) -> &'static str {
        "ValidationFailed"
    }
}
