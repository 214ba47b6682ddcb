//! The steps that only compute: from the inputs to the children and the status.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use skep_converge::Child;
use skep_world::{ReadError, Reader};

use super::{Condition, Controller, Outcome, Problem, Validation, condition::status_conditions};
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
        let inputs = K::resolve(object.clone(), settings, reader).await?;
        let validation = K::validate(&inputs);
        let children = match validation.blocked() {
            Some(problem) => Err(problem.clone()),
            None => K::desired(&inputs).map_err(|error| Problem::new(error.0)),
        };
        Ok(Self { object, inputs, validation, children })
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
        if !conditions.is_empty() {
            let before = self.object.conditions();
            status["conditions"] = json!(status_conditions(conditions.clone(), before, generation, now));
        }
        (status, conditions)
    }
}
