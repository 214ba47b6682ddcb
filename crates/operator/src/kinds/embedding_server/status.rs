//! The status of an EmbeddingServer.

use skep_api::{
    conditions::Ready,
    kinds::{EmbeddingServerPhase, EmbeddingServerStatus},
};

use super::inputs::Inputs;
use crate::reconcile::{Condition, Outcome};

/// The whole status: it has no other writer.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome) -> (EmbeddingServerStatus, Vec<Condition>) {
    let (phase, message) = phase(inputs, outcome);
    let ready = match phase {
        EmbeddingServerPhase::Ready => Condition::new(Ready::Ready, "the server serves requests"),
        EmbeddingServerPhase::Pending => Condition::new(Ready::Pending, message.clone()),
        EmbeddingServerPhase::Downloading => Condition::new(Ready::Downloading, message.clone()),
        _ => Condition::new(Ready::Failed, message.clone()),
    };
    let (name, namespace) = (&inputs.identity.name, &inputs.identity.namespace);
    let status = EmbeddingServerStatus {
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(format!("http://{name}.{namespace}.svc.cluster.local:{}", inputs.spec().port())),
        ready_replicas: inputs.live.as_ref().map(|live| live.ready).filter(|ready| *ready > 0),
        ..EmbeddingServerStatus::default()
    };
    (status, vec![ready])
}

/// The phase, and why it is not Ready.
fn phase(inputs: &Inputs, outcome: &Outcome) -> (EmbeddingServerPhase, String) {
    if let Some(message) = outcome.message() {
        return (EmbeddingServerPhase::Failed, message);
    }
    match &inputs.live {
        Some(live) if live.ready > 0 => (EmbeddingServerPhase::Ready, String::new()),
        Some(live) if live.replicas > 0 => {
            // The operator does not watch its pods, so it cannot distinguish these.
            let pod = format!("{}-0", inputs.identity.name);
            let message = format!(
                "pod {pod} downloads the model, or waits for its image or volume: kubectl describe pod {pod}"
            );
            (EmbeddingServerPhase::Downloading, message)
        }
        _ => (EmbeddingServerPhase::Pending, "the pods are starting".into()),
    }
}
