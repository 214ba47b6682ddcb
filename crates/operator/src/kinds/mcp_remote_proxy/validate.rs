//! The validation of an MCPRemoteProxy: a sequence of checks, each with its condition.

use skep_api::conditions::{
    AuthConfigured, ConfigurationValid, ExternalAuthConfigValidated, PodTemplateValid, ToolConfigValidated,
};
use skep_config::{FieldError, RunConfig};

use super::{
    inputs::{HEADERS, Inputs},
    run_config::run_config,
};
use crate::{
    build::validate_patch,
    config_refs::{
        self, RefReasons,
        auth_server::storage_warning,
        authz::{PoliciesCause, PoliciesError},
        session_storage,
    },
    proxy_workload::ValidParts,
    reconcile::{Condition, Problem, Validate, Validated, Validation},
    resources::ResolvedRef,
};

/// A valid MCPRemoteProxy.
pub struct ValidProxy<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) run_config: RunConfig,
}

impl Validate for Inputs {
    type Valid<'a> = ValidProxy<'a>;

    fn validate(&self) -> Validated<ValidProxy<'_>> {
        use ToolConfigValidated::{ToolConfigInvalid, ToolConfigNotFound, ToolConfigValid};
        let (spec, proxy) = (self.spec(), &self.proxy);
        let oidc = proxy.oidc_config();
        let mut validation = Validation::default();
        configuration(self, &mut validation);
        validate_patch(
            spec.pod_template_spec.as_ref(),
            PodTemplateValid::ValidPodTemplateSpec,
            PodTemplateValid::InvalidPodTemplateSpec,
            &mut validation,
        );
        validation.add(proxy.group.as_ref().map(ResolvedRef::membership));
        validation.add(proxy.oidc.ca_bundle_condition(proxy.certificates.as_deref()));
        validation.add(proxy.policies.ignored_provider(&proxy.identity));
        validation.add(proxy.policies.warning());
        validation.add(session_storage::condition(spec.session_storage.as_ref(), spec.replicas));
        let server = proxy.external_auth.embedded_server();
        validation.add(server.and_then(|server| storage_warning(server, spec.replicas)));
        let reasons = RefReasons::new(ToolConfigValid, ToolConfigNotFound, ToolConfigInvalid);
        proxy.tools.validate_as(reasons, &mut validation);
        proxy.telemetry.validate(&mut validation);
        let upstream = proxy.external_auth.validate_upstream(
            Some(ExternalAuthConfigValidated::ExternalAuthConfigValid),
            Some(ExternalAuthConfigValidated::ExternalAuthConfigNotFound),
            (&proxy.identity, oidc.as_ref()),
            &mut validation,
        );
        let auth_server =
            proxy.external_auth.validate_server((&proxy.identity, oidc.as_ref()), &mut validation);
        proxy.oidc.validate(&mut validation);
        proxy.policies.validate_reference(&mut validation);
        proxy.validate_secrets(&mut validation);
        validation.finish(|| {
            let policies = proxy.policies.document().map_err(PoliciesError::into_error)?;
            let valid = ValidParts { oidc, auth_server: auth_server.or(upstream), policies };
            Ok(ValidProxy { inputs: self, run_config: run_config(self, valid)? })
        })
    }
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
    for error in proxy.missing_secrets.iter().filter(|error| error.field == HEADERS.into()) {
        validation.fail(Problem::new(error.clone()).reported_as(HeaderSecretNotFound).transient());
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
    if let Some(error) = proxy.external_auth.upstream.missing() {
        fail(ExternalAuthConfigFetchError, error);
    }
    if let Some(error) = proxy.external_auth.conflict() {
        fail(AuthServerConflict, error);
    }
    if let Err(PoliciesError { cause, errors }) = proxy.policies.check() {
        let reason = match cause {
            PoliciesCause::MissingConfigMap => AuthzConfigMapNotFound,
            PoliciesCause::InvalidConfigMap => AuthzConfigMapInvalid,
            PoliciesCause::Invalid => AuthzPolicySyntaxInvalid,
        };
        errors.into_iter().for_each(|error| fail(reason, error));
    }
}
