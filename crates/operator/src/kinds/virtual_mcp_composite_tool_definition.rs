//! VirtualMCPCompositeToolDefinition: a composite tool for VirtualMCPServers to offer.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{
    ValidationStatus, VirtualMCPCompositeToolDefinition, VirtualMCPCompositeToolDefinitionStatus,
};
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader, Watched};

use crate::{
    conditions::{Finding, conditions},
    driver::{Blocked, Controller, Outcome},
    notice::{Notice, Severity},
    parts::workflow::{self, Cause, Problem},
    refers::reference_key,
    watched::{CompositeTools, VirtualServers},
};

/// The controller of VirtualMCPCompositeToolDefinitions.
pub(super) struct CompositeToolDefinitions;

/// A definition, what is wrong with it, and who offers it.
pub(crate) struct Inputs {
    object: Arc<VirtualMCPCompositeToolDefinition>,
    problems: Vec<Problem>,
    referrers: Vec<String>,
}

impl Controller for CompositeToolDefinitions {
    type Resource = CompositeTools;
    type Inputs = Inputs;

    const MANAGER: &'static str = "skep-virtualmcpcompositetooldefinition";
    /// VirtualMCPServers see for themselves that it is gone.
    const FINALIZER: Option<Finalizer> = None;

    async fn resolve(
        &self,
        object: Arc<VirtualMCPCompositeToolDefinition>,
        reader: &mut Reader,
    ) -> Result<Inputs, ReadError> {
        let key = reference_key(CompositeTools::KIND, &reader.target().name);
        Ok(Inputs {
            problems: workflow::check(&object.spec.tool).err().unwrap_or_default(),
            referrers: reader.members::<VirtualServers>(&key),
            object,
        })
    }

    /// VirtualMCPServers look at it themselves: nothing is made for a definition.
    fn desired(&self, inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
        match inputs.problems.as_slice() {
            [] => Ok(Vec::new()),
            problems => Err(Blocked::new(summary(problems))),
        }
    }

    fn status(&self, inputs: &Inputs, _: &Outcome, now: &Time) -> Child {
        let metadata = &inputs.object.metadata;
        let generation = metadata.generation.unwrap_or_default();
        let before = inputs.object.status.clone().unwrap_or_default();
        let valid = inputs.problems.is_empty();
        let status = VirtualMCPCompositeToolDefinitionStatus {
            observed_generation: Some(generation),
            validation_status: Some(if valid { ValidationStatus::Valid } else { ValidationStatus::Invalid }),
            validation_errors: inputs.problems.iter().map(ToString::to_string).collect(),
            referencing_virtual_servers: inputs.referrers.clone(),
            conditions: conditions(findings(&inputs.problems), &before.conditions, generation, now),
        };
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Child::status(CompositeTools::KIND, text(&metadata.namespace), text(&metadata.name), json!(status))
    }

    /// The status still says how it was, so this tells only what has changed.
    fn notices(&self, inputs: &Inputs, _: &Outcome) -> Vec<Notice> {
        let before = inputs.object.status.as_ref();
        let told: Vec<_> = before.into_iter().flat_map(|status| &status.validation_errors).collect();
        let now: Vec<_> = inputs.problems.iter().map(ToString::to_string).collect();
        let (severity, reason, note) = match inputs.problems.as_slice() {
            [] if told.is_empty() => return Vec::new(),
            [] => (Severity::Normal, "WorkflowValid", "the workflow can be run".into()),
            _ if told.iter().copied().eq(&now) => return Vec::new(),
            problems => (Severity::Warning, "WorkflowInvalid", summary(problems)),
        };
        vec![Notice { severity, reason: reason.into(), action: "Validate", note }]
    }
}

const VALIDATED: &str = "WorkflowValidated";

fn findings(problems: &[Problem]) -> Vec<Finding> {
    let Some(first) = problems.first() else {
        return vec![
            Finding::yes(VALIDATED, "ValidationSuccess", "the workflow is valid"),
            Finding::yes("Ready", "WorkflowReady", "the workflow can be run"),
        ];
    };
    let reason = match first.cause {
        Cause::Workflow => "ValidationFailed",
        Cause::Schema => "SchemaInvalid",
        Cause::Template => "TemplateInvalid",
        Cause::Cycle => "DependencyCycle",
    };
    vec![
        Finding::no(VALIDATED, reason, summary(problems)),
        Finding::no(
            "Ready",
            "WorkflowNotReady",
            "the workflow cannot be run as it is: status.validationErrors say why",
        ),
    ]
}

/// The first problem, and how many there are beside it. The status lists them.
fn summary(problems: &[Problem]) -> String {
    match problems {
        [] => String::new(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first}; and {} more", rest.len()),
    }
}
