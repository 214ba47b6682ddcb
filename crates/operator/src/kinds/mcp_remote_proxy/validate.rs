//! The validation of an MCPRemoteProxy: a sequence of checks, each with its condition.

use skep_api::conditions::{
    AuthConfigured, ConfigurationValid, ExternalAuthConfigValidated, PodTemplateValid, ToolConfigValidated,
};
use skep_config::FieldError;

use super::{
    inputs::{HEADERS, Inputs},
    run_config::run_config,
};
use crate::{
    config_refs::{self, RefReasons},
    proxy_workload::{PoliciesError, validate as shared},
    reconcile::{Condition, Problem, Validation},
    resources::Resolution,
};

/// All checks. The first problem is the one that the status reports.
pub(super) fn validate(inputs: &Inputs) -> Validation {
    use ToolConfigValidated::{ToolConfigInvalid, ToolConfigNotFound, ToolConfigValid};
    let (spec, proxy) = (inputs.spec(), &inputs.proxy);
    let mut validation = Validation::default();
    configuration(inputs, &mut validation);
    shared::pod_template(
        spec.pod_template_spec.as_ref(),
        PodTemplateValid::ValidPodTemplateSpec,
        PodTemplateValid::InvalidPodTemplateSpec,
        &mut validation,
    );
    validation.add(proxy.group.as_ref().map(shared::group));
    validation.add(proxy.oidc.ca_bundle_condition(proxy.certificates.as_deref()));
    validation.add(shared::ignored_provider(proxy));
    validation.add(shared::policy_warning(proxy));
    validation.add(shared::session_storage(spec.replicas, proxy.spec().shares_sessions()));
    validation.add(shared::auth_server_storage(spec.replicas, proxy.embedded_server()));
    let reasons = RefReasons::new(ToolConfigValid, ToolConfigNotFound, ToolConfigInvalid);
    proxy.tools.validate_as(reasons, &mut validation);
    proxy.telemetry.validate(&mut validation);
    shared::external_auth(
        proxy,
        Some(ExternalAuthConfigValidated::ExternalAuthConfigValid),
        Some(ExternalAuthConfigValidated::ExternalAuthConfigNotFound),
        &mut validation,
    );
    shared::auth_server(proxy, &mut validation);
    proxy.oidc.validate(&mut validation);
    shared::authz("authzConfigRef", &proxy.authz, &mut validation);
    shared::secrets(proxy, &mut validation);
    if validation.problems.is_empty()
        && let Err(error) = run_config(inputs)
    {
        validation.fail(Problem::new(error));
    }
    validation
}

/// Whether the spec by itself can be applied, in one condition.
fn configuration(inputs: &Inputs, validation: &mut Validation) {
    use ConfigurationValid::{HeaderForwardInvalid, HeaderSecretNotFound, RemoteURLInvalid};
    let (spec, proxy) = (inputs.spec(), &inputs.proxy);
    authentication(inputs, validation);
    let allow_private = spec.allow_private_endpoint.unwrap_or_default();
    let url =
        config_refs::remote_url::check("remoteUrl", &spec.remote_url, allow_private, "allowPrivateEndpoint");
    if let Err(error) = url {
        validation.fail(Problem::new(error).reported_as(RemoteURLInvalid));
    }
    for error in spec.header_forward.iter().flat_map(config_refs::header_forward::check) {
        validation.fail(Problem::new(error).reported_as(HeaderForwardInvalid));
    }
    for error in proxy.missing_secrets().filter(|error| error.field == HEADERS.into()) {
        validation.fail(Problem::new(error).reported_as(HeaderSecretNotFound).transient());
    }
    validation.add(Condition::new(ConfigurationValid::ConfigurationValid, "the spec is valid"));
}

/// Whether callers can be authenticated and authorized. These problems have a second condition.
fn authentication(inputs: &Inputs, validation: &mut Validation) {
    use ConfigurationValid::{
        AuthServerConflict, AuthzConfigMapInvalid, AuthzConfigMapNotFound, AuthzPolicySyntaxInvalid,
        ExternalAuthConfigFetchError,
    };
    let proxy = &inputs.proxy;
    let mut fail = |reason: ConfigurationValid, error: FieldError| {
        let problem = Problem::new(error).reported_as(reason);
        let problem = match reason {
            ExternalAuthConfigFetchError | AuthzConfigMapNotFound => problem.transient(),
            _ => problem,
        };
        validation.add(Condition::new(AuthConfigured::AuthInvalid, problem.to_string()));
        validation.fail(problem);
    };
    if let Some(reference) = &proxy.external_auth
        && matches!(reference.resolution, Resolution::Missing)
        && let Err(error) = reference.checked(|_| Vec::new())
    {
        fail(ExternalAuthConfigFetchError, FieldError::new("externalAuthConfigRef", error.message()));
    }
    if let Some(error) = shared::auth_server_conflict(proxy) {
        fail(AuthServerConflict, error);
    }
    // An MCPAuthzConfig has a separate condition.
    if proxy.authz.is_none() {
        match proxy.policies() {
            Ok(_) => {}
            Err(PoliciesError::Invalid(errors)) => {
                errors.into_iter().for_each(|error| fail(AuthzPolicySyntaxInvalid, error));
            }
            Err(PoliciesError::MissingConfigMap(error)) => fail(AuthzConfigMapNotFound, error),
            Err(PoliciesError::InvalidConfigMap(error)) => fail(AuthzConfigMapInvalid, error),
        }
    }
}
