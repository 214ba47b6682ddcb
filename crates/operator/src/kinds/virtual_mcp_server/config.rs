//! The configuration file of a virtual MCP server.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use skep_api::{
    kinds::OutgoingAuthSource,
    rate_limit,
    vmcp::{ConflictResolution, WorkloadTools},
    workload::SessionProvider,
};
use skep_config::{
    FieldError, FieldPath, duration,
    run_config::{Audit, Telemetry},
    vmcp::{
        Aggregation, Bucket, CircuitBreaker, CompositeTool, Config, FailureHandling, Operational, Optimizer,
        RateLimits, RefillPeriod, SessionStorage, Timeouts, ToolLimits,
    },
};

use super::{backend_auth::BackendAuths, backends::backends, inputs::Inputs};
use crate::{build::service_url, config_refs, reconcile::BuildError, resources::object};

/// The default prefix of tool names.
const PREFIX_FORMAT: &str = "{workload}_";
/// The default interval of health checks, and the default timeout of calls.
pub(super) const HALF_A_MINUTE: Duration = Duration::from_secs(30);
const A_MINUTE: Duration = Duration::from_secs(60);

/// The configuration of the server.
pub(super) fn config(inputs: &Inputs) -> Result<Config, BuildError> {
    let declared = inputs.config();
    let spec = inputs.spec();
    let source = inputs.source();
    let own_headers = !spec.passthrough_headers.is_empty();
    let headers = if own_headers { &spec.passthrough_headers } else { &declared.passthrough_headers };
    Ok(Config {
        name: inputs.identity.name.clone(),
        group_ref: inputs.group.name.clone(),
        backends: match source {
            OutgoingAuthSource::Inline => backends(inputs),
            OutgoingAuthSource::Discovered => part("backends", &declared.backends)?,
        },
        incoming_auth: Some(inputs.incoming_auth()?),
        outgoing_auth: Some(BackendAuths::new(inputs).outgoing_auth(source)),
        aggregation: Some(aggregation(inputs)?),
        composite_tools: composite_tools(inputs)?,
        composite_tool_refs: part("compositeToolRefs", &declared.composite_tool_refs)?,
        operational: Some(operational(part("operational", &declared.operational)?)),
        metadata: declared.metadata.clone(),
        telemetry: telemetry(inputs),
        audit: audit(inputs, part("audit", &declared.audit)?),
        optimizer: optimizer(inputs, part("optimizer", &declared.optimizer)?),
        code_mode: part("codeMode", &declared.code_mode)?,
        session_storage: session_storage(inputs),
        rate_limiting: declared.rate_limiting.as_ref().map(rate_limiting).transpose()?,
        passthrough_headers: headers.clone(),
    })
}

/// A part that the file has with the same keys. Durations are normalised there.
fn part<T: DeserializeOwned>(field: &str, declared: &impl Serialize) -> Result<T, BuildError> {
    let value = serde_json::to_value(declared).map_err(BuildError::new)?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = FieldPath::from("config").join(field.to_owned());
        FieldError::new(error.path(), error.inner().to_string()).within(field).into()
    })
}

fn aggregation(inputs: &Inputs) -> Result<Aggregation, BuildError> {
    let declared = inputs.config().aggregation.unwrap_or_default();
    let resolution = declared.conflict_resolution.unwrap_or_default();
    let mut built: Aggregation = part("aggregation", &declared)?;
    built.conflict_resolution = resolution.as_str().into();
    // The server requires the details, even if they are empty.
    let details = built.conflict_resolution_config.get_or_insert_default();
    if declared.conflict_resolution_config.is_none() && resolution == ConflictResolution::Prefix {
        details.prefix_format = PREFIX_FORMAT.into();
    }
    for (built, declared) in built.tools.iter_mut().zip(&declared.tools) {
        *built = part("aggregation.tools", &with_tool_config(inputs, declared))?;
        built.tool_config_ref = None;
    }
    Ok(built)
}

/// The tools of a backend, completed by its MCPToolConfig.
fn with_tool_config(inputs: &Inputs, declared: &WorkloadTools) -> WorkloadTools {
    let mut tools = declared.clone();
    let reference =
        declared.tool_config_ref.as_ref().and_then(|reference| inputs.tool_configs.get(&reference.name));
    let Some(config) = reference.and_then(|reference| reference.object()) else { return tools };
    if tools.filter.is_empty() {
        tools.filter = config_refs::tools::tools_filter(&config.spec);
    }
    for (tool, change) in &config.spec.tools_override {
        tools.overrides.entry(tool.clone()).or_insert_with(|| change.clone());
    }
    tools
}

fn composite_tools(inputs: &Inputs) -> Result<Vec<CompositeTool>, BuildError> {
    let mut all: Vec<CompositeTool> = part("compositeTools", &inputs.config().composite_tools)?;
    for definition in inputs.composite_tools.iter().filter_map(|reference| reference.object()) {
        all.push(part("compositeToolRefs", &definition.spec.tool)?);
    }
    Ok(all)
}

/// The operational settings, with defaults.
fn operational(declared: Option<Operational>) -> Operational {
    let mut built = declared.unwrap_or_default();
    let timeouts: &mut Timeouts = built.timeouts.get_or_insert_default();
    or(&mut timeouts.default, HALF_A_MINUTE);
    let handling: &mut FailureHandling = built.failure_handling.get_or_insert_default();
    or(&mut handling.health_check_interval, HALF_A_MINUTE);
    or(&mut handling.unhealthy_threshold, 3);
    or(&mut handling.status_reporting_interval, HALF_A_MINUTE);
    or(&mut handling.partial_failure_mode, "fail".into());
    let breaker: &mut CircuitBreaker = handling.circuit_breaker.get_or_insert_default();
    or(&mut breaker.failure_threshold, 5);
    or(&mut breaker.timeout, A_MINUTE);
    built
}

/// Sets a default.
fn or<T: Default + PartialEq>(field: &mut T, default: T) {
    if *field == T::default() {
        *field = default;
    }
}

fn telemetry(inputs: &Inputs) -> Option<Telemetry> {
    let reference = inputs.spec().telemetry_config_ref.as_ref()?;
    Some(config_refs::telemetry::telemetry(&object(&inputs.telemetry)?.spec, reference, &inputs.identity))
}

fn audit(inputs: &Inputs, declared: Option<Audit>) -> Option<Audit> {
    let mut built = declared?;
    or(&mut built.component, inputs.identity.name.clone());
    Some(built)
}

/// An EmbeddingServer enables the search, and overrides a service in the spec.
fn optimizer(inputs: &Inputs, declared: Option<Optimizer>) -> Option<Optimizer> {
    let Some(server) = object(&inputs.embedding) else { return declared };
    let name = server.metadata.name.as_deref().unwrap_or_default();
    let embedding_service = service_url(name, &inputs.identity.namespace, server.spec.port());
    Some(Optimizer { embedding_service, ..declared.unwrap_or_default() })
}

fn session_storage(inputs: &Inputs) -> Option<SessionStorage> {
    const REDIS: &str = SessionProvider::Redis.as_str();
    match &inputs.spec().session_storage {
        Some(storage) if storage.provider == SessionProvider::Redis => Some(SessionStorage {
            provider: REDIS.into(),
            address: storage.address.clone().unwrap_or_default(),
            db: storage.db.unwrap_or_default(),
            key_prefix: storage.key_prefix.clone().unwrap_or_default(),
        }),
        // An explicit memory is respected; without sessionStorage, the installation's Redis is used.
        Some(_) => None,
        None => {
            let address = inputs.settings.default_redis.clone()?;
            Some(SessionStorage { provider: REDIS.into(), address, ..SessionStorage::default() })
        }
    }
}

fn rate_limiting(declared: &rate_limit::RateLimiting) -> Result<RateLimits, BuildError> {
    let tool = |tool: &rate_limit::ToolRateLimit| {
        Ok(ToolLimits {
            name: tool.name.clone(),
            shared: tool.shared.as_ref().map(bucket).transpose()?,
            per_user: tool.per_user.as_ref().map(bucket).transpose()?,
        })
    };
    Ok(RateLimits {
        shared: declared.shared.as_ref().map(bucket).transpose()?,
        per_user: declared.per_user.as_ref().map(bucket).transpose()?,
        tools: declared.tools.iter().map(tool).collect::<Result<_, BuildError>>()?,
    })
}

fn bucket(declared: &rate_limit::RateLimitBucket) -> Result<Bucket, BuildError> {
    let period = duration::parse(declared.refill_period.as_str())
        .map_err(|error| FieldError::new("config.rateLimiting", error.to_string()))?;
    Ok(Bucket { max_tokens: declared.max_tokens, refill_period: RefillPeriod { duration: period } })
}
