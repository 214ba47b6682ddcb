//! What is said of an MCPRemoteProxy.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use skep_api::kinds::{MCPRemoteProxyPhase, MCPRemoteProxyStatus};
use skep_converge::Child;
use skep_world::Watched;

use super::{address::url, inputs::Inputs};
use crate::{
    conditions::{Finding, conditions},
    driver::Outcome,
    proxied::{NotReady, Pods, hash},
    watched::RemoteProxies,
};

/// The status fields that the controller owns.
pub(super) fn status(inputs: &Inputs, outcome: &Outcome, now: &Time) -> Child {
    let proxied = &inputs.proxied;
    let (phase, ready, message) = state(inputs, outcome);
    let mut found = inputs.findings.conditions.clone();
    found.push(ready);
    let before = inputs.object.status.clone().unwrap_or_default();
    let status = MCPRemoteProxyStatus {
        observed_generation: Some(proxied.generation()),
        phase: Some(phase),
        message: Some(message).filter(|message| !message.is_empty()),
        url: Some(url(&inputs.object)),
        // Nothing here makes the proxy reachable from outside.
        external_url: None,
        replicas: proxied.replicas(),
        selector: Some(proxied.identity.selector()),
        tool_config_hash: hash(&proxied.tools, |config| &config.spec),
        external_auth_config_hash: hash(&proxied.external_auth, |config| &config.spec),
        auth_server_config_hash: hash(&proxied.auth_server, |config| &config.spec),
        authz_config_hash: hash(&proxied.authz, |config| &config.spec),
        oidc_config_hash: hash(&proxied.oidc, |config| &config.spec),
        telemetry_config_hash: hash(&proxied.telemetry, |config| &config.spec),
        conditions: conditions(found, &before.conditions, proxied.generation(), now),
    };
    let (namespace, name) = (proxied.identity.namespace.clone(), proxied.identity.name.clone());
    Child::status(RemoteProxies::KIND, namespace, name, json!(status))
}

/// Where the proxy is in its life, whether it is ready, and why.
fn state(inputs: &Inputs, outcome: &Outcome) -> (MCPRemoteProxyPhase, Finding, String) {
    let not_ready = |phase, reason: &str, message: String| {
        (phase, Finding::no("Ready", reason, message.clone()), message)
    };
    let failed = |message| not_ready(MCPRemoteProxyPhase::Failed, "NotReady", message);
    let pending =
        |message: &str| not_ready(MCPRemoteProxyPhase::Pending, "DeploymentNotReady", message.into());
    match outcome {
        Outcome::Blocked(blocked) => failed(blocked.message.clone()),
        Outcome::Failed(error) => failed(error.to_string()),
        Outcome::Converged(_) => match inputs.proxied.pods_together() {
            Pods::Running => {
                let ready = Finding::yes("Ready", "DeploymentReady", "the proxy answers requests");
                (MCPRemoteProxyPhase::Ready, ready, String::new())
            }
            Pods::NotReady(NotReady::Failed(message)) => {
                not_ready(MCPRemoteProxyPhase::Failed, "DeploymentNotReady", message)
            }
            Pods::NotReady(NotReady::Stuck(message) | NotReady::OnTheirWay(message)) => pending(&message),
            Pods::None => pending("scaled to zero"),
        },
    }
}
