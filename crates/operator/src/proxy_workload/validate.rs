//! The validation that kinds with a proxy or a virtual server share: each check has its condition.

use serde_json::Value;
use skep_api::{
    RawObject,
    auth_server::EmbeddedAuthServer,
    authz::AuthzConfig,
    conditions::{
        AuthServerRefValidated, AuthServerStorageWarning, AuthzConfigRefValidated,
        AuthzPrimaryUpstreamProviderIgnored, ExternalAuthConfigValidated, GroupRefValidated, Reason,
        SessionStorageWarning,
    },
    kinds::{
        ExternalAuthType, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPGroupPhase, MCPRemoteProxy,
    },
};
use skep_config::{FieldError, Json};
use skep_strategic_merge::validate_pod_template;

use super::{PoliciesError, ProxyWorkload, inputs::embedded_server};
use crate::{
    config_controller::{Config, checked},
    config_refs::{self, RefReasons},
    reconcile::{Condition, Problem, Validation},
    resources::{ResolvedRef, kind_of, object},
};

/// Validates an optional reference to a configuration by the configuration's own check.
pub(crate) fn config_ref<K: Config>(
    field: &'static str,
    reference: &Option<ResolvedRef<K>>,
    reasons: RefReasons,
    validation: &mut Validation,
) {
    let Some(reference) = reference else { return };
    match checked(reference) {
        Ok(_) => {
            let message = format!("{} {} is valid", kind_of::<K>().kind, reference.name);
            validation.add(reasons.valid.map(|reason| Condition::new(reason, message)));
        }
        Err(error) => validation.fail(reasons.problem(field, &error)),
    }
}

pub(crate) fn authz(
    field: &'static str,
    reference: &Option<ResolvedRef<MCPAuthzConfig>>,
    validation: &mut Validation,
) {
    use AuthzConfigRefValidated::{AuthzConfigRefNotFound, AuthzConfigRefNotValid, AuthzConfigRefValid};
    let reasons = RefReasons::new(AuthzConfigRefValid, AuthzConfigRefNotFound, AuthzConfigRefNotValid);
    config_ref(field, reference, reasons, validation);
}

/// Policies in the spec, or in a ConfigMap that it names, for a kind without a condition for them. An MCPAuthzConfig has one.
pub(crate) fn policies(proxy: &ProxyWorkload, validation: &mut Validation) {
    if proxy.authz.is_some() {
        return;
    }
    let Err(error) = proxy.policies() else { return };
    let is_missing = matches!(error, PoliciesError::MissingConfigMap(_));
    for error in error.into_errors() {
        validation.fail(Problem { transient: is_missing, ..Problem::new(error) });
    }
}

/// The condition about the group of a member. A member runs without its group, so this is never a problem.
pub(crate) fn group(reference: &ResolvedRef<MCPGroup>) -> Condition {
    let name = &reference.name;
    match reference.checked(|_| Vec::new()) {
        Err(error) => Condition::new(GroupRefValidated::GroupRefNotFound, error.message()),
        Ok(group) if is_failed(group) => {
            Condition::new(GroupRefValidated::GroupRefNotReady, format!("MCPGroup {name} is not ready"))
        }
        Ok(_) => {
            Condition::new(GroupRefValidated::GroupRefIsValid, format!("it is a member of MCPGroup {name}"))
        }
    }
}

/// Whether a group has failed. One without a status has not.
pub(crate) fn is_failed(group: &MCPGroup) -> bool {
    group.status.as_ref().and_then(|status| status.phase) == Some(MCPGroupPhase::Failed)
}

pub(crate) fn ignored_provider(proxy: &ProxyWorkload) -> Option<Condition> {
    let inline = proxy.spec().authz_config?.inline.as_ref()?;
    inline.primary_upstream_provider.as_ref()?;
    let kind = proxy.identity.kind.kind;
    Some(Condition::new(
        AuthzPrimaryUpstreamProviderIgnored::PrimaryUpstreamProviderIgnored,
        format!("authzConfig.inline.primaryUpstreamProvider has no effect on an {kind}: remove it"),
    ))
}

/// Warnings about policies in the spec or in a ConfigMap. Those of an MCPAuthzConfig are in its own status.
pub(crate) fn policy_warning(proxy: &ProxyWorkload) -> Option<Condition> {
    let document = || proxy.policies().ok().flatten();
    warning_of_policies("", &proxy.authz, proxy.spec().authz_config, document)
}

/// The same, for an `authzConfig` that is part of `parent`.
pub(crate) fn warning_of_policies(
    parent: &str,
    reference: &Option<ResolvedRef<MCPAuthzConfig>>,
    config: Option<&AuthzConfig>,
    document: impl FnOnce() -> Option<Json>,
) -> Option<Condition> {
    let config = config.filter(|_| reference.is_none())?;
    let place = match (&config.inline, &config.config_map) {
        (None, Some(source)) => format!("{parent}authzConfig.configMap: ConfigMap {}, ", source.name),
        _ => format!("{parent}authzConfig.inline."),
    };
    config_refs::authz::warning(&place, &document()?)
}

pub(crate) fn session_storage(replicas: Option<i32>, is_shared: bool) -> Condition {
    use SessionStorageWarning::{
        SessionStorageConfigured, SessionStorageMissingForReplicas, SessionStorageWarningNotApplicable,
    };
    if replicas.unwrap_or_default() <= 1 {
        return Condition::new(SessionStorageWarningNotApplicable, "one replica has all sessions");
    }
    if is_shared {
        return Condition::new(SessionStorageConfigured, "the replicas share sessions in Redis");
    }
    let message = "the replicas do not share sessions: set sessionStorage with provider redis";
    Condition::new(SessionStorageMissingForReplicas, message)
}

/// A warning if replicas cannot go on with each other's logins.
pub(crate) fn auth_server_storage(
    replicas: Option<i32>,
    server: Option<&EmbeddedAuthServer>,
) -> Option<Condition> {
    let unshared = config_refs::auth_server::unshared(server?);
    if replicas.unwrap_or_default() <= 1 || unshared.is_empty() {
        return None;
    }
    let message =
        format!("the replicas do not share logins: set {} of the authorization server", unshared.join(", "));
    Some(Condition::new(AuthServerStorageWarning::AuthServerStorageMissingForReplicas, message))
}

/// The condition has another type on a VirtualMCPServer.
pub(crate) fn pod_template(
    template: Option<&RawObject>,
    valid: impl Into<Reason>,
    invalid: impl Into<Reason>,
    validation: &mut Validation,
) {
    let Some(template) = template else { return };
    match validate_pod_template(&Value::Object(template.0.clone())) {
        Ok(()) => validation.add(Condition::new(valid, "podTemplateSpec is valid")),
        Err(error) => {
            let error = FieldError::new(error.path().to_owned(), error.message());
            validation.fail(Problem::new(error).reported_as(invalid));
        }
    }
}

/// The reasons for a valid and for a missing configuration differ between kinds.
pub(crate) fn external_auth(
    proxy: &ProxyWorkload,
    valid: Option<ExternalAuthConfigValidated>,
    missing: Option<ExternalAuthConfigValidated>,
    validation: &mut Validation,
) {
    use ExternalAuthConfigValidated::{InvalidConfig, InvalidExternalAuthConfig, MultiUpstreamNotSupported};
    const FIELD: &str = "externalAuthConfigRef";
    let reasons = RefReasons {
        valid: valid.map(Into::into),
        missing: missing.map(Into::into),
        invalid: Some(InvalidExternalAuthConfig.into()),
    };
    let Some(reference) = &proxy.external_auth else { return };
    let auth = match checked(reference) {
        Ok(auth) => auth,
        Err(error) => return validation.fail(reasons.problem(FIELD, &error)),
    };
    match embedded_server_error(proxy, auth) {
        None => {
            let message = format!("MCPExternalAuthConfig {} is valid", reference.name);
            validation.add(reasons.valid.map(|reason| Condition::new(reason, message)));
        }
        Some(ServerError::Upstreams(error)) => {
            validation.fail(Problem::new(error.within(FIELD)).reported_as(MultiUpstreamNotSupported));
        }
        Some(ServerError::Config(error)) => {
            validation.fail(Problem::new(error).reported_as(InvalidConfig));
        }
    }
}

pub(crate) fn auth_server(proxy: &ProxyWorkload, validation: &mut Validation) {
    use AuthServerRefValidated::{
        AuthServerRefInvalidConfig, AuthServerRefInvalidType, AuthServerRefNotFound, AuthServerRefValid,
        MultiUpstreamNotSupported,
    };
    const FIELD: &str = "authServerRef";
    let reasons = RefReasons::new(AuthServerRefValid, AuthServerRefNotFound, AuthServerRefInvalidConfig);
    let Some(reference) = &proxy.auth_server else { return };
    let name = &reference.name;
    let auth = match checked(reference) {
        Ok(auth) => auth,
        Err(error) => return validation.fail(reasons.problem(FIELD, &error)),
    };
    if auth.spec.type_ != ExternalAuthType::EmbeddedAuthServer {
        let type_ = auth.spec.type_.as_str();
        let message = format!(
            "must refer to an MCPExternalAuthConfig of type embeddedAuthServer; {name} is of type {type_}"
        );
        return validation.fail(Problem::of(FIELD, message).reported_as(AuthServerRefInvalidType));
    }
    match embedded_server_error(proxy, auth) {
        None => {
            let message = format!("the authorization server of MCPExternalAuthConfig {name} is valid");
            validation.add(Condition::new(AuthServerRefValid, message));
        }
        Some(ServerError::Upstreams(error)) => {
            validation.fail(Problem::new(error.within(FIELD)).reported_as(MultiUpstreamNotSupported));
        }
        Some(ServerError::Config(error)) => {
            validation.fail(Problem::new(error).reported_as(AuthServerRefInvalidConfig));
        }
    }
}

/// Why an authorization server that is valid by itself cannot run on this object.
enum ServerError {
    /// A proxy for one server supports one upstream provider.
    Upstreams(FieldError),
    /// It does not fit the rest of the object.
    Config(FieldError),
}

fn embedded_server_error(proxy: &ProxyWorkload, auth: &MCPExternalAuthConfig) -> Option<ServerError> {
    let server = embedded_server(auth)?;
    if let Some(error) = config_refs::auth_server::check_single_upstream(server).into_iter().next() {
        return Some(ServerError::Upstreams(error));
    }
    // Both references of an MCPRemoteProxy are valid, and it has another condition for the conflict.
    if proxy.identity.kind != kind_of::<MCPRemoteProxy>()
        && let Some(error) = auth_server_conflict(proxy)
    {
        return Some(ServerError::Config(error));
    }
    let oidc = proxy.oidc.oidc(&proxy.identity, proxy.spec().port);
    let server = config_refs::auth_server::auth_server(server, oidc.as_ref(), &proxy.identity);
    server.err().map(ServerError::Config)
}

/// There can be one authorization server.
pub(crate) fn auth_server_conflict(proxy: &ProxyWorkload) -> Option<FieldError> {
    let both = object(&proxy.auth_server).and_then(embedded_server).is_some()
        && object(&proxy.external_auth).and_then(embedded_server).is_some();
    let message = "externalAuthConfigRef refers to an authorization server as well: keep one of them";
    both.then(|| FieldError::new("authServerRef", message))
}

/// A pod would wait forever for a Secret key that does not exist, so the object waits instead.
pub(crate) fn secrets(proxy: &ProxyWorkload, validation: &mut Validation) {
    for error in proxy.missing_secrets() {
        validation.fail(Problem::new(error).transient());
    }
}
