//! The validation of an EmbeddingServer: checks, each with its condition.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use skep_api::{
    conditions::{PodTemplateValid, VolumeReady},
    events::EventReason,
};

use super::{cache, desired::template, inputs::Inputs};
use crate::reconcile::{Condition, Problem, Validate, Validated, Validation};

/// A valid EmbeddingServer.
pub struct ValidServer<'a> {
    pub(super) inputs: &'a Inputs,
    /// The pod template, with the user's patch.
    pub(super) template: PodTemplateSpec,
}

impl Validate for Inputs {
    type Valid<'a> = ValidServer<'a>;

    fn validate(&self) -> Validated<ValidServer<'_>> {
        let mut validation = Validation::default();
        let template = template(self);
        match &template {
            Ok(_) => validation
                .add(Condition::new(PodTemplateValid::ValidPodTemplateSpec, "podTemplateSpec is valid")),
            Err(error) => {
                let problem =
                    Problem::new(error.clone()).reported_as(PodTemplateValid::InvalidPodTemplateSpec);
                validation.fail(problem.published_as(EventReason::ValidationFailed));
            }
        }
        // A pod would wait forever for a Secret key that does not exist, so the object waits instead.
        for error in &self.missing_secrets {
            validation.fail(Problem::new(error.clone()).transient());
        }
        validation.add(volume(self));
        validation.finish(|| Ok(ValidServer { inputs: self, template: template? }))
    }
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
