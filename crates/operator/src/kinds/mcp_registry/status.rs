//! The status of an MCPRegistry.

use skep_api::{
    conditions::Ready,
    kinds::{MCPRegistryPhase, MCPRegistryStatus},
};
use skep_converge::Error;

use super::{inputs::Inputs, pod::PORT};
use crate::reconcile::{Condition, Outcome};

/// The whole status: it has no other writer.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome) -> (MCPRegistryStatus, Vec<Condition>) {
    let (phase, reason, message) = state(inputs, outcome);
    let ready = match phase {
        MCPRegistryPhase::Ready => Condition::new(reason, "the registry serves requests"),
        _ => Condition::new(reason, message.clone()),
    };
    let was_served = inputs.object.status.as_ref().is_some_and(|status| status.url.is_some());
    let status = MCPRegistryStatus {
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        // It is published once requests are served there.
        url: (was_served || phase == MCPRegistryPhase::Ready)
            .then(|| format!("http://{}.{}:{PORT}", inputs.server(), inputs.identity.namespace)),
        ready_replicas: inputs.live.as_ref().map(|live| live.ready).filter(|ready| *ready > 0),
        ..MCPRegistryStatus::default()
    };
    (status, vec![ready])
}

/// The phase, the reason of the condition `Ready`, and why the phase is not Ready.
fn state(inputs: &Inputs, outcome: &Outcome) -> (MCPRegistryPhase, Ready, String) {
    match outcome {
        Outcome::Blocked(problem) => {
            let reason = if problem.transient { Ready::NotReady } else { Ready::ValidationFailed };
            (MCPRegistryPhase::Failed, reason, problem.to_string())
        }
        Outcome::Failed(error) => (MCPRegistryPhase::Failed, failed_child(error), error.to_string()),
        Outcome::Converged(_) => match &inputs.live {
            Some(live) if live.ready > 0 => (MCPRegistryPhase::Ready, Ready::Ready, String::new()),
            Some(live) => match &live.rejected {
                Some(message) => {
                    let message = format!("the registry's pods cannot be created: {message}");
                    (MCPRegistryPhase::Failed, Ready::DeploymentFailed, message)
                }
                None => pending(inputs),
            },
            None => pending(inputs),
        },
    }
}

fn pending(inputs: &Inputs) -> (MCPRegistryPhase, Ready, String) {
    // The operator does not watch its pods, so it cannot report why they are not ready.
    let server = inputs.server();
    let message = format!(
        "the registry's pod is starting; if it takes long: kubectl describe pod -l app.kubernetes.io/name={server}"
    );
    (MCPRegistryPhase::Pending, Ready::NotReady, message)
}

fn failed_child(error: &Error) -> Ready {
    match error.kind() {
        Some("ConfigMap") => Ready::ConfigMapFailed,
        Some("ServiceAccount" | "Role" | "RoleBinding") => Ready::RBACFailed,
        Some("Deployment") => Ready::DeploymentFailed,
        Some("Service") => Ready::ServiceFailed,
        _ => Ready::NotReady,
    }
}
