//! The event about a rollout of a proxy.

use skep_api::events::EventReason;
use skep_config::annotations;
use skep_converge::Child;
use skep_world::Watched;

use super::ProxyWorkload;
use crate::{
    reconcile::{Event, Outcome},
    resources::Deployments,
};

/// Why the proxy's pods are replaced, if they are.
pub(crate) fn rollout(proxy: &ProxyWorkload, outcome: &Outcome) -> Option<Event> {
    let Outcome::Converged(written) = outcome else { return None };
    let deployment = written.iter().find(|child: &&Child| child.kind == Deployments::kind())?;
    let annotations = &deployment.body()["spec"]["template"]["metadata"]["annotations"];
    let now = |key: &str| annotations[key].as_str();
    // The first Deployment is expected.
    let before = proxy.deployment.as_ref()?;
    // Another operator may have set neither of these, and then they are not the cause.
    let differs = |before: Option<&str>, key| before.is_some() && before != now(key);
    let cause = if differs(before.generation.as_deref(), annotations::MCPSERVER_GENERATION) {
        format!("the spec has the new generation {}", proxy.generation())
    } else if differs(before.checksum.as_deref(), annotations::RUNCONFIG_CHECKSUM) {
        "the configuration changed".into()
    } else if before.restarted_at.as_deref() != now(annotations::RESTARTED_AT) {
        "a restart was requested".into()
    } else {
        "the Deployment differed from the desired state".into()
    };
    Some(Event::new(EventReason::ProxyUpdated, format!("updated the proxy's Deployment: {cause}")))
}
