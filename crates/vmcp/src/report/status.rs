//! The fields of the status that are the pods' own. Nothing here does I/O.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use skep_api::{
    conditions::{CompositeToolsOffered, Reason},
    kinds::VirtualMCPServerStatus,
};

use super::tools::ToolsOf;
use crate::{
    backend::{Backend, Circuit, Status},
    catalog::{Catalog, LeftOut},
    views::Backends,
};

/// How many composite tools a message names.
const NAMED: usize = 20;

const DISCOVERED: &str = "BackendsDiscovered";
const DEGRADED: &str = "Degraded";

/// The fields, if they are not what the live status has.
pub(super) fn changed(
    live: &VirtualMCPServerStatus,
    backends: &Backends,
    states: Vec<Value>,
    left_out: Option<&[LeftOut]>,
    now: Timestamp,
) -> Option<Value> {
    let is_usable = |backend: &&Arc<Backend>| {
        matches!(backend.health().status, Status::Healthy | Status::Degraded | Status::Unauthenticated)
    };
    let count = backends.values().filter(is_usable).count();
    let live = serde_json::to_value(live).unwrap_or_default();
    let list = |field: &str| live[field].as_array().cloned().unwrap_or_default();
    let is_own = |condition: &Value| {
        [DISCOVERED, DEGRADED, CompositeToolsOffered::TYPE].iter().any(|type_| condition["type"] == *type_)
    };
    // The API server keeps the order in which they first came.
    let sorted = |mut conditions: Vec<Value>| {
        conditions.sort_by_key(|condition| condition["type"].to_string());
        conditions
    };
    let written: Vec<Value> = sorted(list("conditions").into_iter().filter(is_own).collect());
    let conditions = sorted(conditions(&written, backends, left_out, now));
    let is_same =
        live["backendCount"] == count && list("discoveredBackends") == states && written == conditions;
    (!is_same).then(|| json!({"backendCount": count, "discoveredBackends": states, "conditions": conditions}))
}

/// The states of all backends, with the tools that come from each.
pub(super) fn states(backends: &Backends, catalog: Option<&Catalog>) -> Vec<Value> {
    let mut tools = catalog.map(ToolsOf::new);
    let each = backends.values().map(|backend| {
        let mut state = state(backend);
        if backend.offered().is_some()
            && let Some(tools) = &mut tools
        {
            tools.describe(&backend.name, &mut state);
        }
        state
    });
    each.collect()
}

/// The state of one backend. Times and counts are left out: they change with every check, and each would be a write.
fn state(backend: &Backend) -> Value {
    let health = backend.health();
    let status = match health.status {
        Status::Healthy => "ready",
        Status::Degraded => "degraded",
        Status::Unhealthy => "unavailable",
        Status::Unauthenticated => "unauthenticated",
        Status::Unknown => "unknown",
    };
    let mut state = json!({
        "name": &*backend.name,
        "url": backend.blueprint.url,
        "status": status,
        "authType": backend.credentials.kind(),
        "circuitBreakerState": health.circuit.as_str(),
    });
    if let Some(name) = &backend.blueprint.auth_config {
        state["authConfigRef"] = name.as_str().into();
    }
    if let Some(revision) = backend.revision() {
        state["mcpRevision"] = revision.name().into();
    }
    if health.circuit == Circuit::Open {
        state["message"] = "the circuit breaker is open: no requests are sent".into();
    } else if !health.category.is_empty() {
        state["message"] = health.category.into();
    }
    state
}

/// One condition, before it has a time.
struct Condition {
    type_: &'static str,
    is_met: bool,
    reason: &'static str,
    message: String,
}

fn conditions(
    written: &[Value],
    backends: &Backends,
    left_out: Option<&[LeftOut]>,
    now: Timestamp,
) -> Vec<Value> {
    let degraded: Vec<&str> = backends
        .values()
        .filter(|backend| backend.health().status == Status::Degraded)
        .map(|backend| &*backend.name)
        .collect();
    let met = |type_, reason, message| Condition { type_, is_met: true, reason, message };
    let known = format!("the server has {} backends", backends.len());
    let mut conditions = vec![met(DISCOVERED, "BackendsDiscovered", known)];
    if !degraded.is_empty() {
        let message = format!("backends are slow, or only just back: {}", degraded.join(", "));
        conditions.push(met(DEGRADED, "BackendsDegraded", message));
    }
    conditions.extend(left_out.map(composites));
    // The time is that of the change from another status.
    let since = |type_: &str, status: &str| {
        let known =
            written.iter().find(|condition| condition["type"] == type_ && condition["status"] == status);
        known.and_then(|condition| condition["lastTransitionTime"].as_str()).map(str::to_owned)
    };
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let condition = |Condition { type_, is_met, reason, message }| {
        let status = if is_met { "True" } else { "False" };
        let since = since(type_, status).unwrap_or_else(|| now.clone());
        json!({"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    };
    conditions.into_iter().map(condition).collect()
}

/// Whether clients see all composite tools.
fn composites(left_out: &[LeftOut]) -> Condition {
    let reason = match left_out {
        [] => CompositeToolsOffered::AllCompositeToolsOffered,
        _ => CompositeToolsOffered::CompositeToolsNotOffered,
    };
    let reason = Reason::from(reason);
    let each = left_out.iter().take(NAMED).map(|LeftOut { tool, reason }| format!("{tool}: {reason}"));
    let others = left_out.len().saturating_sub(NAMED);
    let others = (others > 0).then(|| format!("and {others} others"));
    let message = each.chain(others).collect::<Vec<_>>().join("; ");
    let message = if message.is_empty() { "clients see all composite tools".to_owned() } else { message };
    Condition { type_: reason.type_, is_met: reason.met, reason: reason.reason, message }
}
