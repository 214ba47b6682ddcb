//! The validation of an EmbeddingServer: checks, each with its condition.

use skep_api::{
    conditions::{PodTemplateValid, VolumeReady},
    events::EventReason,
};

use super::{cache, desired::template, inputs::Inputs};
use crate::{
    reconcile::{Condition, Problem, Validation},
    resources::missing_key,
};

/// All checks. The first problem is the one that the status reports.
pub(super) fn validate(inputs: &Inputs) -> Validation {
    let mut validation = Validation::default();
    match template(inputs) {
        Ok(_) => {
            validation.add(Condition::new(PodTemplateValid::ValidPodTemplateSpec, "podTemplateSpec is valid"))
        }
        Err(error) => {
            let problem = Problem::new(error).reported_as(PodTemplateValid::InvalidPodTemplateSpec);
            validation.fail(problem.published_as(EventReason::ValidationFailed));
        }
    }
    // A pod would wait forever for a Secret key that does not exist, so the object waits instead.
    if let Some(secret) = &inputs.spec().hf_token_secret_ref
        && let Some(message) = missing_key(secret, inputs.token_keys.as_deref())
    {
        validation.fail(Problem::of("hfTokenSecretRef", message).transient());
    }
    validation.add(volume(inputs));
    validation
}

fn volume(inputs: &Inputs) -> Option<Condition> {
    let name = &inputs.identity.name;
    let message = format!(
        "StatefulSet {name} keeps its volume, because Kubernetes does not allow it to change: to get what modelCache and \
         resourceOverrides.persistentVolumeClaim describe, delete the StatefulSet and, if they exist, the claims \
         model-cache-{name}-N; it is then recreated"
    );
    cache::differs(inputs).then(|| Condition::new(VolumeReady::ModelCacheImmutable, message))
}
