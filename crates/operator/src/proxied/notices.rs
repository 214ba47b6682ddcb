//! What people are told about a proxy, whatever it stands in front of.

use skep_config::annotations;
use skep_converge::Child;
use skep_world::Watched;

use super::{Findings, Proxied};
use crate::{
    driver::Outcome,
    notice::{Notice, Severity},
    watched::Deployments,
};

/// What is new since the last time. `told` is what the status said then.
pub(crate) fn notices(
    proxied: &Proxied,
    findings: &Findings,
    outcome: &Outcome,
    told: Option<&str>,
) -> Vec<Notice> {
    let notice = match outcome {
        Outcome::Blocked(blocked) => problem(findings, &blocked.message, told),
        Outcome::Failed(error) => problem(findings, &error.to_string(), told),
        Outcome::Converged(written) => rollout(proxied, written),
    };
    notice.into_iter().collect()
}

/// The status still says what was told before, so a problem that stays is told once.
fn problem(findings: &Findings, message: &str, told: Option<&str>) -> Option<Notice> {
    let broken = findings.conditions.iter().find(|finding| !finding.holds && finding.message == message);
    let (reason, action) = match broken {
        Some(finding) if finding.type_ == "PodTemplateValid" => {
            ("InvalidPodTemplateSpec".into(), "ValidatePodTemplateSpec")
        }
        Some(finding) if finding.type_ == "ConfigurationValid" => (finding.reason.clone(), "ValidateSpec"),
        _ => (String::from("NotApplied"), "Reconcile"),
    };
    Notice::problem(reason, action, message, told)
}

/// Why the proxy's pods are new.
fn rollout(proxied: &Proxied, written: &[Child]) -> Option<Notice> {
    let deployment = written.iter().find(|child| child.kind == Deployments::KIND)?;
    let annotations = &deployment.body()["spec"]["template"]["metadata"]["annotations"];
    let now = |key: &str| annotations[key].as_str();
    // A first proxy is no news: whoever made the object expects it.
    let before = proxied.deployment.as_ref()?;
    // Whoever made it may have noted neither of these, and then they are no cause.
    let is_other = |noted: Option<&str>, key| noted.is_some() && noted != now(key);
    let cause = if is_other(before.generation.as_deref(), annotations::MCPSERVER_GENERATION) {
        format!("the spec is now of generation {}", proxied.generation())
    } else if is_other(before.checksum.as_deref(), annotations::RUNCONFIG_CHECKSUM) {
        "its configuration, or one that it refers to, has changed".into()
    } else if before.restarted_at.as_deref() != now(annotations::RESTARTED_AT) {
        "a restart was asked for".into()
    } else {
        "its Deployment was not as this operator wants it".into()
    };
    let note = format!("the proxy's Deployment was updated: {cause}");
    Some(Notice {
        severity: Severity::Normal,
        reason: "ProxyUpdated".into(),
        action: "UpdateDeployment",
        note,
    })
}
