//! What is said of an MCPServer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{MCPServerPhase, MCPServerStatus, ProxyMode, Transport};
use skep_converge::Child;
use skep_world::Watched;

use super::inputs::Inputs;
use crate::{
    conditions::{Finding, conditions},
    driver::Outcome,
    facts::PodState,
    reference::{Reference, config_hash, object},
    watched::Servers,
};

/// The status fields that the controller owns.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
    let mut found = inputs.findings.conditions.clone();
    let (phase, message) = phase(inputs, outcome);
    found.push(ready(phase, &message));
    let before = inputs.object.status.clone().unwrap_or_default();
    let running = running(inputs);
    let status = MCPServerStatus {
        observed_generation: Some(inputs.generation()),
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(url(inputs)),
        replicas: inputs
            .deployment
            .as_ref()
            .map(|deployment| deployment.replicas)
            .filter(|replicas| *replicas > 0),
        ready_replicas: Some(running).filter(|running| *running > 0),
        selector: Some(inputs.identity.selector()),
        tool_config_hash: hash(&inputs.tools, |object| config_hash(&object.spec)),
        external_auth_config_hash: hash(&inputs.external_auth, |object| config_hash(&object.spec)),
        auth_server_config_hash: hash(&inputs.auth_server, |object| config_hash(&object.spec)),
        authz_config_hash: hash(&inputs.authz, |object| config_hash(&object.spec)),
        oidc_config_hash: hash(&inputs.oidc, |object| config_hash(&object.spec)),
        telemetry_config_hash: hash(&inputs.telemetry, |object| config_hash(&object.spec)),
        webhook_config_hash: hash(&inputs.webhooks, |object| config_hash(&object.spec)),
        conditions: conditions(found, &before.conditions, inputs.generation(), now),
    };
    let (namespace, name) = (inputs.identity.namespace.clone(), inputs.identity.name.clone());
    Child::status(Servers::KIND, namespace, name, json!(status))
}

/// The hash of a configuration that is in use.
fn hash<K>(reference: &Option<Reference<K>>, spec: impl FnOnce(&K) -> String) -> Option<String> {
    object(reference).map(spec)
}

fn ready(phase: MCPServerPhase, message: &str) -> Finding {
    match phase {
        MCPServerPhase::Ready => Finding::yes("Ready", "Ready", "the server answers requests"),
        _ => Finding::no("Ready", "NotReady", message),
    }
}

fn running(inputs: &Inputs) -> i32 {
    let running = inputs.pods.iter().filter(|pod| pod.state == PodState::Running).count();
    running.try_into().unwrap_or(i32::MAX)
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
    if inputs.deployment.as_ref().is_some_and(|deployment| deployment.wanted == 0) {
        return (MCPServerPhase::Stopped, "scaled to zero".into());
    }
    if running(inputs) > 0 {
        return if inputs.stateful_set {
            (MCPServerPhase::Ready, String::new())
        } else {
            (MCPServerPhase::Pending, "the proxy runs, and the server's StatefulSet is being made".into())
        };
    }
    let failure = inputs.pods.iter().find_map(|pod| match &pod.state {
        PodState::Failed(reason) => Some(reason),
        _ => None,
    });
    match failure {
        Some(reason) => (MCPServerPhase::Failed, format!("the proxy's pod fails: {reason}")),
        None => (MCPServerPhase::Pending, "the proxy's pods are on their way".into()),
    }
}

/// The address of the server within the cluster.
fn url(inputs: &Inputs) -> String {
    let spec = inputs.spec();
    let base = format!(
        "http://{}.{}.svc.cluster.local:{}",
        inputs.service(),
        inputs.identity.namespace,
        spec.proxy_port()
    );
    let sse = match spec.transport() {
        Transport::Stdio => spec.proxy_mode() == ProxyMode::Sse,
        Transport::Sse => true,
        Transport::StreamableHttp => false,
    };
    // Names of objects need no escaping in a URL.
    if sse { format!("{base}/sse#{}", inputs.identity.name) } else { format!("{base}/mcp") }
}
