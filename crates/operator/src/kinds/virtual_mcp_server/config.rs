//! The file that tells a virtual MCP server what to do.

use std::time::Duration;

use serde::{Serialize, de::DeserializeOwned};
use skep_api::{
    kinds::OutgoingAuthSource,
    rate_limit,
    vmcp::{ConflictResolution, WorkloadTools},
    workload::SessionProvider,
};
use skep_config::{
    duration,
    run_config::{Audit, Telemetry},
    vmcp::{
        Aggregation, Bucket, CircuitBreaker, CompositeTool, Config, FailureHandling, Operational, Optimizer,
        RateLimits, RefillPeriod, SessionStorage, Timeouts, ToolLimits,
    },
};

use super::{backends::backends, inputs::Inputs};
use crate::{build::service_url, driver::Blocked, parts, reference::object};

/// What a tool's name gets before it, unless something else is said.
const PREFIX_FORMAT: &str = "{workload}_";
/// How often backends are checked, and how long a call may take, unless something else is said.
pub(super) const HALF_A_MINUTE: Duration = Duration::from_secs(30);
const A_MINUTE: Duration = Duration::from_secs(60);

/// The configuration of the server.
pub(super) fn config(inputs: &Inputs) -> Result<Config, Blocked> {
    let said = inputs.config();
    let spec = inputs.spec();
    let source = inputs.source();
    let own_headers = !spec.passthrough_headers.is_empty();
    let headers = if own_headers { &spec.passthrough_headers } else { &said.passthrough_headers };
    Ok(Config {
        name: inputs.identity.name.clone(),
        group_ref: inputs.group.name.clone(),
        backends: match source {
            OutgoingAuthSource::Inline => backends(inputs),
            OutgoingAuthSource::Discovered => part("backends", &said.backends)?,
        },
        incoming_auth: Some(inputs.incoming_auth()?),
        outgoing_auth: Some(inputs.ways.outgoing_auth(source)),
        aggregation: Some(aggregation(inputs)?),
        composite_tools: composite_tools(inputs)?,
        composite_tool_refs: part("compositeToolRefs", &said.composite_tool_refs)?,
        operational: Some(operational(part("operational", &said.operational)?)),
        metadata: said.metadata.clone(),
        telemetry: telemetry(inputs),
        audit: audit(inputs, part("audit", &said.audit)?),
        optimizer: optimizer(inputs, part("optimizer", &said.optimizer)?),
        code_mode: part("codeMode", &said.code_mode)?,
        session_storage: session_storage(inputs),
        rate_limiting: said.rate_limiting.as_ref().map(rate_limiting).transpose()?,
        passthrough_headers: headers.clone(),
    })
}

/// A part that is passed on: it has the same keys in the file. Durations are written in one way there.
fn part<T: DeserializeOwned>(field: &str, said: &impl Serialize) -> Result<T, Blocked> {
    let value = serde_json::to_value(said).map_err(Blocked::new)?;
    serde_path_to_error::deserialize(value)
        .map_err(|error| Blocked::new(format!("config.{field}.{}: {}", error.path(), error.inner())))
}

fn aggregation(inputs: &Inputs) -> Result<Aggregation, Blocked> {
    let said = inputs.config().aggregation.unwrap_or_default();
    let way = said.conflict_resolution.unwrap_or_default();
    let mut made: Aggregation = part("aggregation", &said)?;
    made.conflict_resolution = way.as_str().into();
    // The process asks for the details even where there are none.
    let details = made.conflict_resolution_config.get_or_insert_default();
    if said.conflict_resolution_config.is_none() && way == ConflictResolution::Prefix {
        details.prefix_format = PREFIX_FORMAT.into();
    }
    for (made, said) in made.tools.iter_mut().zip(&said.tools) {
        *made = part("aggregation.tools", &with_tool_config(inputs, said))?;
        made.tool_config_ref = None;
    }
    Ok(made)
}

/// The tools of a backend, with what an MCPToolConfig says of those that the object says nothing of.
fn with_tool_config(inputs: &Inputs, said: &WorkloadTools) -> WorkloadTools {
    let mut tools = said.clone();
    let reference =
        said.tool_config_ref.as_ref().and_then(|reference| inputs.tool_configs.get(&reference.name));
    let Some(config) = reference.and_then(|reference| reference.object()) else { return tools };
    if tools.filter.is_empty() {
        tools.filter = parts::tools::tools_filter(&config.spec);
    }
    for (tool, change) in &config.spec.tools_override {
        tools.overrides.entry(tool.clone()).or_insert_with(|| change.clone());
    }
    tools
}

fn composite_tools(inputs: &Inputs) -> Result<Vec<CompositeTool>, Blocked> {
    let mut all: Vec<CompositeTool> = part("compositeTools", &inputs.config().composite_tools)?;
    for definition in inputs.composite_tools.iter().filter_map(|reference| reference.object()) {
        all.push(part("compositeToolRefs", &definition.spec.tool)?);
    }
    Ok(all)
}

/// What is said, with its gaps filled.
fn operational(said: Option<Operational>) -> Operational {
    let mut made = said.unwrap_or_default();
    let timeouts: &mut Timeouts = made.timeouts.get_or_insert_default();
    or(&mut timeouts.default, HALF_A_MINUTE);
    let handling: &mut FailureHandling = made.failure_handling.get_or_insert_default();
    or(&mut handling.health_check_interval, HALF_A_MINUTE);
    or(&mut handling.unhealthy_threshold, 3);
    or(&mut handling.status_reporting_interval, HALF_A_MINUTE);
    or(&mut handling.partial_failure_mode, "fail".into());
    let breaker: &mut CircuitBreaker = handling.circuit_breaker.get_or_insert_default();
    or(&mut breaker.failure_threshold, 5);
    or(&mut breaker.timeout, A_MINUTE);
    made
}

/// Fills a gap.
fn or<T: Default + PartialEq>(field: &mut T, default: T) {
    if *field == T::default() {
        *field = default;
    }
}

fn telemetry(inputs: &Inputs) -> Option<Telemetry> {
    let reference = inputs.spec().telemetry_config_ref.as_ref()?;
    Some(parts::telemetry::telemetry(&object(&inputs.telemetry)?.spec, reference, &inputs.identity))
}

fn audit(inputs: &Inputs, said: Option<Audit>) -> Option<Audit> {
    let mut made = said?;
    or(&mut made.component, inputs.identity.name.clone());
    Some(made)
}

/// An EmbeddingServer turns the search on, and goes before a service that is named.
fn optimizer(inputs: &Inputs, said: Option<Optimizer>) -> Option<Optimizer> {
    let Some(server) = object(&inputs.embedding) else { return said };
    let name = server.metadata.name.as_deref().unwrap_or_default();
    let embedding_service = service_url(name, &inputs.identity.namespace, server.spec.port());
    Some(Optimizer { embedding_service, ..said.unwrap_or_default() })
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
        // Sessions that are to stay in memory do; those of which nothing is said go to the installation's Redis.
        Some(_) => None,
        None => {
            let address = inputs.settings.default_redis.clone()?;
            Some(SessionStorage { provider: REDIS.into(), address, ..SessionStorage::default() })
        }
    }
}

fn rate_limiting(said: &rate_limit::RateLimiting) -> Result<RateLimits, Blocked> {
    let tool = |tool: &rate_limit::ToolRateLimit| {
        Ok(ToolLimits {
            name: tool.name.clone(),
            shared: tool.shared.as_ref().map(bucket).transpose()?,
            per_user: tool.per_user.as_ref().map(bucket).transpose()?,
        })
    };
    Ok(RateLimits {
        shared: said.shared.as_ref().map(bucket).transpose()?,
        per_user: said.per_user.as_ref().map(bucket).transpose()?,
        tools: said.tools.iter().map(tool).collect::<Result<_, Blocked>>()?,
    })
}

fn bucket(said: &rate_limit::RateLimitBucket) -> Result<Bucket, Blocked> {
    let period = duration::parse(said.refill_period.as_str())
        .map_err(|error| Blocked::new(format!("config.rateLimiting: refillPeriod: {error}")))?;
    Ok(Bucket { max_tokens: said.max_tokens, refill_period: RefillPeriod { duration: period } })
}
