//! The status of a VirtualMCPServer.
//!
//! It has two writers. Each applies its own fields by server-side apply, so that neither undoes the other:
//!
//! | writer | fields |
//! | --- | --- |
//! | this operator | `observedGeneration`, `phase`, `message`, `url`, `replicas`, `selector`, the hashes, and all other conditions |
//! | the running pods | `discoveredBackends`, `backendCount`, and the conditions `BackendsDiscovered`, `Degraded` and `CompositeToolsOffered` |
//!
//! Conditions are a list that is merged by `type`, and each type has one of the two as its owner. The operator computes the
//! phase from what the pods report of the backends.

use serde_json::{Value, json};
use skep_api::{
    conditions::{CompositeToolsOffered, Ready, Reason},
    kinds::{DiscoveredBackend, VirtualMCPServerPhase, VirtualMCPServerStatus},
};
use skep_config::ports;

use super::inputs::Inputs;
use crate::{
    build::service_url,
    proxy_workload::{NotReady, PodsState, pods_state, running_message},
    reconcile::{Condition, Outcome},
};

/// The status fields that the controller owns.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome) -> (VirtualMCPServerStatus, Vec<Condition>) {
    let State { phase, reason, message } = state(inputs, outcome);
    let text = match phase {
        VirtualMCPServerPhase::Ready => "the server serves requests".to_owned(),
        _ => message.clone(),
    };
    // While a problem keeps it from running, the reason is that of the problem's own condition.
    let ready = Condition { type_: Ready::TYPE.into(), ..Condition::new(reason, text) };
    let status = VirtualMCPServerStatus {
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(service_url(&inputs.service(), &inputs.identity.namespace, ports::VMCP.into())),
        replicas: inputs.deployment.as_ref().map(|facts| facts.replicas).filter(|replicas| *replicas > 0),
        selector: Some(inputs.identity.selector()),
        authz_config_hash: inputs.policies.reference.hash(),
        oidc_config_hash: inputs.oidc.hash(),
        telemetry_config_hash: inputs.telemetry.hash(),
        // backendCount and discoveredBackends are the pods' own.
        ..VirtualMCPServerStatus::default()
    };
    (status, vec![ready])
}

/// The conditions that the running pods report.
const CONDITIONS_OF_PODS: [&str; 3] = ["BackendsDiscovered", "Degraded", CompositeToolsOffered::TYPE];

/// The status fields that the running pods report.
pub(super) fn reported_by_pods() -> Value {
    let key = |type_: &str| (format!("k:{}", json!({"type": type_})), json!({}));
    let conditions: Value = CONDITIONS_OF_PODS.into_iter().map(key).collect();
    json!({"f:discoveredBackends": {}, "f:backendCount": {}, "f:conditions": conditions})
}

/// The phase, the reason of the condition `Ready`, and why the phase is not Ready.
struct State {
    phase: VirtualMCPServerPhase,
    reason: Reason,
    message: String,
}

impl State {
    fn new(phase: VirtualMCPServerPhase, reason: impl Into<Reason>, message: impl Into<String>) -> Self {
        Self { phase, reason: reason.into(), message: message.into() }
    }
}

fn state(inputs: &Inputs, outcome: &Outcome) -> State {
    match outcome {
        Outcome::Blocked(problem) => {
            let transient = problem.transient;
            let phase =
                if transient { VirtualMCPServerPhase::Pending } else { VirtualMCPServerPhase::Failed };
            State::new(phase, problem.reason.unwrap_or_else(|| Ready::NotApplied.into()), problem.to_string())
        }
        Outcome::Failed(error) => {
            State::new(VirtualMCPServerPhase::Failed, Ready::DeploymentFailed, error.to_string())
        }
        Outcome::Converged(_) => state_of_pods(inputs),
    }
}

fn state_of_pods(inputs: &Inputs) -> State {
    let pending =
        |message: &str| State::new(VirtualMCPServerPhase::Pending, Ready::DeploymentNotReady, message);
    match pods_state(inputs.deployment.as_ref(), &inputs.pods, "server") {
        PodsState::ScaledToZero => pending("scaled to zero"),
        PodsState::NotReady(NotReady::Blocked(message) | NotReady::Starting(message)) => pending(&message),
        PodsState::NotReady(NotReady::Failed(message)) => {
            State::new(VirtualMCPServerPhase::Failed, Ready::DeploymentFailed, message)
        }
        PodsState::Running => {
            let status = inputs.object.status.as_ref();
            let backends = status.map(|status| status.discovered_backends.as_slice()).unwrap_or_default();
            let State { phase, reason, message } = state_of_backends(backends);
            State { phase, reason, message: running_message(&message, &inputs.pods, "server") }
        }
    }
}

/// Whether all backends that the pods know are reachable.
fn state_of_backends(backends: &[DiscoveredBackend]) -> State {
    let is_unreachable = |backend: &&DiscoveredBackend| {
        !matches!(backend.status.as_deref(), Some("ready" | "unauthenticated"))
    };
    let mut names: Vec<&str> =
        backends.iter().filter(is_unreachable).map(|backend| backend.name.as_str()).collect();
    // Another order of a report is not another state.
    names.sort_unstable();
    if names.is_empty() {
        let message = "Virtual MCP server is running";
        return State::new(VirtualMCPServerPhase::Ready, Ready::DeploymentReady, message);
    }
    let is_all = names.len() == backends.len();
    let reason = if is_all { Ready::BackendsUnavailable } else { Ready::BackendsDegraded };
    let message = format!("unreachable backends: {}", names.join(", "));
    State::new(VirtualMCPServerPhase::Degraded, reason, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_follows_the_backends() {
        let phase = |states: &[&str]| {
            let backend = |(index, state): (usize, &&str)| DiscoveredBackend {
                name: format!("b{index}"),
                status: Some((*state).into()),
                ..DiscoveredBackend::default()
            };
            let backends: Vec<_> = states.iter().enumerate().map(backend).collect();
            let state = state_of_backends(&backends);
            (state.phase, state.reason.reason)
        };
        let of = |phase, reason| (phase, reason);
        assert_eq!(phase(&[]), of(VirtualMCPServerPhase::Ready, "DeploymentReady"));
        assert_eq!(phase(&["ready", "unauthenticated"]), of(VirtualMCPServerPhase::Ready, "DeploymentReady"));
        assert_eq!(phase(&["ready", "degraded"]), of(VirtualMCPServerPhase::Degraded, "BackendsDegraded"));
        assert_eq!(phase(&["unavailable"]), of(VirtualMCPServerPhase::Degraded, "BackendsUnavailable"));
    }
}
