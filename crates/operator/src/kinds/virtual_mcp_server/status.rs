//! What is said of a VirtualMCPServer.
//!
//! Two write its status, each by server-side apply of its own fields, so that neither undoes the other:
//!
//! | who | what |
//! | --- | --- |
//! | this operator | `observedGeneration`, `phase`, `message`, `url`, `replicas`, `selector`, the hashes, and every condition but two |
//! | the running pods | `discoveredBackends`, `backendCount`, and the conditions `BackendsDiscovered` and `Degraded` |
//!
//! Conditions are a list that is merged by `type`, and each type has one of the two as its owner. The phase depends on
//! the backends: the operator reads what the pods have written, and computes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{DiscoveredBackend, VirtualMCPServerPhase, VirtualMCPServerStatus};
use skep_config::ports;
use skep_converge::Child;
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    build::service_url,
    conditions::{Finding, conditions},
    driver::Outcome,
    proxied::{NotReady, Pods, hash, pods_together},
    watched::VirtualServers,
};

/// The status fields that the controller owns.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
    let State { phase, reason, message } = state(inputs, outcome);
    let mut found = inputs.found.findings.conditions.clone();
    found.push(match phase {
        VirtualMCPServerPhase::Ready => Finding::yes("Ready", reason, "the server answers requests"),
        _ => Finding::no("Ready", reason, message.clone()),
    });
    let before = inputs.object.status.clone().unwrap_or_default();
    let (namespace, name) = (inputs.identity.namespace.clone(), inputs.identity.name.clone());
    let status = VirtualMCPServerStatus {
        observed_generation: Some(inputs.generation()),
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(service_url(&inputs.service(), &namespace, ports::VMCP.into())),
        replicas: inputs.deployment.as_ref().map(|facts| facts.replicas).filter(|replicas| *replicas > 0),
        selector: Some(inputs.identity.selector()),
        authz_config_hash: hash(&inputs.authz, |config| &config.spec),
        oidc_config_hash: hash(&inputs.oidc, |config| &config.spec),
        telemetry_config_hash: hash(&inputs.telemetry, |config| &config.spec),
        conditions: conditions(found, &before.conditions, inputs.generation(), now),
        // The pods' own.
        backend_count: None,
        discovered_backends: Vec::new(),
    };
    Child::status(VirtualServers::KIND, namespace, name, json!(status))
}

/// Where the server is in its life, and why, in a word and in a sentence.
struct State {
    phase: VirtualMCPServerPhase,
    reason: String,
    message: String,
}

impl State {
    fn new(phase: VirtualMCPServerPhase, reason: &str, message: impl Into<String>) -> Self {
        Self { phase, reason: reason.into(), message: message.into() }
    }
}

fn state(inputs: &Inputs, outcome: &Outcome) -> State {
    match outcome {
        Outcome::Blocked(blocked) => {
            let waits = inputs.found.waits;
            let phase = if waits { VirtualMCPServerPhase::Pending } else { VirtualMCPServerPhase::Failed };
            State::new(phase, broken(inputs, &blocked.message), blocked.message.clone())
        }
        Outcome::Failed(error) => {
            State::new(VirtualMCPServerPhase::Failed, "DeploymentFailed", error.to_string())
        }
        Outcome::Converged(_) => state_of_pods(inputs),
    }
}

/// The reason of the condition that says the same.
fn broken<'a>(inputs: &'a Inputs, message: &str) -> &'a str {
    let mut conditions = inputs.found.findings.conditions.iter();
    let broken = conditions.find(|finding| !finding.holds && finding.message == message);
    broken.map_or("NotApplied", |finding| &finding.reason)
}

fn state_of_pods(inputs: &Inputs) -> State {
    let pending = |message: &str| State::new(VirtualMCPServerPhase::Pending, "DeploymentNotReady", message);
    match pods_together(inputs.deployment.as_ref(), &inputs.pods, "server") {
        Pods::None => pending("scaled to zero"),
        Pods::NotReady(NotReady::Stuck(message) | NotReady::OnTheirWay(message)) => pending(&message),
        Pods::NotReady(NotReady::Failed(message)) => {
            State::new(VirtualMCPServerPhase::Failed, "DeploymentFailed", message)
        }
        Pods::Running => {
            let status = inputs.object.status.as_ref();
            state_of_backends(status.map(|status| status.discovered_backends.as_slice()).unwrap_or_default())
        }
    }
}

/// Whether all backends that the pods know take requests.
fn state_of_backends(backends: &[DiscoveredBackend]) -> State {
    let unreachable = |backend: &&DiscoveredBackend| {
        !matches!(backend.status.as_deref(), Some("ready" | "unauthenticated"))
    };
    let names: Vec<&str> = backends.iter().filter(unreachable).map(|backend| backend.name.as_str()).collect();
    if names.is_empty() {
        return State::new(VirtualMCPServerPhase::Ready, "DeploymentReady", "");
    }
    let reason = if names.len() == backends.len() { "BackendsUnavailable" } else { "BackendsDegraded" };
    let message = format!("backends cannot be reached: {}", names.join(", "));
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
            (state.phase, state.reason)
        };
        let of = |phase, reason: &str| (phase, reason.to_owned());
        assert_eq!(phase(&[]), of(VirtualMCPServerPhase::Ready, "DeploymentReady"));
        assert_eq!(phase(&["ready", "unauthenticated"]), of(VirtualMCPServerPhase::Ready, "DeploymentReady"));
        assert_eq!(phase(&["ready", "degraded"]), of(VirtualMCPServerPhase::Degraded, "BackendsDegraded"));
        assert_eq!(phase(&["unavailable"]), of(VirtualMCPServerPhase::Degraded, "BackendsUnavailable"));
    }
}
