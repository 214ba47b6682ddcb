//! Events about a VirtualMCPServer.

use skep_api::{events::EventReason, kinds::ApiKind};
use skep_config::annotations;
use skep_converge::{Child, Error};
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    reconcile::{Event, Outcome},
    resources::{Deployments, Secrets},
};

pub(super) fn events(inputs: &Inputs, outcome: &Outcome) -> Vec<Event> {
    let mut events = advice(inputs);
    if let Outcome::Converged(written) = outcome {
        events.extend(rollout(inputs, written));
        events.extend(session_secret(written));
    }
    events
}

/// The reason of the event about a child that cannot be written.
pub(super) fn failure(inputs: &Inputs, error: &Error) -> EventReason {
    match error.kind() {
        _ if matches!(error, Error::NoRandomness(_)) => EventReason::HMACSecretGenerationFailed,
        Some("Secret") => EventReason::HMACSecretCreationFailed,
        Some("Deployment") if inputs.deployment.is_none() => EventReason::DeploymentCreationFailed,
        Some("Deployment") => EventReason::DeploymentUpdateFailed,
        Some("Service") => EventReason::ServiceCreationFailed,
        _ => EventReason::NotApplied,
    }
}

/// What works and should be written differently, once for each generation.
fn advice(inputs: &Inputs) -> Vec<Event> {
    if inputs.object.observed_generation() == Some(inputs.generation()) {
        return Vec::new();
    }
    let is_deprecated = inputs.policies.primary_provider().is_some();
    let optimizer = inputs.config().optimizer.unwrap_or_default();
    let is_overridden = inputs.embedding.is_some() && optimizer.embedding_service.is_some();
    let deprecated = is_deprecated.then(|| {
        let note = "incomingAuth.authzConfig.inline.primaryUpstreamProvider has moved to \
                    authServerConfig.primaryUpstreamProvider";
        Event::new(EventReason::AuthzPrimaryUpstreamProviderDeprecated, note)
    });
    let overridden = is_overridden.then(|| {
        let note = "config.optimizer.embeddingService has no effect: embeddingServerRef overrides it";
        Event::new(EventReason::EmbeddingServiceOverridden, note)
    });
    deprecated.into_iter().chain(overridden).collect()
}

/// Why the server's pods are replaced. The first Deployment is expected.
fn rollout(inputs: &Inputs, written: &[Child]) -> Option<Event> {
    let deployment = written.iter().find(|child| child.kind == Deployments::kind())?.body();
    let before = inputs.deployment.as_ref()?;
    let checksum =
        deployment["spec"]["template"]["metadata"]["annotations"][annotations::RUNCONFIG_CHECKSUM].as_str();
    let volumes = deployment["metadata"]["annotations"][annotations::POD_VOLUMES_HASH].as_str();
    // Another operator may have set neither of these, and then they are not the cause.
    let differs = |before: Option<&str>, now| before.is_some() && before != now;
    let cause = if differs(before.checksum.as_deref(), checksum) {
        "the configuration changed"
    } else if differs(before.volumes.as_deref(), volumes) {
        "the Secrets or ConfigMaps that the pods mount changed"
    } else {
        "the Deployment differed from the desired state"
    };
    Some(Event::new(EventReason::DeploymentUpdated, format!("updated the server's Deployment: {cause}")))
}

fn session_secret(written: &[Child]) -> Option<Event> {
    let secret = written.iter().find(|child| child.kind == Secrets::kind())?;
    let note = format!("created Secret {} with a random key for sessions", secret.name);
    Some(Event::new(EventReason::HMACSecretCreated, note))
}
