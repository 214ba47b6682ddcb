//! What can be said of an EmbeddingServer before anything is built: checks, each with its condition.

use super::{cache, children::template, inputs::Inputs};
use crate::{conditions::Finding, proxied::Findings};

/// The type of the condition of a pod template that can be used.
pub(super) const POD_TEMPLATE: &str = "PodTemplateValid";
/// The type of the condition of a volume that is not what the spec asks for. There is none otherwise.
pub(super) const VOLUME: &str = "VolumeReady";

/// All checks, in the order in which the first problem counts.
pub(super) fn findings(inputs: &Inputs) -> Findings {
    let mut findings = Findings::default();
    match template(inputs) {
        Ok(_) => {
            findings.note(Finding::yes(POD_TEMPLATE, "ValidPodTemplateSpec", "podTemplateSpec is valid"))
        }
        Err(message) => {
            findings.note(Finding::no(POD_TEMPLATE, "InvalidPodTemplateSpec", message.clone()));
            findings.block(message);
        }
    }
    if let Some(message) = missing_token(inputs) {
        findings.block(message);
    }
    findings.note(volume(inputs));
    findings
}

/// A pod would wait for ever for a key that is not there; so it is said before one is made.
fn missing_token(inputs: &Inputs) -> Option<String> {
    const FIELD: &str = "hfTokenSecretRef";
    let secret = inputs.spec().hf_token_secret_ref.as_ref()?;
    let (name, key) = (&secret.name, &secret.key);
    match &inputs.token_keys {
        Some(keys) if keys.contains(key) => None,
        Some(_) => Some(format!("{FIELD}: the Secret {name} has no key {key}: add it")),
        None => Some(format!("{FIELD}: there is no Secret {name}: create it with the key {key}")),
    }
}

fn volume(inputs: &Inputs) -> Option<Finding> {
    let name = &inputs.identity.name;
    let message = format!(
        "the StatefulSet {name} keeps the volume that it was made with, because Kubernetes does not let it be changed: \
         to get what modelCache and resourceOverrides.persistentVolumeClaim ask for, delete the StatefulSet and, if \
         there are any, the claims model-cache-{name}-N; it is then made anew"
    );
    cache::differs(inputs).then(|| Finding::no(VOLUME, "ModelCacheImmutable", message))
}
