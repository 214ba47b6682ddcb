//! What can be said of a proxy before anything is built: checks, each with its condition.

use serde_json::Value;
use skep_api::{
    RawObject,
    kinds::{
        ExternalAuthType, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroupPhase, MCPOIDCConfig,
        MCPTelemetryConfig,
    },
};
use skep_strategic_merge::validate_pod_template;

use super::{Proxied, inputs::embedded_server};
use crate::{
    conditions::Finding,
    driver::Blocked,
    parts,
    reference::{Problem, Reference, object},
};

/// The conditions of an object, and the first thing that keeps it from having its children.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) conditions: Vec<Finding>,
    pub(crate) blocked: Option<Blocked>,
}

impl Findings {
    pub(crate) fn note(&mut self, finding: impl Into<Option<Finding>>) {
        self.conditions.extend(finding.into());
    }

    pub(crate) fn block(&mut self, message: impl Into<String>) {
        self.blocked.get_or_insert_with(|| Blocked { message: message.into() });
    }

    /// Notes a reference's condition, and is blocked by its problem.
    pub(crate) fn judge<K>(
        &mut self,
        condition: &Condition,
        reference: &Option<Reference<K>>,
        check: Check<K>,
    ) {
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

/// The condition of a reference: its type, and the reasons that it can have. Without a reason there is no condition,
/// and the phase and its message tell.
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) type_: &'static str,
    pub(crate) valid: Option<&'static str>,
    pub(crate) missing: Option<&'static str>,
    pub(crate) invalid: Option<&'static str>,
}

impl Condition {
    /// A reference to this kind that has no condition.
    pub(crate) const fn untold(kind: &'static str) -> Self {
        Self { kind, type_: "", valid: None, missing: None, invalid: None }
    }

    fn valid(&self) -> Option<Finding> {
        Some(Finding::yes(self.type_, self.valid?, format!("the {} is valid", self.kind)))
    }

    fn problem(&self, problem: &Problem) -> Option<Finding> {
        let reason = match problem {
            Problem::Missing(_) => self.missing,
            Problem::Invalid(_) => self.invalid,
        };
        Some(Finding::no(self.type_, reason?, problem.message()))
    }
}

const TELEMETRY: Condition = Condition {
    kind: "MCPTelemetryConfig",
    type_: "TelemetryConfigRefValidated",
    valid: Some("TelemetryConfigRefValid"),
    missing: Some("TelemetryConfigRefNotFound"),
    invalid: Some("TelemetryConfigRefInvalid"),
};
const OIDC: Condition = Condition {
    kind: "MCPOIDCConfig",
    type_: "OIDCConfigRefValidated",
    valid: Some("OIDCConfigRefValid"),
    missing: Some("OIDCConfigRefNotFound"),
    invalid: Some("OIDCConfigRefNotValid"),
};
const AUTHZ: Condition = Condition {
    kind: "MCPAuthzConfig",
    type_: "AuthzConfigRefValidated",
    valid: Some("AuthzConfigRefValid"),
    missing: Some("AuthzConfigRefNotFound"),
    invalid: Some("AuthzConfigRefNotValid"),
};

pub(crate) fn telemetry(reference: &Option<Reference<MCPTelemetryConfig>>, findings: &mut Findings) {
    findings.judge(&TELEMETRY, reference, |telemetry| parts::telemetry::check(&telemetry.spec));
}

pub(crate) fn oidc(reference: &Option<Reference<MCPOIDCConfig>>, findings: &mut Findings) {
    findings.judge(&OIDC, reference, |oidc| parts::oidc::check(&oidc.spec));
}

pub(crate) fn authz(reference: &Option<Reference<MCPAuthzConfig>>, findings: &mut Findings) {
    findings.judge(&AUTHZ, reference, |authz| parts::authz::check(&authz.spec));
}

/// A proxy without its group runs all the same, so this never blocks.
pub(crate) fn group(proxied: &Proxied) -> Option<Finding> {
    const TYPE: &str = "GroupRefValidated";
    let reference = proxied.group.as_ref()?;
    Some(match reference.checked("MCPGroup", |_| Ok(())) {
        Err(problem) => Finding::no(TYPE, "GroupRefNotFound", problem.message()),
        Ok(group) => {
            let phase = group.status.as_ref().and_then(|status| status.phase);
            // A group that nobody has looked at yet is one all the same.
            if phase == Some(MCPGroupPhase::Failed) {
                let message = format!("the MCPGroup {} is not ready", reference.name);
                Finding::no(TYPE, "GroupRefNotReady", message)
            } else {
                Finding::yes(
                    TYPE,
                    "GroupRefIsValid",
                    format!("it is a member of the MCPGroup {}", reference.name),
                )
            }
        }
    })
}

/// Pods wait for a ConfigMap that is not there, so this is told and does not block.
pub(crate) fn ca_bundle(proxied: &Proxied) -> Option<Finding> {
    const TYPE: &str = "CABundleRefValidated";
    let oidc = object(&proxied.oidc)?;
    let bundle = parts::oidc::ca_bundle(&oidc.spec)?;
    let (config_map, key) = (bundle.config_map, bundle.key);
    Some(match proxied.config_maps.get(config_map) {
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

pub(crate) fn ignored_provider(proxied: &Proxied) -> Option<Finding> {
    let inline = proxied.spec().authz_config?.inline.as_ref()?;
    inline.primary_upstream_provider.as_ref()?;
    let kind = proxied.identity.kind.kind;
    Some(Finding::yes(
        "AuthzPrimaryUpstreamProviderIgnored",
        "PrimaryUpstreamProviderIgnored",
        format!("authzConfig.inline.primaryUpstreamProvider has no effect on an {kind}: remove it"),
    ))
}

/// What is odd about policies that the object brings itself. Those of an MCPAuthzConfig are told there.
pub(crate) fn policies(proxied: &Proxied) -> Option<Finding> {
    if proxied.authz.is_some() {
        return None;
    }
    let config = proxied.spec().authz_config?;
    let document = proxied.authz_document().ok()??;
    let place = match (&config.inline, &config.config_map) {
        (None, Some(source)) => format!("authzConfig.configMap: ConfigMap {}, ", source.name),
        _ => "authzConfig.inline.".into(),
    };
    parts::authz::warning(&place, &document)
}

pub(crate) fn session_storage(replicas: Option<i32>, shared: bool) -> Finding {
    const TYPE: &str = "SessionStorageWarning";
    if replicas.unwrap_or_default() <= 1 {
        return Finding::no(TYPE, "SessionStorageWarningNotApplicable", "one replica knows all its sessions");
    }
    if shared {
        return Finding::no(TYPE, "SessionStorageConfigured", "the replicas share their sessions in Redis");
    }
    let message =
        "several replicas do not know each other's sessions: set sessionStorage with provider redis";
    Finding::yes(TYPE, "SessionStorageMissingForReplicas", message)
}

/// Its condition has another type and another reason with some kinds.
pub(crate) fn pod_template(
    template: Option<&RawObject>,
    type_: &'static str,
    valid: &'static str,
    findings: &mut Findings,
) {
    let Some(template) = template else { return };
    match validate_pod_template(&Value::Object(template.0.clone())) {
        Ok(()) => findings.note(Finding::yes(type_, valid, "podTemplateSpec is valid")),
        Err(error) => {
            findings.note(Finding::no(type_, "InvalidPodTemplateSpec", error.to_string()));
            findings.block(error.to_string());
        }
    }
}

/// The condition's reasons for what every kind says alike are fixed; those of a good and of a missing one are not.
pub(crate) fn external_auth(
    proxied: &Proxied,
    valid: Option<&'static str>,
    missing: Option<&'static str>,
    findings: &mut Findings,
) {
    const TYPE: &str = "ExternalAuthConfigValidated";
    let Some(reference) = &proxied.external_auth else { return };
    let (reason, message) = match checked_auth(reference) {
        Ok(auth) => match embedded_server_problem(proxied, auth) {
            None => {
                let valid =
                    valid.map(|reason| Finding::yes(TYPE, reason, "the MCPExternalAuthConfig is valid"));
                return findings.note(valid);
            }
            Some((ServerProblem::Upstreams, message)) => (Some("MultiUpstreamNotSupported"), message),
            Some((ServerProblem::Config, message)) => (Some("InvalidConfig"), message),
        },
        Err(Problem::Missing(message)) => (missing, message),
        Err(Problem::Invalid(message)) => (Some("InvalidExternalAuthConfig"), message),
    };
    findings.note(reason.map(|reason| Finding::no(TYPE, reason, message.clone())));
    findings.block(message);
}

pub(crate) fn auth_server(proxied: &Proxied, findings: &mut Findings) {
    const TYPE: &str = "AuthServerRefValidated";
    let Some(reference) = &proxied.auth_server else { return };
    let (reason, message) = match checked_auth(reference) {
        Ok(auth) if auth.spec.type_ != ExternalAuthType::EmbeddedAuthServer => {
            let (name, type_) = (&reference.name, auth.spec.type_.as_str());
            let message =
                format!("authServerRef needs type embeddedAuthServer, and {name} is of type {type_}");
            ("AuthServerRefInvalidType", message)
        }
        Ok(auth) => match embedded_server_problem(proxied, auth) {
            None => {
                let valid = Finding::yes(TYPE, "AuthServerRefValid", "the authorization server is valid");
                return findings.note(valid);
            }
            Some((ServerProblem::Upstreams, message)) => ("MultiUpstreamNotSupported", message),
            Some((ServerProblem::Config, message)) => ("AuthServerRefInvalidConfig", message),
        },
        Err(Problem::Missing(message)) => ("AuthServerRefNotFound", message),
        Err(Problem::Invalid(message)) => ("AuthServerRefInvalidConfig", message),
    };
    findings.note(Finding::no(TYPE, reason, message.clone()));
    findings.block(message);
}

fn checked_auth(reference: &Reference<MCPExternalAuthConfig>) -> Result<&MCPExternalAuthConfig, Problem> {
    reference.checked("MCPExternalAuthConfig", |auth| parts::external_auth::check(&auth.spec))
}

/// What is wrong with an authorization server on this object.
enum ServerProblem {
    /// A proxy in front of one server can have one upstream provider.
    Upstreams,
    /// It does not fit the rest of the object.
    Config,
}

fn embedded_server_problem(
    proxied: &Proxied,
    auth: &MCPExternalAuthConfig,
) -> Option<(ServerProblem, String)> {
    let server = embedded_server(auth)?;
    if let Err(message) = parts::auth_server::check_single_upstream(server) {
        return Some((ServerProblem::Upstreams, message));
    }
    let both = object(&proxied.auth_server).and_then(embedded_server).is_some()
        && object(&proxied.external_auth).and_then(embedded_server).is_some();
    if both {
        let message =
            "authServerRef and externalAuthConfigRef both name an authorization server: keep one of them";
        return Some((ServerProblem::Config, message.into()));
    }
    let fits = parts::auth_server::auth_server(server, proxied.oidc_config().as_ref(), &proxied.identity);
    fits.err().map(|message| (ServerProblem::Config, message))
}

/// A pod would wait for ever for a key that is not there; so it is said before one is made.
pub(crate) fn secrets(proxied: &Proxied, findings: &mut Findings) {
    if let Some(problem) = proxied.missing_secrets().next() {
        findings.block(problem.message);
    }
}
