//! MCPTelemetryConfig: where traces and metrics go.

use skep_api::kinds::MCPTelemetryConfigSpec;
use skep_config::annotations::TELEMETRY_CONFIG_FINALIZER;
use skep_converge::Finalizer;

use crate::{configs::Config, parts, watched::TelemetryConfigs};

/// MCPTelemetryConfig, as a configuration.
pub(super) struct McpTelemetryConfig;

impl Config for McpTelemetryConfig {
    type Resource = TelemetryConfigs;

    const MANAGER: &'static str = "skep-mcptelemetryconfig";
    const FINALIZER: Finalizer = Finalizer(TELEMETRY_CONFIG_FINALIZER);
    const VALID: &'static str = "ValidationSucceeded";

    fn check(spec: &MCPTelemetryConfigSpec) -> Result<(), String> {
        parts::telemetry::check(spec)
    }

    fn invalid(_: &MCPTelemetryConfigSpec) -> &'static str {
        "ValidationFailed"
    }
}
