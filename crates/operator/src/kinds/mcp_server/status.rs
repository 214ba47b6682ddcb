//! The status of an MCPServer.

use skep_api::{
    conditions::Ready,
    kinds::{MCPServerPhase, MCPServerStatus},
};

use super::{address::url, inputs::Inputs};
use crate::{
    proxy_workload::{NotReady, PodsState, ProxyStatus, not_ready, not_serving, running_message},
    reconcile::{Condition, Outcome},
};

/// The status fields that the controller owns.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome) -> (MCPServerStatus, Vec<Condition>) {
    let (phase, message) = phase(inputs, outcome);
    let ready = match phase {
        MCPServerPhase::Ready => Condition::new(Ready::Ready, "the server serves requests"),
        _ => Condition::new(Ready::NotReady, message.clone()),
    };
    let status = MCPServerStatus {
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(url(&inputs.object)),
        ready_replicas: Some(inputs.proxy.running()).filter(|running| *running > 0),
        webhook_config_hash: inputs.webhooks.hash(),
        ..MCPServerStatus::of(&inputs.proxy)
    };
    (status, vec![ready])
}

/// The phase, and why it is not Ready.
fn phase(inputs: &Inputs, outcome: &Outcome) -> (MCPServerPhase, String) {
    match outcome.message() {
        Some(message) => (MCPServerPhase::Failed, message),
        None => phase_of_pods(inputs),
    }
}

fn phase_of_pods(inputs: &Inputs) -> (MCPServerPhase, String) {
    let status = inputs.object.status.as_ref();
    let reported = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    match (inputs.proxy.pods_state(), server_not_ready(inputs)) {
        (PodsState::ScaledToZero, _) => (MCPServerPhase::Stopped, "scaled to zero".into()),
        // A proxy waits for its server before it is ready itself.
        (PodsState::NotReady(proxy), Some(server)) => phase_of(proxy.because_of(server)),
        (PodsState::NotReady(proxy), None) => phase_of(proxy),
        (PodsState::Running, _) if inputs.server.is_none() => {
            (MCPServerPhase::Pending, "the proxy runs and creates the server's StatefulSet".into())
        }
        // A proxy that waits long for its server reports ready, because a restart of the proxy would not help.
        (PodsState::Running, Some(server)) => phase_of(server),
        (PodsState::Running, None) => match not_serving(reported) {
            Some(why) => phase_of(why),
            None => {
                (MCPServerPhase::Ready, running_message("MCP server is running", &inputs.proxy.pods, "proxy"))
            }
        },
    }
}

/// Why none of the server's own pods is ready, if pods are desired.
fn server_not_ready(inputs: &Inputs) -> Option<NotReady> {
    let server = inputs.server.as_ref().filter(|server| server.is_unavailable)?;
    Some(not_ready(&server.pods, "server"))
}

fn phase_of(why: NotReady) -> (MCPServerPhase, String) {
    match why {
        NotReady::Failed(message) => (MCPServerPhase::Failed, message),
        NotReady::Blocked(message) | NotReady::Starting(message) => (MCPServerPhase::Pending, message),
    }
}
