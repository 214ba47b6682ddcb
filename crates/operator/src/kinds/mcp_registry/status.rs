//! What is said of an MCPRegistry.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{MCPRegistryPhase, MCPRegistryStatus};
use skep_converge::{Child, Error};
use skep_world::Watched;

use super::{checks::Wrong, inputs::Inputs, pod::PORT};
use crate::{
    conditions::{Finding, conditions},
    driver::Outcome,
    watched::Registries,
};

/// The whole status: there is no other writer.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
    let (phase, reason, message) = state(inputs, outcome);
    let ready = inputs.live.as_ref().map(|live| live.ready).filter(|ready| *ready > 0);
    let mut found: Vec<Finding> = pod_template(inputs).into_iter().collect();
    found.push(match phase {
        MCPRegistryPhase::Ready => Finding::yes("Ready", "Ready", "the registry answers requests"),
        _ => Finding::no("Ready", reason, message.clone()),
    });
    let before = inputs.object.status.clone().unwrap_or_default();
    let (name, namespace) = (&inputs.identity.name, &inputs.identity.namespace);
    // It is told once somebody answers there.
    let answered = before.url.is_some() || phase == MCPRegistryPhase::Ready;
    let status = MCPRegistryStatus {
        observed_generation: Some(inputs.generation()),
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: answered.then(|| format!("http://{}.{namespace}:{PORT}", inputs.server())),
        ready_replicas: ready,
        conditions: conditions(found, &before.conditions, inputs.generation(), now),
    };
    Child::status(Registries::KIND, namespace.clone(), name.clone(), json!(status))
}

/// The condition of the user's patch of the pod, while there is one.
fn pod_template(inputs: &Inputs) -> Option<Finding> {
    const TYPE: &str = "PodTemplateValid";
    inputs.spec().pod_template_spec.as_ref()?;
    Some(match &inputs.users {
        Err(Wrong::PodTemplate(message)) => Finding::no(TYPE, "InvalidPodTemplateSpec", message),
        _ => Finding::yes(TYPE, "ValidPodTemplateSpec", "podTemplateSpec is valid"),
    })
}

/// Where the registry is in its life, why in one word, and why in a sentence.
fn state(inputs: &Inputs, outcome: &Outcome) -> (MCPRegistryPhase, &'static str, String) {
    match outcome {
        Outcome::Blocked(blocked) => {
            let missing = matches!(inputs.users, Err(Wrong::Missing(_)));
            let reason = if missing { "NotReady" } else { "ValidationFailed" };
            (MCPRegistryPhase::Failed, reason, blocked.message.clone())
        }
        Outcome::Failed(error) => (MCPRegistryPhase::Failed, failed(error), error.to_string()),
        Outcome::Converged(_) => match &inputs.live {
            Some(live) if live.ready > 0 => (MCPRegistryPhase::Ready, "Ready", String::new()),
            Some(live) => match &live.refused {
                Some(message) => {
                    let message = format!("the registry's pods cannot be made: {message}");
                    (MCPRegistryPhase::Failed, "DeploymentFailed", message)
                }
                None => pending(inputs),
            },
            None => pending(inputs),
        },
    }
}

fn pending(inputs: &Inputs) -> (MCPRegistryPhase, &'static str, String) {
    // Its pods are not watched, so why they are not ready is for whoever looks at them.
    let server = inputs.server();
    let message = format!(
        "the registry's pod is on its way: if it takes long, kubectl describe pod -l app.kubernetes.io/name={server}"
    );
    (MCPRegistryPhase::Pending, "NotReady", message)
}

/// Which child could not be written.
fn failed(error: &Error) -> &'static str {
    match error.kind() {
        Some("ConfigMap") => "ConfigMapFailed",
        Some("ServiceAccount" | "Role" | "RoleBinding") => "RBACFailed",
        Some("Deployment") => "DeploymentFailed",
        Some("Service") => "ServiceFailed",
        _ => "NotReady",
    }
}
