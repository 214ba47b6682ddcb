//! MCPToolConfig: which tools are offered, and under which names.

use skep_api::kinds::{MCPToolConfig, MCPToolConfigSpec};
use skep_config::{FieldError, annotations::TOOL_CONFIG_FINALIZER};
use skep_converge::Finalizer;

use crate::{config_controller::Config, config_refs};

impl Config for MCPToolConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer(TOOL_CONFIG_FINALIZER);

    fn check(spec: &MCPToolConfigSpec) -> Vec<FieldError> {
        config_refs::tools::check(spec)
    }
}
