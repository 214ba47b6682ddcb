//! Events about an EmbeddingServer.

use skep_api::{
    conditions::VolumeReady,
    events::{EventReason, Severity},
    kinds::ApiKind,
};
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    reconcile::{Event, Outcome, Validation},
    resources::ManagedStatefulSets,
};

pub(super) fn events(inputs: &Inputs, validation: &Validation, outcome: &Outcome) -> Vec<Event> {
    updated(inputs, outcome).into_iter().chain(volume(inputs, validation)).collect()
}

/// Why the pods may be replaced. The first StatefulSet is expected.
fn updated(inputs: &Inputs, outcome: &Outcome) -> Option<Event> {
    let Outcome::Converged(written) = outcome else { return None };
    if inputs.live.is_none() || !written.iter().any(|child| child.kind == ManagedStatefulSets::kind()) {
        return None;
    }
    let cause = if inputs.object.observed_generation() == Some(inputs.generation()) {
        "it differed from the desired state".into()
    } else {
        format!("the spec has the new generation {}", inputs.generation())
    };
    Some(Event::new(EventReason::StatefulSetUpdated, format!("updated the StatefulSet: {cause}")))
}

/// A volume that cannot be changed, unless the status reports it already.
fn volume(inputs: &Inputs, validation: &Validation) -> Option<Event> {
    let condition = validation.condition(VolumeReady::TYPE)?;
    let is_new = !condition.is_in(inputs.object.conditions());
    is_new.then(|| Event {
        severity: Severity::Warning,
        reason: condition.reason,
        action: "ValidateModelCache",
        note: condition.message.clone(),
    })
}
