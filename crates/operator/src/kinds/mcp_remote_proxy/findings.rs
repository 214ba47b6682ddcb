//! What can be said of an MCPRemoteProxy before anything is built: a chain of checks, each with its condition.

use super::inputs::{HEADERS, Inputs};
use crate::{
    conditions::Finding,
    parts,
    proxied::{AuthzProblem, Condition, Findings, findings as shared},
    reference::Found,
};

const TOOLS: Condition = Condition {
    kind: "MCPToolConfig",
    type_: "ToolConfigValidated",
    valid: Some("ToolConfigValid"),
    missing: Some("ToolConfigNotFound"),
    invalid: Some("ToolConfigInvalid"),
};

/// All checks, in the order in which the first problem counts.
pub(super) fn findings(inputs: &Inputs) -> Findings {
    let proxied = &inputs.proxied;
    let mut findings = Findings::default();
    configuration(inputs, &mut findings);
    shared::pod_template(
        inputs.spec().pod_template_spec.as_ref(),
        "PodTemplateValid",
        "ValidPodTemplateSpec",
        &mut findings,
    );
    findings.note(shared::group(proxied));
    findings.note(shared::ca_bundle(proxied));
    findings.note(shared::ignored_provider(proxied));
    findings.note(shared::policies(proxied));
    findings.note(shared::session_storage(proxied.spec().replicas, proxied.spec().shares_sessions()));
    findings.judge(&TOOLS, &proxied.tools, |tools| parts::tools::check(&tools.spec));
    shared::telemetry(&proxied.telemetry, &mut findings);
    shared::external_auth(
        proxied,
        Some("ExternalAuthConfigValid"),
        Some("ExternalAuthConfigNotFound"),
        &mut findings,
    );
    shared::auth_server(proxied, &mut findings);
    shared::oidc(&proxied.oidc, &mut findings);
    shared::authz(&proxied.authz, &mut findings);
    shared::secrets(proxied, &mut findings);
    findings
}

/// What is wrong with the spec, with its reason and whether it is about who may call.
struct Wrong {
    reason: &'static str,
    about_auth: bool,
    message: String,
}

/// Whether the spec can be carried out at all, in one condition.
fn configuration(inputs: &Inputs, findings: &mut Findings) {
    const TYPE: &str = "ConfigurationValid";
    match wrong(inputs) {
        None => findings.note(Finding::yes(TYPE, "ConfigurationValid", "the spec is valid")),
        Some(Wrong { reason, about_auth, message }) => {
            findings.note(Finding::no(TYPE, reason, message.clone()));
            let auth = about_auth.then(|| Finding::no("AuthConfigured", "AuthInvalid", message.clone()));
            findings.note(auth);
            findings.block(message);
        }
    }
}

fn wrong(inputs: &Inputs) -> Option<Wrong> {
    let (spec, proxied) = (inputs.spec(), &inputs.proxied);
    let auth = |reason, message| Some(Wrong { reason, about_auth: true, message });
    let other = |reason, message| Some(Wrong { reason, about_auth: false, message });
    if let Some(reference) =
        proxied.external_auth.as_ref().filter(|auth| matches!(auth.found, Found::Missing))
    {
        let problem = reference.checked("MCPExternalAuthConfig", |_| Ok(())).err()?;
        return auth("ExternalAuthConfigFetchError", problem.message().into());
    }
    let allow_private = spec.allow_private_endpoint.unwrap_or_default();
    let url = parts::remote_url::check("remoteUrl", &spec.remote_url, allow_private, "allowPrivateEndpoint");
    if let Err(message) = url {
        return other("RemoteURLInvalid", message);
    }
    // What an MCPAuthzConfig says has a condition of its own.
    if proxied.authz.is_none() {
        match proxied.authz_document() {
            Ok(_) => {}
            Err(AuthzProblem::Invalid(message)) => return auth("AuthzPolicySyntaxInvalid", message),
            Err(AuthzProblem::MissingConfigMap(message)) => return auth("AuthzConfigMapNotFound", message),
            Err(AuthzProblem::InvalidConfigMap(message)) => return auth("AuthzConfigMapInvalid", message),
        }
    }
    if let Some(Err(message)) = spec.header_forward.as_ref().map(parts::header_forward::check) {
        return other("HeaderForwardInvalid", message);
    }
    let missing = proxied.missing_secrets().find(|missing| missing.field == HEADERS)?;
    other("HeaderSecretNotFound", missing.message)
}
