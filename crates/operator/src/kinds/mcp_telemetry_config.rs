//! MCPTelemetryConfig: the configuration of traces and metrics.

use skep_api::kinds::{MCPTelemetryConfig, MCPTelemetryConfigSpec};
use skep_config::{FieldError, annotations::TELEMETRY_CONFIG_FINALIZER};
use skep_converge::Finalizer;

use crate::{config_controller::Config, config_refs};

impl Config for MCPTelemetryConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer(TELEMETRY_CONFIG_FINALIZER);

    fn check(spec: &MCPTelemetryConfigSpec) -> Vec<FieldError> {
        config_refs::telemetry::check(spec)
    }
}
