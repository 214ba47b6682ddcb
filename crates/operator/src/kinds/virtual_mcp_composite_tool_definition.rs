//! VirtualMCPCompositeToolDefinition: a composite tool that VirtualMCPServers offer.

use std::sync::Arc;

use skep_api::{
    conditions::{Ready, WorkflowValidated},
    events::EventReason,
    kinds::{
        ApiKind, ValidationStatus, VirtualMCPCompositeToolDefinition,
        VirtualMCPCompositeToolDefinitionStatus, VirtualMCPServer,
    },
};
use skep_workflow::Cause;
use skep_world::{ReadError, Reader};

use crate::{
    reconcile::{Condition, Controller, Event, Outcome, Problem, Resolve, Validate, Validated, Validation},
    resources::{Custom, reference_key},
    settings::Settings,
};

/// A definition, and the VirtualMCPServers that offer it.
pub struct Inputs {
    object: Arc<VirtualMCPCompositeToolDefinition>,
    referrers: Vec<String>,
}

impl Resolve<VirtualMCPCompositeToolDefinition> for Inputs {
    async fn resolve(
        object: Arc<VirtualMCPCompositeToolDefinition>,
        _: &Arc<Settings>,
        reader: &mut Reader,
    ) -> Result<Self, ReadError> {
        let key = reference_key::<VirtualMCPCompositeToolDefinition>(&reader.target().name);
        Ok(Self { object, referrers: reader.members::<Custom<VirtualMCPServer>>(&key) })
    }
}

impl Validate for Inputs {
    /// A definition has no children: VirtualMCPServers read it themselves.
    type Valid<'a> = ();

    fn validate(&self) -> Validated<()> {
        let mut validation = Validation::default();
        let errors = skep_workflow::check(&self.object.spec.tool);
        let Some(first) = errors.first() else {
            validation.add(Condition::new(WorkflowValidated::ValidationSuccess, "the workflow is valid"));
            return validation.finish(|| Ok(()));
        };
        let message = match errors.len() - 1 {
            0 => first.error.to_string(),
            more => format!("{}; and {more} more", first.error),
        };
        let reason = match first.cause {
            Cause::Workflow => WorkflowValidated::ValidationFailed,
            Cause::Schema => WorkflowValidated::SchemaInvalid,
            Cause::Template => WorkflowValidated::TemplateInvalid,
            Cause::Cycle => WorkflowValidated::DependencyCycle,
        };
        validation.add(Condition::new(reason, message));
        for error in errors {
            let problem = Problem::new(error.error).reported_as(reason);
            validation.fail(problem.published_as(EventReason::WorkflowInvalid));
        }
        validation.finish(|| Ok(()))
    }
}

impl Controller for VirtualMCPCompositeToolDefinition {
    type Inputs = Inputs;

    fn status(
        inputs: &Inputs,
        validation: &Validation,
        _: &Outcome,
    ) -> (VirtualMCPCompositeToolDefinitionStatus, Vec<Condition>) {
        let is_valid = validation.problems.is_empty();
        let status = VirtualMCPCompositeToolDefinitionStatus {
            validation_status: Some(if is_valid {
                ValidationStatus::Valid
            } else {
                ValidationStatus::Invalid
            }),
            validation_errors: validation.problems.iter().map(ToString::to_string).collect(),
            referencing_virtual_servers: inputs.referrers.clone(),
            ..VirtualMCPCompositeToolDefinitionStatus::default()
        };
        let ready = if is_valid {
            Condition::new(Ready::WorkflowReady, "the workflow can run")
        } else {
            Condition::new(Ready::WorkflowNotReady, "the workflow is invalid: see status.validationErrors")
        };
        (status, vec![ready])
    }

    fn events(inputs: &Inputs, validation: &Validation, _: &Outcome) -> Vec<Event> {
        let mut before = inputs.object.conditions().iter();
        let was_invalid =
            before.any(|condition| condition.type_ == WorkflowValidated::TYPE && condition.status == "False");
        let is_valid = validation.problems.is_empty();
        let event = || Event::new(EventReason::WorkflowValid, "the workflow is valid again");
        (was_invalid && is_valid).then(event).into_iter().collect()
    }
}
