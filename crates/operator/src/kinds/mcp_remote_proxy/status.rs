//! The status of an MCPRemoteProxy.

use skep_api::{
    conditions::Ready,
    kinds::{MCPRemoteProxyPhase, MCPRemoteProxyStatus},
};

use super::{address::url, inputs::Inputs};
use crate::{
    proxy_workload::{NotReady, PodsState, ProxyStatus, not_serving, running_message},
    reconcile::{Condition, Outcome},
};

/// The status fields that the controller owns.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome) -> (MCPRemoteProxyStatus, Vec<Condition>) {
    let (phase, reason, message) = state(inputs, outcome);
    let ready = match phase {
        MCPRemoteProxyPhase::Ready => Condition::new(reason, "the proxy serves requests"),
        _ => Condition::new(reason, message.clone()),
    };
    let status = MCPRemoteProxyStatus {
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(url(&inputs.object)),
        // Nothing here makes the proxy reachable from outside the cluster.
        external_url: None,
        ..MCPRemoteProxyStatus::of(&inputs.proxy)
    };
    (status, vec![ready])
}

/// The phase, the reason of the condition `Ready`, and why the phase is not Ready.
fn state(inputs: &Inputs, outcome: &Outcome) -> (MCPRemoteProxyPhase, Ready, String) {
    use MCPRemoteProxyPhase::{Failed, Pending, Ready as IsReady};
    if let Some(message) = outcome.message() {
        return (Failed, Ready::NotReady, message);
    }
    let status = inputs.object.status.as_ref();
    let reported = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    match (inputs.proxy.pods_state(), not_serving(reported)) {
        (PodsState::Running, None) => {
            let message = running_message("Remote proxy is running", &inputs.proxy.pods, "proxy");
            (IsReady, Ready::DeploymentReady, message)
        }
        (PodsState::NotReady(why), _) | (PodsState::Running, Some(why)) => match why {
            NotReady::Failed(message) => (Failed, Ready::DeploymentNotReady, message),
            NotReady::Blocked(message) | NotReady::Starting(message) => {
                (Pending, Ready::DeploymentNotReady, message)
            }
        },
        (PodsState::ScaledToZero, _) => (Pending, Ready::DeploymentNotReady, "scaled to zero".into()),
    }
}
