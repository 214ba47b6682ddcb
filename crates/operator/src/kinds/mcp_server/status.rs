//! What is said of an MCPServer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{MCPServerPhase, MCPServerStatus};
use skep_converge::Child;
use skep_world::Watched;

use super::{address::url, inputs::Inputs};
use crate::{
    conditions::{Finding, conditions},
    driver::Outcome,
    proxied::{NotReady, Pods, hash, not_ready},
    watched::Servers,
};

/// The status fields that the controller owns.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
    let mut found = inputs.findings.conditions.clone();
    let (phase, message) = phase(inputs, outcome);
    found.push(ready(phase, &message));
    let before = inputs.object.status.clone().unwrap_or_default();
    let proxied = &inputs.proxied;
    let status = MCPServerStatus {
        observed_generation: Some(inputs.proxied.generation()),
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(url(&inputs.object)),
        replicas: proxied.replicas(),
        ready_replicas: Some(proxied.running()).filter(|running| *running > 0),
        selector: Some(proxied.identity.selector()),
        tool_config_hash: hash(&proxied.tools, |config| &config.spec),
        external_auth_config_hash: hash(&proxied.external_auth, |config| &config.spec),
        auth_server_config_hash: hash(&proxied.auth_server, |config| &config.spec),
        authz_config_hash: hash(&proxied.authz, |config| &config.spec),
        oidc_config_hash: hash(&proxied.oidc, |config| &config.spec),
        telemetry_config_hash: hash(&proxied.telemetry, |config| &config.spec),
        webhook_config_hash: hash(&inputs.webhooks, |config| &config.spec),
        conditions: conditions(found, &before.conditions, inputs.proxied.generation(), now),
    };
    let (namespace, name) = (inputs.proxied.identity.namespace.clone(), inputs.proxied.identity.name.clone());
    Child::status(Servers::KIND, namespace, name, json!(status))
}

fn ready(phase: MCPServerPhase, message: &str) -> Finding {
    match phase {
        MCPServerPhase::Ready => Finding::yes("Ready", "Ready", "the server answers requests"),
        _ => Finding::no("Ready", "NotReady", message),
    }
}

/// Where the server is in its life, and why.
fn phase(inputs: &Inputs, outcome: &Outcome) -> (MCPServerPhase, String) {
    match outcome {
        Outcome::Blocked(blocked) => (MCPServerPhase::Failed, blocked.message.clone()),
        Outcome::Failed(error) => (MCPServerPhase::Failed, error.to_string()),
        Outcome::Converged(_) => phase_of_pods(inputs),
    }
}

fn phase_of_pods(inputs: &Inputs) -> (MCPServerPhase, String) {
    match (inputs.proxied.pods_together(), server_not_ready(inputs)) {
        (Pods::None, _) => (MCPServerPhase::Stopped, "scaled to zero".into()),
        // A proxy waits for its server before it is ready itself.
        (Pods::NotReady(proxy), Some(server)) => phase_of(proxy.because_of(server)),
        (Pods::NotReady(proxy), None) => phase_of(proxy),
        (Pods::Running, _) if inputs.server.is_none() => {
            (MCPServerPhase::Pending, "the proxy runs, and the server's StatefulSet is being made".into())
        }
        // One that takes long to find its server says that it is ready, for restarting it would help nobody.
        (Pods::Running, Some(server)) => phase_of(server),
        (Pods::Running, None) => (MCPServerPhase::Ready, String::new()),
    }
}

/// Why none of the server's own pods is ready, where there should be some.
fn server_not_ready(inputs: &Inputs) -> Option<NotReady> {
    let server = inputs.server.as_ref().filter(|server| server.waits)?;
    Some(not_ready(&server.pods, "server"))
}

fn phase_of(why: NotReady) -> (MCPServerPhase, String) {
    match why {
        NotReady::Failed(message) => (MCPServerPhase::Failed, message),
        NotReady::Stuck(message) | NotReady::OnTheirWay(message) => (MCPServerPhase::Pending, message),
    }
}
