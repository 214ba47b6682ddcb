//! What people are told about an MCPRegistry.

use skep_world::Watched;

use super::{checks::Wrong, inputs::Inputs};
use crate::{
    driver::Outcome,
    notice::{Notice, Severity},
    watched::ManagedDeployments,
};

/// What is new since the last time.
pub(super) fn notices(inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
    let status = inputs.object.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    let news = observed != Some(inputs.generation());
    let told = status.and_then(|status| status.message.as_deref());
    let notice = match outcome {
        Outcome::Blocked(blocked) => {
            let (reason, action) = match &inputs.users {
                Err(Wrong::PodTemplate(_)) => ("InvalidPodTemplateSpec", "ValidatePodTemplateSpec"),
                Err(Wrong::Spec(_)) => ("ValidationFailed", "ValidateSpec"),
                _ => ("NotApplied", "Reconcile"),
            };
            Notice::problem(reason, action, &blocked.message, told)
        }
        Outcome::Failed(error) if error.is_stale() => None,
        Outcome::Failed(error) => Notice::problem("NotApplied", "Reconcile", &error.to_string(), told),
        // A first Deployment is no news: whoever made the object expects it.
        Outcome::Converged(written) if inputs.live.is_some() => {
            written.iter().any(|child| child.kind == ManagedDeployments::KIND).then(|| updated(inputs, news))
        }
        Outcome::Converged(_) => None,
    };
    news.then(deprecated).into_iter().chain(notice).collect()
}

/// It is told with each generation that somebody writes.
fn deprecated() -> Notice {
    Notice {
        severity: Severity::Warning,
        reason: "MCPRegistryDeprecated".into(),
        action: "Reconcile",
        note: "MCPRegistry is deprecated: install the registry server by its own chart, toolhive-registry-server"
            .into(),
    }
}

/// Why the pods are new.
fn updated(inputs: &Inputs, news: bool) -> Notice {
    let note = if news {
        format!("the Deployment was updated: the spec is now of generation {}", inputs.generation())
    } else {
        "the Deployment was updated: it was not as this operator wants it".into()
    };
    Notice {
        severity: Severity::Normal,
        reason: "DeploymentUpdated".into(),
        action: "UpdateDeployment",
        note,
    }
}
