//! What can be said of a VirtualMCPServer before anything is built: a chain of checks, each with its condition.

use std::collections::HashSet;

use skep_api::{
    auth_server::{EmbeddedAuthServer, UpstreamType},
    kinds::{EmbeddingServer, EmbeddingServerPhase, MCPGroupPhase, OutgoingAuthSource},
    workload::SessionProvider,
};

use super::{backends::backends, checks::check, inputs::Inputs};
use crate::{
    conditions::Finding,
    parts::{self, strategy::provider},
    proxied::{AuthzProblem, Findings, findings as shared},
    reference::{Problem, object},
};

/// The conditions, what keeps the server from having its children, and whether that will pass.
#[derive(Default)]
pub(super) struct Found {
    pub(super) findings: Findings,
    /// What is missing is somewhere else, and may come. Otherwise the object itself must change.
    pub(super) waits: bool,
}

impl Found {
    fn note(&mut self, finding: impl Into<Option<Finding>>) {
        self.findings.note(finding);
    }

    /// Notes a condition that does not hold. The object must change.
    fn fail(&mut self, finding: Finding) {
        self.findings.block(finding.message.clone());
        self.note(finding);
    }

    /// Waits for something, unless it has failed already.
    fn wait(&mut self, message: impl Into<String>) {
        self.waits |= self.findings.blocked.is_none();
        self.findings.block(message);
    }

    /// Takes in a shared check. A reference that leads nowhere may be filled any time.
    fn judge(&mut self, missing: bool, check: impl FnOnce(&mut Findings)) {
        let before = self.findings.blocked.is_some();
        check(&mut self.findings);
        self.waits |= !before && missing && self.findings.blocked.is_some();
    }
}

/// All checks, in the order in which the first problem counts.
pub(super) fn findings(inputs: &Inputs) -> Found {
    let mut found = Found::default();
    let spec = inputs.spec();
    match check(inputs) {
        Ok(()) => found.note(Finding::yes("Valid", "ValidationSucceeded", "the spec is valid")),
        Err(message) => found.fail(Finding::no("Valid", "ValidationFailed", message)),
    }
    const TEMPLATE: &str = "PodTemplateSpecValid";
    shared::pod_template(spec.pod_template_spec.as_ref(), TEMPLATE, TEMPLATE, &mut found.findings);
    group(inputs, &mut found);
    composite_tools(inputs, &mut found);
    embedding(inputs, &mut found);
    if let Some(server) = inputs.auth_server() {
        found.note(synthesized_identity(server));
    }
    let shares =
        spec.session_storage.as_ref().is_some_and(|storage| storage.provider == SessionProvider::Redis);
    found.note(shared::session_storage(spec.replicas, shares));
    found.judge(object(&inputs.oidc).is_none(), |findings| shared::oidc(&inputs.oidc, findings));
    found.judge(object(&inputs.authz).is_none(), |findings| shared::authz(&inputs.authz, findings));
    found.judge(object(&inputs.telemetry).is_none(), |findings| {
        shared::telemetry(&inputs.telemetry, findings)
    });
    // What depends on a reference that cannot be followed is not known.
    let followed = spec.incoming_auth.oidc_config_ref.is_some() == object(&inputs.oidc).is_some()
        && spec.incoming_auth.authz_config_ref.is_some() == object(&inputs.authz).is_some();
    if followed {
        auth_server(inputs, &mut found);
        authentication(inputs, &mut found);
    }
    tool_configs(inputs, &mut found);
    outgoing(inputs, &mut found);
    found
}

fn group(inputs: &Inputs, found: &mut Found) {
    const TYPE: &str = "GroupRefValidated";
    let name = &inputs.group.name;
    match inputs.group.checked("MCPGroup", |_| Ok(())) {
        Err(problem) => found.fail(Finding::no(TYPE, "GroupRefNotFound", problem.message())),
        // A group that nobody has looked at yet is one all the same.
        Ok(group) if group.status.as_ref().and_then(|status| status.phase) == Some(MCPGroupPhase::Failed) => {
            let message = format!("the MCPGroup {name} is not ready");
            found.note(Finding::no(TYPE, "GroupRefNotReady", message.clone()));
            found.wait(message);
        }
        Ok(_) => found.note(Finding::yes(TYPE, "GroupRefValid", format!("the members of {name} are served"))),
    }
}

fn composite_tools(inputs: &Inputs, found: &mut Found) {
    const TYPE: &str = "CompositeToolRefsValidated";
    let config = inputs.config();
    let mut names: HashSet<&str> = config.composite_tools.iter().map(|tool| tool.name.as_str()).collect();
    for reference in &inputs.composite_tools {
        let checked = reference.checked("VirtualMCPCompositeToolDefinition", |definition| {
            parts::workflow::check_as_part(&definition.spec.tool)
        });
        match checked {
            Err(problem @ Problem::Missing(_)) => {
                return found.fail(Finding::no(TYPE, "CompositeToolRefNotFound", problem.message()));
            }
            Err(problem @ Problem::Invalid(_)) => {
                return found.fail(Finding::no(TYPE, "CompositeToolRefInvalid", problem.message()));
            }
            Ok(definition) if !names.insert(&definition.spec.tool.name) => {
                let message = format!(
                    "config.compositeToolRefs: the tool {:?} of {} is there twice: rename one of them",
                    definition.spec.tool.name, reference.name
                );
                return found.fail(Finding::no(TYPE, "CompositeToolRefInvalid", message));
            }
            Ok(_) => {}
        }
    }
    found.note(Finding::yes(TYPE, "CompositeToolRefsValid", "all composite tools can be run"));
}

fn embedding(inputs: &Inputs, found: &mut Found) {
    const TYPE: &str = "EmbeddingServerReady";
    let Some(reference) = &inputs.embedding else { return };
    let name = &reference.name;
    match reference.checked("EmbeddingServer", |_| Ok(())) {
        Err(problem) => found.fail(Finding::no(TYPE, "EmbeddingServerNotFound", problem.message())),
        Ok(server) => match embedding_phase(server) {
            Some(EmbeddingServerPhase::Ready) => {
                found.note(Finding::yes(TYPE, "EmbeddingServerReady", format!("{name} answers requests")));
            }
            Some(EmbeddingServerPhase::Failed) => {
                let message = format!("the EmbeddingServer {name} has failed: see its status");
                found.fail(Finding::no(TYPE, "EmbeddingServerNotReady", message));
            }
            _ => {
                let message = format!("the EmbeddingServer {name} is not ready yet");
                found.note(Finding::no(TYPE, "EmbeddingServerNotReady", message.clone()));
                found.wait(message);
            }
        },
    }
}

/// Its phase, which counts as ready only while a pod is.
fn embedding_phase(server: &EmbeddingServer) -> Option<EmbeddingServerPhase> {
    let status = server.status.as_ref()?;
    let ready = status.ready_replicas.unwrap_or_default() > 0;
    status.phase.filter(|phase| ready || *phase != EmbeddingServerPhase::Ready)
}

/// Users of a provider that says nothing about them get names that are made up.
fn synthesized_identity(server: &EmbeddedAuthServer) -> Finding {
    const TYPE: &str = "IdentitySynthesized";
    let providers = server.upstream_providers.iter().filter(|one| one.type_ == UpstreamType::Oauth2);
    let silent = providers.filter(|one| {
        one.oauth2_config
            .as_ref()
            .is_some_and(|oauth2| oauth2.user_info.is_none() && oauth2.identity_from_token.is_none())
    });
    let mut names: Vec<String> = silent.map(|one| provider(&one.name)).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Finding::no(TYPE, "AllUpstreamsHaveUserInfo", "every provider says who its users are");
    }
    let message = format!(
        "users of {} are known by made-up names: set oauth2Config.userInfo or identityFromToken",
        names.join(", ")
    );
    Finding::yes(TYPE, "OAuth2UpstreamWithoutUserInfo", message)
}

fn auth_server(inputs: &Inputs, found: &mut Found) {
    const TYPE: &str = "AuthServerConfigValidated";
    let Some(server) = inputs.auth_server() else {
        if let Some((field, _)) = inputs.named_provider() {
            let message =
                format!("{field}: there is no provider without authServerConfig: set it, or leave this out");
            found.fail(Finding::no(TYPE, "AuthzPrimaryProviderRequiresAuthServer", message));
        }
        return;
    };
    let checked = parts::auth_server::check(server).and_then(|()| inputs.auth_server_config());
    if let Err(error) = checked {
        let message = format!("authServerConfig.{error}");
        return found.fail(Finding::no(TYPE, "AuthServerConfigInvalid", message));
    }
    let policies = inputs.spec().incoming_auth.authz_config.is_some();
    match inputs.named_provider() {
        Some((field, name)) if !server.upstream_providers.iter().any(|one| provider(&one.name) == name) => {
            let message = format!("{field}: {name:?} is not among authServerConfig.upstreamProviders");
            return found.fail(Finding::no(TYPE, "AuthzUpstreamUnknown", message));
        }
        None if policies && server.upstream_providers.len() > 1 => {
            let message = "policies look at tokens of the first of several providers: name one in \
                           authServerConfig.primaryUpstreamProvider";
            found.note(Finding::yes("AuthzUpstreamSelectionWarning", "AuthzUpstreamAutoSelected", message));
        }
        _ => {}
    }
    found.note(Finding::yes(TYPE, "AuthServerConfigValid", "the authorization server is valid"));
}

/// Whether clients can be authenticated, and policies enforced.
fn authentication(inputs: &Inputs, found: &mut Found) {
    const TYPE: &str = "AuthConfigured";
    let required = inputs.required_secrets();
    let missing = required.iter().find_map(|(field, secret)| Some((field, inputs.missing(secret)?)));
    if let Some((field, message)) = missing {
        let message = format!("{field}: {message}");
        found.note(Finding::no(TYPE, "AuthInvalid", message.clone()));
        return found.wait(message);
    }
    match inputs.cedar() {
        Ok(_) => found.note(Finding::yes(TYPE, "AuthValid", "clients are authenticated as the spec says")),
        Err(AuthzProblem::MissingConfigMap(message)) => {
            found.note(Finding::no(TYPE, "AuthzConfigMapNotFound", message.clone()));
            found.wait(message);
        }
        Err(AuthzProblem::InvalidConfigMap(message)) => {
            found.fail(Finding::no(TYPE, "AuthzConfigMapInvalid", message));
        }
        Err(AuthzProblem::Invalid(message)) => found.fail(Finding::no(TYPE, "AuthInvalid", message)),
    }
}

/// They have no condition; the phase and its message tell.
fn tool_configs(inputs: &Inputs, found: &mut Found) {
    for reference in inputs.tool_configs.values() {
        match reference.checked("MCPToolConfig", |tools| parts::tools::check(&tools.spec)) {
            Ok(_) => {}
            Err(Problem::Missing(message)) => found.wait(message),
            Err(Problem::Invalid(message)) => found.findings.block(message),
        }
    }
}

fn outgoing(inputs: &Inputs, found: &mut Found) {
    found.findings.conditions.extend(inputs.ways.findings());
    match inputs.ways.problem() {
        Some((message, true)) => found.wait(message),
        Some((message, false)) => found.findings.block(message),
        None => {}
    }
    // It would take a file without backends for one that says to look for them.
    if inputs.source() == OutgoingAuthSource::Inline && backends(inputs).is_empty() {
        found.wait(format!("the MCPGroup {} has no member that can be served: add one", inputs.group.name));
    }
}
