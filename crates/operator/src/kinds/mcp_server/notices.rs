//! What people are told about an MCPServer.

use skep_config::annotations;
use skep_converge::Child;
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    driver::Outcome,
    notice::{Notice, Severity},
    watched::Deployments,
};

/// What is new since the last time.
pub(super) fn notices(inputs: &Inputs, outcome: &Outcome) -> Vec<Notice> {
    let notice = match outcome {
        Outcome::Blocked(blocked) => problem(inputs, &blocked.message),
        Outcome::Failed(error) if error.is_stale() => None,
        Outcome::Failed(error) => problem(inputs, &error.to_string()),
        Outcome::Converged(written) => rollout(inputs, written),
    };
    notice.into_iter().collect()
}

/// The status still says what was told before, so a problem that stays is told once.
fn problem(inputs: &Inputs, message: &str) -> Option<Notice> {
    let told = inputs.object.status.as_ref().and_then(|status| status.message.as_deref());
    let broken =
        inputs.findings.conditions.iter().find(|finding| !finding.holds && finding.message == message);
    let (reason, action) = match broken.map(|finding| finding.type_) {
        Some("PodTemplateValid") => ("InvalidPodTemplateSpec", "ValidatePodTemplateSpec"),
        _ => ("NotApplied", "Reconcile"),
    };
    let note = format!("{message}; what runs goes on as it is");
    (told != Some(message)).then_some(Notice { severity: Severity::Warning, reason, action, note })
}

/// Why the proxy's pods are new.
fn rollout(inputs: &Inputs, written: &[Child]) -> Option<Notice> {
    let deployment = written.iter().find(|child| child.kind == Deployments::KIND)?;
    let annotations = &deployment.body()["spec"]["template"]["metadata"]["annotations"];
    let now = |key: &str| annotations[key].as_str();
    // A first proxy is no news: whoever made the server expects it.
    let before = inputs.deployment.as_ref()?;
    let cause = if before.generation.as_deref() != now(annotations::MCPSERVER_GENERATION) {
        format!("the spec is now of generation {}", inputs.generation())
    } else if before.checksum.as_deref() != now(annotations::RUNCONFIG_CHECKSUM) {
        "a configuration that it refers to has changed".into()
    } else if before.restarted_at.as_deref() != now(annotations::RESTARTED_AT) {
        "a restart was asked for".into()
    } else {
        "its Deployment was not as this operator wants it".into()
    };
    let note = format!("the proxy's Deployment was updated: {cause}");
    Some(Notice { severity: Severity::Normal, reason: "ProxyUpdated", action: "UpdateDeployment", note })
}
