//! What people are told about a VirtualMCPServer.

use skep_config::annotations;
use skep_converge::{Child, Error};
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    conditions::Finding,
    driver::Outcome,
    notice::{Notice, Severity},
    watched::{Deployments, Secrets},
};

/// What is new since the last time.
pub(super) fn notices(inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
    let mut all = advice(inputs);
    match outcome {
        Outcome::Blocked(blocked) => all.extend(problem(inputs, &blocked.message)),
        Outcome::Failed(error) if error.is_stale() => {}
        Outcome::Failed(error) => all.extend(failed(inputs, error)),
        Outcome::Converged(written) => {
            all.extend(rollout(inputs, written).into_iter().chain(secret(written)))
        }
    }
    all
}

/// What keeps the server from having what the spec asks for, under the name of the condition that says the same.
fn problem(inputs: &Inputs, message: &str) -> Option<Notice> {
    let mut conditions = inputs.found.findings.conditions.iter();
    let broken = conditions.find(|finding| !finding.holds && finding.message == message);
    let (reason, action) = broken.map_or(("NotApplied", "Reconcile"), |finding| names(inputs, finding));
    Notice::problem(reason, action, message, told(inputs))
}

/// The status still says what was told before, so a problem that stays is told once.
fn told(inputs: &Inputs) -> Option<&str> {
    inputs.object.status.as_ref()?.message.as_deref()
}

/// The reason of the event about a condition that does not hold, and what was being done. Where ToolHive has an event,
/// both are its words: people look for them.
fn names<'a>(inputs: &Inputs, finding: &'a Finding) -> (&'a str, &'static str) {
    let reason = finding.reason.as_str();
    match (&*finding.type_, reason) {
        ("PodTemplateSpecValid", _) => (reason, "ValidatePodTemplateSpec"),
        ("EmbeddingServerReady", "EmbeddingServerNotFound") => {
            ("EmbeddingServerRefNotFound", "ValidateEmbeddingServerRef")
        }
        ("EmbeddingServerReady", _) => (reason, "ValidateEmbeddingServerRef"),
        // What may come by itself is a Secret.
        ("AuthConfigured", "AuthInvalid") if inputs.found.waits => {
            ("SecretValidationFailed", "ValidateSecrets")
        }
        ("AuthConfigured", "AuthInvalid") => (reason, "ValidatePolicies"),
        ("AuthConfigured", _) => (reason, "ValidateAuthzConfigMap"),
        ("Valid", _) => (reason, "ValidateSpec"),
        _ => (reason, "ResolveReferences"),
    }
}

/// Which child could not be written.
fn failed(inputs: &Inputs, error: &Error) -> Option<Notice> {
    let (reason, action) = match error.kind() {
        _ if matches!(error, Error::NoRandomness(_)) => ("HMACSecretGenerationFailed", "GenerateHMACSecret"),
        Some("Secret") => ("HMACSecretCreationFailed", "CreateHMACSecret"),
        Some("Deployment") if inputs.deployment.is_none() => ("DeploymentCreationFailed", "CreateDeployment"),
        Some("Deployment") => ("DeploymentUpdateFailed", "UpdateDeployment"),
        Some("Service") => ("ServiceCreationFailed", "CreateService"),
        _ => ("NotApplied", "Reconcile"),
    };
    Notice::problem(reason, action, &error.to_string(), told(inputs))
}

/// What works, and could be said better. It is told once for each spec.
fn advice(inputs: &Inputs) -> Vec<Notice> {
    let observed = inputs.object.status.as_ref().and_then(|status| status.observed_generation);
    if observed == Some(inputs.generation()) {
        return Vec::new();
    }
    let warning = |reason: &str, action, note: &str| Notice {
        severity: Severity::Warning,
        reason: reason.into(),
        action,
        note: note.into(),
    };
    let inline = inputs.spec().incoming_auth.authz_config.as_ref().and_then(|authz| authz.inline.as_ref());
    let deprecated = inline.is_some_and(|inline| inline.primary_upstream_provider.is_some());
    let optimizer = inputs.config().optimizer.unwrap_or_default();
    let overridden = inputs.embedding.is_some() && optimizer.embedding_service.is_some();
    let told = [
        deprecated.then(|| {
            let note = "incomingAuth.authzConfig.inline.primaryUpstreamProvider has moved to \
                        authServerConfig.primaryUpstreamProvider";
            warning("AuthzPrimaryUpstreamProviderDeprecated", "ResolvePrimaryUpstreamProvider", note)
        }),
        overridden.then(|| {
            let note = "config.optimizer.embeddingService has no effect: embeddingServerRef goes before it";
            warning("EmbeddingServiceOverridden", "ResolveEmbeddingService", note)
        }),
    ];
    told.into_iter().flatten().collect()
}

/// Why the server's pods are new.
fn rollout(inputs: &Inputs, written: &[Child]) -> Option<Notice> {
    let deployment = written.iter().find(|child| child.kind == Deployments::KIND)?.body();
    // A first one is no news: whoever made the object expects it.
    let before = inputs.deployment.as_ref()?;
    let checksum =
        deployment["spec"]["template"]["metadata"]["annotations"][annotations::RUNCONFIG_CHECKSUM].as_str();
    let volumes = deployment["metadata"]["annotations"][annotations::POD_VOLUMES_HASH].as_str();
    // Whoever made it may have noted neither of these, and then they are no cause.
    let is_other = |noted: Option<&str>, now| noted.is_some() && noted != now;
    let cause = if is_other(before.checksum.as_deref(), checksum) {
        "its configuration, or one that it refers to, has changed"
    } else if is_other(before.volumes.as_deref(), volumes) {
        "the Secrets or ConfigMaps that its pods mount are others"
    } else {
        "it was not as this operator wants it"
    };
    let note = format!("the server's Deployment was updated: {cause}");
    let reason = "DeploymentUpdated".into();
    Some(Notice { severity: Severity::Normal, reason, action: "UpdateDeployment", note })
}

fn secret(written: &[Child]) -> Option<Notice> {
    let secret = written.iter().find(|child| child.kind == Secrets::KIND)?;
    let note = format!("the Secret {} was made, with a random key for sessions", secret.name);
    let reason = "HMACSecretCreated".into();
    Some(Notice { severity: Severity::Normal, reason, action: "CreateHMACSecret", note })
}
