//! The steps that only compute: from the inputs to the children and the status.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use skep_converge::Child;
use skep_world::{ReadError, Reader};

use super::{
    Condition, Controller, Desired, Outcome, Problem, Resolve, Validate, Validation,
    condition::{cut, keep_generation_of_ready, status_conditions},
};
use crate::{resources::kind_of, settings::Settings};

/// An object with everything that follows from its inputs.
pub(crate) struct Computed<K: Controller> {
    pub(crate) object: Arc<K>,
    pub(crate) inputs: K::Inputs,
    pub(crate) validation: Validation,
    /// The children, or what keeps the object from having them.
    pub(crate) children: Result<Vec<Child>, Problem>,
}

impl<K: Controller> Computed<K> {
    /// Resolves and validates an object, and computes its children.
    pub(crate) async fn new(
        object: Arc<K>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let inputs = K::Inputs::resolve(object.clone(), settings, reader).await?;
        let (validation, valid) = inputs.validate();
        let children = valid.and_then(|valid| valid.children().map_err(|error| Problem::new(error.0)));
        Ok(Self { object, validation, children, inputs })
    }

    /// The whole status that the controller owns, and its conditions, with those of the children.
    pub(crate) fn status(
        &self,
        outcome: &Outcome,
        of_children: Vec<Condition>,
        now: &Time,
    ) -> (Value, Vec<Condition>) {
        let kind = kind_of::<K>();
        let metadata = self.object.meta();
        let generation = metadata.generation.unwrap_or_default();
        let (status, further) = <K as Controller>::status(&self.inputs, &self.validation, outcome);
        let mut conditions = self.validation.conditions.clone();
        conditions.extend(further);
        conditions.extend(of_children);
        for condition in &conditions {
            debug_assert!(
                condition.is_declared(kind.kind),
                "{}: {condition:?} is not declared in conditions/catalogue.rs",
                kind.kind
            );
        }
        let mut status = json!(status);
        status["observedGeneration"] = json!(generation);
        if let Some(Value::String(message)) = status.get_mut("message") {
            *message = cut(std::mem::take(message));
        }
        if !conditions.is_empty() {
            let before = self.object.conditions();
            let mut all = status_conditions(conditions.clone(), before, generation, now);
            if self.is_rolling(outcome) {
                keep_generation_of_ready(&mut all, before);
            }
            status["conditions"] = json!(all);
        }
        (status, conditions)
    }

    /// Whether the pods that serve are, or may be, those of an older spec: the Deployment was changed just now, or rolls.
    fn is_rolling(&self, outcome: &Outcome) -> bool {
        let is_written =
            matches!(outcome, Outcome::Converged(written) if written.iter().any(Child::runs_pods));
        is_written || K::is_rolling(&self.inputs)
    }
}
