//! Events about an MCPRegistry.

use skep_api::events::EventReason;
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    reconcile::{Event, Outcome},
    resources::ManagedDeployments,
};

pub(super) fn events(inputs: &Inputs, outcome: &Outcome) -> Vec<Event> {
    let observed = inputs.object.status.as_ref().and_then(|status| status.observed_generation);
    let is_new_spec = observed != Some(inputs.generation());
    // Once for each generation that a user writes.
    let deprecated = is_new_spec.then(|| {
        let note = "MCPRegistry is deprecated: install the registry server by its own chart, toolhive-registry-server";
        Event::new(EventReason::MCPRegistryDeprecated, note)
    });
    deprecated.into_iter().chain(updated(inputs, outcome, is_new_spec)).collect()
}

/// Why the pods are replaced. The first Deployment is expected.
fn updated(inputs: &Inputs, outcome: &Outcome, is_new_spec: bool) -> Option<Event> {
    let Outcome::Converged(written) = outcome else { return None };
    if inputs.live.is_none() || !written.iter().any(|child| child.kind == ManagedDeployments::kind()) {
        return None;
    }
    let cause = if is_new_spec {
        format!("the spec has the new generation {}", inputs.generation())
    } else {
        "it differed from the desired state".into()
    };
    Some(Event::new(EventReason::DeploymentUpdated, format!("updated the Deployment: {cause}")))
}
