//! What can be said of an MCPServer before anything is built: a chain of checks, each with its condition.

use serde_json::Value;
use skep_api::{
    kinds::{ExternalAuthType, MCPExternalAuthConfig, MCPGroupPhase, Transport},
    workload::SessionProvider,
};
use skep_strategic_merge::validate_pod_template;

use super::{
    inputs::Inputs,
    run_config::{embedded_server, oidc},
};
use crate::{
    conditions::Finding,
    driver::Blocked,
    parts,
    reference::{Problem, Reference, object},
};

/// The conditions of an object, and the first thing that keeps it from having its children.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) conditions: Vec<Finding>,
    pub(super) blocked: Option<Blocked>,
}

impl Findings {
    fn note(&mut self, finding: Option<Finding>) {
        self.conditions.extend(finding);
    }

    fn block(&mut self, message: impl Into<String>) {
        self.blocked.get_or_insert_with(|| Blocked { message: message.into() });
    }

    /// Notes a reference's condition, and is blocked by its problem.
    fn judge<K>(&mut self, condition: &Condition, reference: Option<&Reference<K>>, check: Check<K>) {
        let Some(reference) = reference else { return };
        match reference.checked(condition.kind, check) {
            Ok(_) => self.note(condition.valid()),
            Err(problem) => {
                self.note(condition.problem(&problem));
                self.block(problem.message());
            }
        }
    }
}

type Check<K> = fn(&K) -> Result<(), String>;

/// The condition of a reference: its type, and the reasons that it can have.
struct Condition {
    kind: &'static str,
    type_: Option<&'static str>,
    valid: &'static str,
    missing: &'static str,
    invalid: &'static str,
}

impl Condition {
    fn valid(&self) -> Option<Finding> {
        Some(Finding::yes(self.type_?, self.valid, format!("the {} is valid", self.kind)))
    }

    fn problem(&self, problem: &Problem) -> Option<Finding> {
        let reason = match problem {
            Problem::Missing(_) => self.missing,
            Problem::Invalid(_) => self.invalid,
        };
        Some(Finding::no(self.type_?, reason, problem.message()))
    }
}

/// These two kinds have no condition on an MCPServer; their problems are told by the phase and its message.
const TOOLS: Condition =
    Condition { kind: "MCPToolConfig", type_: None, valid: "", missing: "", invalid: "" };
const WEBHOOKS: Condition =
    Condition { kind: "MCPWebhookConfig", type_: None, valid: "", missing: "", invalid: "" };
const TELEMETRY: Condition = Condition {
    kind: "MCPTelemetryConfig",
    type_: Some("TelemetryConfigRefValidated"),
    valid: "TelemetryConfigRefValid",
    missing: "TelemetryConfigRefNotFound",
    invalid: "TelemetryConfigRefInvalid",
};
const OIDC: Condition = Condition {
    kind: "MCPOIDCConfig",
    type_: Some("OIDCConfigRefValidated"),
    valid: "OIDCConfigRefValid",
    missing: "OIDCConfigRefNotFound",
    invalid: "OIDCConfigRefNotValid",
};
const AUTHZ: Condition = Condition {
    kind: "MCPAuthzConfig",
    type_: Some("AuthzConfigRefValidated"),
    valid: "AuthzConfigRefValid",
    missing: "AuthzConfigRefNotFound",
    invalid: "AuthzConfigRefNotValid",
};

/// All checks, in the order in which the first problem counts.
pub(super) fn findings(inputs: &Inputs) -> Findings {
    let mut findings = Findings::default();
    findings.note(group(inputs));
    findings.note(ca_bundle(inputs));
    findings.note(ignored_provider(inputs));
    findings.note(Some(stdio_cap(inputs)));
    findings.note(Some(session_storage(inputs)));
    findings.note(Some(rate_limit(inputs)));
    pod_template(inputs, &mut findings);
    findings.judge(&TOOLS, inputs.tools.as_ref(), |tools| parts::tools::check(&tools.spec));
    findings
        .judge(&TELEMETRY, inputs.telemetry.as_ref(), |telemetry| parts::telemetry::check(&telemetry.spec));
    external_auth(inputs, &mut findings);
    findings.judge(&WEBHOOKS, inputs.webhooks.as_ref(), |webhooks| parts::webhooks::check(&webhooks.spec));
    auth_server(inputs, &mut findings);
    findings.judge(&OIDC, inputs.oidc.as_ref(), |oidc| parts::oidc::check(&oidc.spec));
    findings.judge(&AUTHZ, inputs.authz.as_ref(), |authz| parts::authz::check(&authz.spec));
    secrets(inputs, &mut findings);
    findings
}

/// A server without its group runs all the same, so this never blocks.
fn group(inputs: &Inputs) -> Option<Finding> {
    const TYPE: &str = "GroupRefValidated";
    let reference = inputs.group.as_ref()?;
    Some(match reference.checked("MCPGroup", |_| Ok(())) {
        Err(problem) => Finding::no(TYPE, "GroupRefNotFound", problem.message()),
        Ok(group) => {
            let phase = group.status.as_ref().and_then(|status| status.phase).unwrap_or_default();
            if phase == MCPGroupPhase::Ready {
                Finding::yes(TYPE, "GroupRefIsValid", format!("the MCPGroup {} is ready", reference.name))
            } else {
                let message = format!("the MCPGroup {} is {}", reference.name, phase.as_str());
                Finding::no(TYPE, "GroupRefNotReady", message)
            }
        }
    })
}

/// Pods wait for a ConfigMap that is not there, so this is told and does not block.
fn ca_bundle(inputs: &Inputs) -> Option<Finding> {
    const TYPE: &str = "CABundleRefValidated";
    let oidc = inputs.oidc.as_ref()?.object()?;
    let bundle = parts::oidc::ca_bundle(&oidc.spec)?;
    let (config_map, key) = (bundle.config_map, bundle.key);
    Some(match inputs.config_maps.get(config_map) {
        Some(Some(data)) if data.contains_key(key) => Finding::yes(
            TYPE,
            "CABundleRefValid",
            format!("the certificates are in the ConfigMap {config_map}"),
        ),
        Some(Some(_)) => Finding::no(
            TYPE,
            "CABundleRefInvalid",
            format!("the ConfigMap {config_map} has no key {key}: add it"),
        ),
        _ => {
            Finding::no(TYPE, "CABundleRefNotFound", format!("there is no ConfigMap {config_map}: create it"))
        }
    })
}

fn ignored_provider(inputs: &Inputs) -> Option<Finding> {
    let inline = inputs.spec().authz_config.as_ref()?.inline.as_ref()?;
    inline.primary_upstream_provider.as_ref()?;
    Some(Finding::yes(
        "AuthzPrimaryUpstreamProviderIgnored",
        "PrimaryUpstreamProviderIgnored",
        "authzConfig.inline.primaryUpstreamProvider has no effect on an MCPServer: remove it",
    ))
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

fn session_storage(inputs: &Inputs) -> Finding {
    const TYPE: &str = "SessionStorageWarning";
    let spec = inputs.spec();
    if spec.replicas.unwrap_or_default() <= 1 {
        return Finding::no(TYPE, "SessionStorageWarningNotApplicable", "one replica knows all its sessions");
    }
    let provider = spec.session_storage.as_ref().map(|storage| storage.provider);
    if provider == Some(SessionProvider::Redis) {
        return Finding::no(TYPE, "SessionStorageConfigured", "the replicas share their sessions in Redis");
    }
    let message =
        "several replicas do not know each other's sessions: set sessionStorage with provider redis";
    Finding::yes(TYPE, "SessionStorageMissingForReplicas", message)
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

fn pod_template(inputs: &Inputs, findings: &mut Findings) {
    const TYPE: &str = "PodTemplateValid";
    let Some(template) = &inputs.spec().pod_template_spec else { return };
    match validate_pod_template(&Value::Object(template.0.clone())) {
        Ok(()) => findings.note(Some(Finding::yes(TYPE, "ValidPodTemplateSpec", "podTemplateSpec is valid"))),
        Err(error) => {
            findings.note(Some(Finding::no(TYPE, "InvalidPodTemplateSpec", error.to_string())));
            findings.block(error.to_string());
        }
    }
}

/// A healthy one has no condition on an MCPServer: only what is wrong is said.
fn external_auth(inputs: &Inputs, findings: &mut Findings) {
    const TYPE: &str = "ExternalAuthConfigValidated";
    let Some(reference) = &inputs.external_auth else { return };
    let (reason, message) = match checked_auth(reference) {
        Ok(auth) => match embedded_server_problem(inputs, auth) {
            None => return,
            Some((ServerProblem::Upstreams, message)) => ("MultiUpstreamNotSupported", message),
            Some((ServerProblem::Config, message)) => ("InvalidConfig", message),
        },
        Err(Problem::Missing(message)) => return findings.block(message),
        Err(Problem::Invalid(message)) => ("InvalidExternalAuthConfig", message),
    };
    findings.note(Some(Finding::no(TYPE, reason, message.clone())));
    findings.block(message);
}

fn auth_server(inputs: &Inputs, findings: &mut Findings) {
    const TYPE: &str = "AuthServerRefValidated";
    let Some(reference) = &inputs.auth_server else { return };
    let (reason, message) = match checked_auth(reference) {
        Ok(auth) if auth.spec.type_ != ExternalAuthType::EmbeddedAuthServer => {
            let (name, type_) = (&reference.name, auth.spec.type_.as_str());
            let message =
                format!("authServerRef needs type embeddedAuthServer, and {name} is of type {type_}");
            ("AuthServerRefInvalidType", message)
        }
        Ok(auth) => match embedded_server_problem(inputs, auth) {
            None => {
                let valid = Finding::yes(TYPE, "AuthServerRefValid", "the authorization server is valid");
                return findings.note(Some(valid));
            }
            Some((ServerProblem::Upstreams, message)) => ("MultiUpstreamNotSupported", message),
            Some((ServerProblem::Config, message)) => ("AuthServerRefInvalidConfig", message),
        },
        Err(Problem::Missing(message)) => ("AuthServerRefNotFound", message),
        Err(Problem::Invalid(message)) => ("AuthServerRefInvalidConfig", message),
    };
    findings.note(Some(Finding::no(TYPE, reason, message.clone())));
    findings.block(message);
}

fn checked_auth(reference: &Reference<MCPExternalAuthConfig>) -> Result<&MCPExternalAuthConfig, Problem> {
    reference.checked("MCPExternalAuthConfig", |auth| parts::external_auth::check(&auth.spec))
}

/// What is wrong with an authorization server on this object.
enum ServerProblem {
    /// An MCPServer can have one upstream provider.
    Upstreams,
    /// It does not fit the rest of the object.
    Config,
}

fn embedded_server_problem(inputs: &Inputs, auth: &MCPExternalAuthConfig) -> Option<(ServerProblem, String)> {
    let server = embedded_server(auth)?;
    if let Err(message) = parts::auth_server::check_single_upstream(server) {
        return Some((ServerProblem::Upstreams, message));
    }
    let both = object(&inputs.auth_server).and_then(embedded_server).is_some()
        && object(&inputs.external_auth).and_then(embedded_server).is_some();
    if both {
        let message =
            "authServerRef and externalAuthConfigRef both name an authorization server: keep one of them";
        return Some((ServerProblem::Config, message.into()));
    }
    let fits = parts::auth_server::auth_server(server, oidc(inputs).as_ref(), &inputs.identity);
    fits.err().map(|message| (ServerProblem::Config, message))
}

/// A pod would wait for ever for a key that is not there; so it is said before one is made.
fn secrets(inputs: &Inputs, findings: &mut Findings) {
    for (field, secret) in inputs.required_secrets() {
        let problem = match inputs.secrets.get(&secret.name) {
            Some(Some(keys)) if keys.contains(&secret.key) => continue,
            Some(Some(_)) => format!("{field}: the Secret {} has no key {}: add it", secret.name, secret.key),
            _ => {
                format!("{field}: there is no Secret {}: create it with the key {}", secret.name, secret.key)
            }
        };
        findings.block(problem);
    }
}
