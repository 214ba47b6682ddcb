//! What people are told about an EmbeddingServer.

use skep_world::Watched;

use super::{
    findings::{POD_TEMPLATE, VOLUME},
    inputs::Inputs,
};
use crate::{
    driver::Outcome,
    notice::{Notice, Severity},
    watched::ManagedStatefulSets,
};

/// What is new since the last time.
pub(super) fn notices(inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
    let status = inputs.object.status.as_ref();
    let told = status.and_then(|status| status.message.as_deref());
    let notice = match outcome {
        Outcome::Blocked(blocked) => problem(inputs, &blocked.message, told),
        Outcome::Failed(error) if error.is_stale() => None,
        Outcome::Failed(error) => problem(inputs, &error.to_string(), told),
        // A first StatefulSet is no news: whoever made the object expects it.
        Outcome::Converged(written) if inputs.live.is_some() => {
            written.iter().any(|child| child.kind == ManagedStatefulSets::KIND).then(|| updated(inputs))
        }
        Outcome::Converged(_) => None,
    };
    notice.into_iter().chain(volume(inputs)).collect()
}

fn problem(inputs: &Inputs, message: &str, told: Option<&str>) -> Option<Notice> {
    let template =
        inputs.findings.conditions.iter().any(|finding| finding.type_ == POD_TEMPLATE && !finding.holds);
    let (reason, action) =
        if template { ("ValidationFailed", "ValidatePodTemplateSpec") } else { ("NotApplied", "Reconcile") };
    Notice::problem(reason, action, message, told)
}

/// Why the pods may be new.
fn updated(inputs: &Inputs) -> Notice {
    let observed = inputs.object.status.as_ref().and_then(|status| status.observed_generation);
    let note = if observed == Some(inputs.generation()) {
        "the StatefulSet was updated: it was not as this operator wants it".into()
    } else {
        format!("the StatefulSet was updated: the spec is now of generation {}", inputs.generation())
    };
    let (reason, action) = ("StatefulSetUpdated".into(), "UpdateStatefulSet");
    Notice { severity: Severity::Normal, reason, action, note }
}

/// The condition is still there from the last time, so this is told once.
fn volume(inputs: &Inputs) -> Option<Notice> {
    let finding = inputs.findings.conditions.iter().find(|finding| finding.type_ == VOLUME)?;
    let before = inputs.object.status.iter().flat_map(|status| &status.conditions);
    let told = before.into_iter().find(|condition| condition.type_ == VOLUME);
    let told = told.map(|condition| condition.message.as_str());
    Notice::problem(finding.reason.clone(), "ValidateModelCache", &finding.message, told)
}
