//! What people are told about a VirtualMCPServer.

use skep_config::annotations;
use skep_converge::Child;
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
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
        Outcome::Failed(error) => all.extend(problem(inputs, &error.to_string())),
        Outcome::Converged(written) => {
            all.extend(rollout(inputs, written).into_iter().chain(secret(written)))
        }
    }
    all
}

/// The status still says what was told before, so a problem that stays is told once.
fn problem(inputs: &Inputs, message: &str) -> Option<Notice> {
    let told = inputs.object.status.as_ref().and_then(|status| status.message.as_deref());
    let mut conditions = inputs.found.findings.conditions.iter();
    let broken = conditions.find(|finding| !finding.holds && finding.message == message);
    let (reason, action) = match broken {
        Some(finding) => (finding.reason.clone(), action(&finding.type_)),
        None => ("NotApplied".to_owned(), "Reconcile"),
    };
    let note = format!("{message}; what runs goes on as it is");
    (told != Some(message)).then_some(Notice { severity: Severity::Warning, reason, action, note })
}

/// What was being done when a condition was found not to hold.
fn action(condition: &str) -> &'static str {
    match condition {
        "PodTemplateSpecValid" => "ValidatePodTemplateSpec",
        "EmbeddingServerReady" => "ValidateEmbeddingServerRef",
        "AuthConfigured" => "ValidateSecrets",
        "Valid" => "ValidateSpec",
        _ => "ResolveReferences",
    }
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
    let cause = if before.checksum.as_deref() != checksum {
        "its configuration, or one that it refers to, has changed"
    } else if before.volumes.as_deref() != volumes {
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
