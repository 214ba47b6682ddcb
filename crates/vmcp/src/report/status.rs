//! The fields of the status that are the pods' own. Nothing here does I/O.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use skep_api::kinds::VirtualMCPServerStatus;

use crate::{
    backend::{Backend, Circuit, Status},
    views::Backends,
};

const DISCOVERED: &str = "BackendsDiscovered";
const DEGRADED: &str = "Degraded";

/// The fields, if they are not what the live status has.
pub(super) fn changed(live: &VirtualMCPServerStatus, backends: &Backends, now: Timestamp) -> Option<Value> {
    let states: Vec<Value> = backends.values().map(|backend| state(backend)).collect();
    let is_usable = |backend: &&Arc<Backend>| {
        matches!(backend.health().status, Status::Healthy | Status::Degraded | Status::Unauthenticated)
    };
    let count = backends.values().filter(is_usable).count();
    let live = serde_json::to_value(live).unwrap_or_default();
    let list = |field: &str| live[field].as_array().cloned().unwrap_or_default();
    let is_own = |condition: &Value| [DISCOVERED, DEGRADED].iter().any(|type_| condition["type"] == *type_);
    let written: Vec<Value> = list("conditions").into_iter().filter(is_own).collect();
    let conditions = conditions(&written, backends, now);
    let is_same =
        live["backendCount"] == count && list("discoveredBackends") == states && written == conditions;
    (!is_same).then(|| json!({"backendCount": count, "discoveredBackends": states, "conditions": conditions}))
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

fn conditions(written: &[Value], backends: &Backends, now: Timestamp) -> Vec<Value> {
    let degraded: Vec<&str> = backends
        .values()
        .filter(|backend| backend.health().status == Status::Degraded)
        .map(|backend| &*backend.name)
        .collect();
    let known = format!("the server has {} backends", backends.len());
    let mut conditions = vec![(DISCOVERED, "BackendsDiscovered", known)];
    if !degraded.is_empty() {
        let message = format!("backends are slow, or only just back: {}", degraded.join(", "));
        conditions.push((DEGRADED, "BackendsDegraded", message));
    }
    // The time is that of the change from another status.
    let since = |type_: &str| {
        let known =
            written.iter().find(|condition| condition["type"] == type_ && condition["status"] == "True");
        known.and_then(|condition| condition["lastTransitionTime"].as_str()).map(str::to_owned)
    };
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let condition = |(type_, reason, message): (&str, &str, String)| {
        let since = since(type_).unwrap_or_else(|| now.clone());
        json!({"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since})
    };
    conditions.into_iter().map(condition).collect()
}
