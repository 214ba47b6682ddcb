//! The configuration file of a virtual MCP server: the configuration in the spec, with what the operator adds.

use serde::Deserialize;
use skep_api::{
    Duration,
    kinds::OutgoingAuthSource,
    vmcp::{
        Aggregation, AuditLog, CompositeTool, Config, ConflictResolution, ConflictResolutionConfig,
        Operational, Optimizer, PartialFailureMode, SessionStorageConfig, Telemetry, WorkloadTools,
    },
    workload::SessionProvider,
};
use skep_config::FieldError;

use super::{backend_auth::BackendAuths, backends::backends, inputs::Inputs};
use crate::{build::service_url, config_refs::session_storage, resources::object};

/// The default prefix of tool names.
const PREFIX_FORMAT: &str = "{workload}_";
/// The default interval of health checks, and the default timeout of calls.
const HALF_A_MINUTE: &str = "30s";
const A_MINUTE: &str = "1m0s";

/// The configuration of the server but for how callers are authenticated, whose mistakes must not hide those
/// of the rest.
pub(super) fn config_without_callers(inputs: &Inputs, auths: &BackendAuths) -> Result<Config, FieldError> {
    let declared = inputs.config();
    let spec = inputs.spec();
    let source = inputs.source();
    Ok(Config {
        name: Some(inputs.identity.name.clone()),
        group_ref: Some(inputs.group.name.clone()),
        backends: match source {
            OutgoingAuthSource::Inline => backends(inputs, auths),
            OutgoingAuthSource::Discovered => declared.backends,
        },
        incoming_auth: None,
        outgoing_auth: Some(auths.outgoing_auth(source)),
        aggregation: Some(aggregation(inputs, declared.aggregation.unwrap_or_default())),
        composite_tools: composite_tools(inputs, declared.composite_tools),
        operational: Some(with_defaults(declared.operational.unwrap_or_default())),
        telemetry: telemetry(inputs)?,
        audit: declared.audit.map(|audit| AuditLog {
            component: audit.component.or_else(|| Some(inputs.identity.name.clone())),
            ..audit
        }),
        optimizer: optimizer(inputs, declared.optimizer),
        session_storage: session_storage(inputs),
        passthrough_headers: match spec.passthrough_headers.is_empty() {
            true => declared.passthrough_headers,
            false => spec.passthrough_headers.clone(),
        },
        // The server accepts no unknown keys.
        unknown: Default::default(),
        ..declared
    })
}

fn aggregation(inputs: &Inputs, declared: Aggregation) -> Aggregation {
    let resolution = declared.conflict_resolution.unwrap_or_default();
    // The server requires the details, even if they are empty.
    let details = declared.conflict_resolution_config.unwrap_or_else(|| ConflictResolutionConfig {
        prefix_format: (resolution == ConflictResolution::Prefix).then(|| PREFIX_FORMAT.into()),
        ..ConflictResolutionConfig::default()
    });
    Aggregation {
        conflict_resolution: Some(resolution),
        conflict_resolution_config: Some(details),
        tools: declared.tools.into_iter().map(|tools| with_tool_config(inputs, tools)).collect(),
        ..declared
    }
}

/// The tools of a backend, completed by its MCPToolConfig.
fn with_tool_config(inputs: &Inputs, mut tools: WorkloadTools) -> WorkloadTools {
    let config = tools.tool_config_ref.take().and_then(|field| inputs.tool_configs.get(&field.name));
    if let Some(config) = config {
        config.complete(&mut tools);
    }
    tools
}

fn composite_tools(inputs: &Inputs, declared: Vec<CompositeTool>) -> Vec<CompositeTool> {
    let definitions = inputs.composite_tools.iter().filter_map(|reference| reference.object());
    declared.into_iter().chain(definitions.map(|definition| definition.spec.tool.clone())).collect()
}

fn with_defaults(mut operational: Operational) -> Operational {
    fn set<T>(field: &mut Option<T>, default: impl Into<T>) {
        field.get_or_insert_with(|| default.into());
    }
    set::<Duration>(&mut operational.timeouts.get_or_insert_default().default, HALF_A_MINUTE);
    let handling = operational.failure_handling.get_or_insert_default();
    set::<Duration>(&mut handling.health_check_interval, HALF_A_MINUTE);
    set(&mut handling.unhealthy_threshold, 3);
    set::<Duration>(&mut handling.status_reporting_interval, HALF_A_MINUTE);
    set(&mut handling.partial_failure_mode, PartialFailureMode::Fail);
    let breaker = handling.circuit_breaker.get_or_insert_default();
    set(&mut breaker.failure_threshold, 5);
    set::<Duration>(&mut breaker.timeout, A_MINUTE);
    operational
}

/// A proxy's telemetry has the same keys.
fn telemetry(inputs: &Inputs) -> Result<Option<Telemetry>, FieldError> {
    let Some(telemetry) = inputs.telemetry.telemetry(&inputs.identity) else { return Ok(None) };
    let invalid = |error: serde_json::Error| FieldError::new("telemetryConfigRef", error.to_string());
    let value = serde_json::to_value(telemetry).map_err(invalid)?;
    Telemetry::deserialize(value).map(Some).map_err(invalid)
}

/// An EmbeddingServer enables the search, and overrides a service in the spec.
fn optimizer(inputs: &Inputs, declared: Option<Optimizer>) -> Option<Optimizer> {
    let Some(server) = object(&inputs.embedding) else { return declared };
    let name = server.metadata.name.as_deref().unwrap_or_default();
    let service = service_url(name, &inputs.identity.namespace, server.spec.port());
    Some(Optimizer { embedding_service: Some(service), ..declared.unwrap_or_default() })
}

fn session_storage(inputs: &Inputs) -> Option<SessionStorageConfig> {
    let redis = session_storage::redis(inputs.spec().session_storage.as_ref(), &inputs.settings)?;
    Some(SessionStorageConfig {
        provider: SessionProvider::Redis,
        address: Some(redis.address),
        db: Some(redis.db).filter(|db| *db != 0),
        key_prefix: Some(redis.key_prefix).filter(|prefix| !prefix.is_empty()),
    })
}
