//! What is said of an EmbeddingServer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{EmbeddingServerPhase, EmbeddingServerStatus};
use skep_converge::Child;
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    conditions::{Finding, conditions},
    driver::Outcome,
    watched::EmbeddingServers,
};

/// The whole status: there is no other writer.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
    let (phase, message) = phase(inputs, outcome);
    let mut found = inputs.findings.conditions.clone();
    found.push(match phase {
        EmbeddingServerPhase::Ready => Finding::yes("Ready", "Ready", "the server answers requests"),
        _ => Finding::no("Ready", phase.as_str(), message.clone()),
    });
    let before = inputs.object.status.clone().unwrap_or_default();
    let (name, namespace) = (&inputs.identity.name, &inputs.identity.namespace);
    let ready = inputs.live.as_ref().map(|live| live.ready);
    let status = EmbeddingServerStatus {
        observed_generation: Some(inputs.generation()),
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(format!("http://{name}.{namespace}.svc.cluster.local:{}", inputs.spec().port())),
        ready_replicas: ready.filter(|ready| *ready > 0),
        conditions: conditions(found, &before.conditions, inputs.generation(), now),
    };
    Child::status(EmbeddingServers::KIND, namespace.clone(), name.clone(), json!(status))
}

/// Where the server is in its life, and why.
fn phase(inputs: &Inputs, outcome: &Outcome) -> (EmbeddingServerPhase, String) {
    match outcome {
        Outcome::Blocked(blocked) => (EmbeddingServerPhase::Failed, blocked.message.clone()),
        Outcome::Failed(error) => (EmbeddingServerPhase::Failed, error.to_string()),
        Outcome::Converged(_) => match &inputs.live {
            Some(live) if live.ready > 0 => (EmbeddingServerPhase::Ready, String::new()),
            Some(live) if live.replicas > 0 => {
                // Its pods are not watched, so what of these it is, is for whoever looks at them.
                let pod = format!("{}-0", inputs.identity.name);
                let message = format!(
                    "the pod {pod} fetches the model, or waits for its image or volume: kubectl describe pod {pod}"
                );
                (EmbeddingServerPhase::Downloading, message)
            }
            _ => (EmbeddingServerPhase::Pending, "the pods are on their way".into()),
        },
    }
}
