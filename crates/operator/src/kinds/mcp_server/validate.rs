//! The validation of an MCPServer: a sequence of checks, each with its condition.

use skep_api::{
    conditions::{PodTemplateValid, RateLimitConfigValid, StdioReplicaCapped},
    kinds::{ExternalAuthType, Transport},
};
use skep_config::RunConfig;

use super::{
    inputs::Inputs,
    run_config::{permissions, run_config},
};
use crate::{
    build::validate_patch,
    config_refs::{
        RefReasons,
        auth_server::storage_warning,
        authz::{PoliciesCause, PoliciesError},
        chain, session_storage,
    },
    proxy_workload::ValidParts,
    reconcile::{Condition, Problem, Validate, Validated, Validation},
    resources::ResolvedRef,
};

/// A valid MCPServer.
pub struct ValidServer<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) run_config: RunConfig,
}

impl Validate for Inputs {
    type Valid<'a> = ValidServer<'a>;

    fn validate(&self) -> Validated<ValidServer<'_>> {
        let (spec, proxy) = (self.spec(), &self.proxy);
        let oidc = proxy.oidc_config();
        let mut validation = Validation::default();
        validation.add(proxy.group.as_ref().map(ResolvedRef::membership));
        validation.add(proxy.oidc.ca_bundle_condition(proxy.certificates.as_deref()));
        validation.add(proxy.policies.ignored_provider(&proxy.identity));
        validation.add(proxy.policies.warning());
        validation.add(stdio_cap(self));
        validation.add(session_storage::condition(spec.session_storage.as_ref(), spec.replicas));
        let server = proxy.external_auth.embedded_server();
        validation.add(server.and_then(|server| storage_warning(server, spec.replicas)));
        rate_limits(self, &mut validation);
        validate_patch(
            spec.pod_template_spec.as_ref(),
            PodTemplateValid::ValidPodTemplateSpec,
            PodTemplateValid::InvalidPodTemplateSpec,
            &mut validation,
        );
        // Tools and webhooks have no condition on an MCPServer: the phase and its message report them.
        proxy.tools.validate_as(RefReasons::default(), &mut validation);
        proxy.telemetry.validate(&mut validation);
        // Only an invalid configuration has a condition; a missing one has the phase and its message.
        let upstream = proxy.external_auth.validate_upstream(
            None,
            None,
            (&proxy.identity, oidc.as_ref()),
            &mut validation,
        );
        self.webhooks.validate_as(RefReasons::default(), &mut validation);
        let auth_server =
            proxy.external_auth.validate_server((&proxy.identity, oidc.as_ref()), &mut validation);
        proxy.oidc.validate(&mut validation);
        proxy.policies.validate_reference(&mut validation);
        policies(self, &mut validation);
        let permissions = permissions(spec);
        if let Err(error) = &permissions {
            validation.fail(Problem::new(error.clone()));
        }
        signatures(self, &mut validation);
        proxy.validate_secrets(&mut validation);
        for (service, owner) in &self.taken_services {
            let message = format!("needs Service {service}, which belongs to {owner}: rename one of the two");
            validation.fail(Problem::of("metadata.name", message).transient());
        }
        validation.finish(|| {
            let policies = proxy.policies.document().map_err(PoliciesError::into_error)?;
            let valid = ValidParts { oidc, auth_server: auth_server.or(upstream), policies };
            Ok(ValidServer { inputs: self, run_config: run_config(self, valid, permissions?)? })
        })
    }
}

/// Policies in the spec, or in a ConfigMap that it names, have no condition on an MCPServer.
fn policies(inputs: &Inputs, validation: &mut Validation) {
    let Err(PoliciesError { cause, errors }) = inputs.proxy.policies.check() else { return };
    let transient = cause == PoliciesCause::MissingConfigMap;
    errors.into_iter().for_each(|error| validation.fail(Problem { transient, ..Problem::new(error) }));
}

/// Only requests to a remote server are signed for AWS.
fn signatures(inputs: &Inputs, validation: &mut Validation) {
    let upstream = inputs.proxy.external_auth.upstream.config();
    if upstream.is_some_and(|auth| auth.spec.type_ == ExternalAuthType::AwsSts) {
        let message =
            "awsSts signs requests to a remote server, and an MCPServer has none: use an MCPRemoteProxy";
        validation.fail(Problem::of("externalAuthConfigRef", message));
    }
}

/// A process has one standard input, so a stdio server cannot have two proxies.
fn stdio_cap(inputs: &Inputs) -> Condition {
    let spec = inputs.spec();
    if spec.transport() == Transport::Stdio && spec.replicas.unwrap_or_default() > 1 {
        let message = "replicas is limited to 1: a stdio server is one process with one proxy";
        return Condition::new(StdioReplicaCapped::StdioTransportCapAt1, message);
    }
    Condition::new(StdioReplicaCapped::StdioReplicaCapNotActive, "replicas is not limited")
}

fn rate_limits(inputs: &Inputs, validation: &mut Validation) {
    use RateLimitConfigValid::{
        PerUserRequiresAuth, RateLimitConfigInvalid, RateLimitConfigValid as Valid, RateLimitNotApplicable,
    };
    let spec = inputs.spec();
    let Some(limits) = &spec.rate_limiting else {
        return validation.add(Condition::new(RateLimitNotApplicable, "no limits are set"));
    };
    for error in limits.errors() {
        validation.fail(Problem::new(error.within("rateLimiting")).reported_as(RateLimitConfigInvalid));
    }
    if inputs.proxy.session_redis().is_none() {
        validation.fail(Problem::new(chain::no_redis()));
    }
    let per_user = limits.per_user.is_some() || limits.tools.iter().any(|tool| tool.per_user.is_some());
    let is_authenticated = spec.oidc_config_ref.is_some() || spec.external_auth_config_ref.is_some();
    validation.add(if per_user && !is_authenticated {
        let message =
            "rateLimiting.perUser needs authenticated callers: set oidcConfigRef or externalAuthConfigRef";
        Condition::new(PerUserRequiresAuth, message)
    } else {
        Condition::new(Valid, "the limits are valid")
    });
}
