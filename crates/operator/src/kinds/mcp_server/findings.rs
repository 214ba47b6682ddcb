//! What can be said of an MCPServer before anything is built: a chain of checks, each with its condition.

use skep_api::kinds::Transport;

use super::inputs::Inputs;
use crate::{
    conditions::Finding,
    parts,
    proxied::{Condition, Findings, findings as shared},
};

/// These two kinds have no condition on an MCPServer; their problems are told by the phase and its message.
const TOOLS: Condition = Condition::untold("MCPToolConfig");
const WEBHOOKS: Condition = Condition::untold("MCPWebhookConfig");

/// All checks, in the order in which the first problem counts.
pub(super) fn findings(inputs: &Inputs) -> Findings {
    let proxied = &inputs.proxied;
    let mut findings = Findings::default();
    findings.note(shared::group(proxied));
    findings.note(shared::ca_bundle(proxied));
    findings.note(shared::ignored_provider(proxied));
    findings.note(shared::policies(proxied));
    findings.note(stdio_cap(inputs));
    findings.note(shared::session_storage(proxied.spec().replicas, proxied.spec().shares_sessions()));
    findings.note(rate_limit(inputs));
    shared::pod_template(
        inputs.spec().pod_template_spec.as_ref(),
        "PodTemplateValid",
        "ValidPodTemplateSpec",
        &mut findings,
    );
    findings.judge(&TOOLS, &proxied.tools, |tools| parts::tools::check(&tools.spec));
    shared::telemetry(&proxied.telemetry, &mut findings);
    // Only what is wrong is said of it, and that one is missing by the phase alone.
    shared::external_auth(proxied, None, None, &mut findings);
    findings.judge(&WEBHOOKS, &inputs.webhooks, |webhooks| parts::webhooks::check(&webhooks.spec));
    shared::auth_server(proxied, &mut findings);
    shared::oidc(&proxied.oidc, &mut findings);
    shared::authz(&proxied.authz, &mut findings);
    shared::secrets(proxied, &mut findings);
    findings
}

/// One process has one standard input, so a stdio server cannot have two proxies.
fn stdio_cap(inputs: &Inputs) -> Finding {
    const TYPE: &str = "StdioReplicaCapped";
    let spec = inputs.spec();
    if spec.transport() == Transport::Stdio && spec.replicas.unwrap_or_default() > 1 {
        let message = "replicas is held at 1: a stdio server has one process, which one proxy speaks to";
        return Finding::yes(TYPE, "StdioTransportCapAt1", message);
    }
    Finding::no(TYPE, "StdioReplicaCapNotActive", "replicas is not limited")
}

fn rate_limit(inputs: &Inputs) -> Finding {
    const TYPE: &str = "RateLimitConfigValid";
    let spec = inputs.spec();
    let Some(limits) = &spec.rate_limiting else {
        return Finding::yes(TYPE, "RateLimitNotApplicable", "there are no limits");
    };
    let per_user = limits.per_user.is_some() || limits.tools.iter().any(|tool| tool.per_user.is_some());
    if per_user && spec.oidc_config_ref.is_none() && spec.external_auth_config_ref.is_none() {
        let message =
            "rateLimiting.perUser needs callers to be known: set oidcConfigRef or externalAuthConfigRef";
        return Finding::no(TYPE, "PerUserRequiresAuth", message);
    }
    Finding::yes(TYPE, "RateLimitConfigValid", "the limits are valid")
}
