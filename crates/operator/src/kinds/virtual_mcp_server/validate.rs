//! The validation of a VirtualMCPServer: a sequence of checks, each with its condition.

use std::collections::HashSet;

use skep_api::{
    conditions::{
        AuthConfigured, AuthServerConfigValidated, AuthzUpstreamSelectionWarning, CompositeToolRefsValidated,
        EmbeddingServerReady, PodTemplateSpecValid, RateLimitConfigValid, Valid,
    },
    events::EventReason,
    kinds::{EmbeddingServer, EmbeddingServerPhase, OutgoingAuthSource},
    strategy::provider,
    vmcp::Config,
};
use skep_config::{AuthServer, FieldError, FieldPath};

use super::{
    backend_auth::BackendAuths, backends::backends, config::config_without_callers, inputs::Inputs, spec,
    startup,
};
use crate::{
    build::validate_patch,
    config_refs::{
        self, RefReasons,
        auth_server::storage_warning,
        authz::{PoliciesCause, PoliciesError},
        session_storage,
        tools::name_warning,
    },
    reconcile::{Condition, Problem, Validate, Validated, Validation},
    resources::RefError,
};

/// A valid VirtualMCPServer.
pub struct ValidServer<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) backend_auths: BackendAuths,
    /// The configuration file.
    pub(super) config: Config,
    /// The file of the authorization server.
    pub(super) auth_server: Option<AuthServer>,
}

impl Validate for Inputs {
    type Valid<'a> = ValidServer<'a>;

    fn validate(&self) -> Validated<ValidServer<'_>> {
        let mut validation = Validation::default();
        let spec = self.spec();
        let backend_auths = BackendAuths::new(self);
        let file = config_without_callers(self, &backend_auths);
        let built_server = self.auth_server_config();
        let cedar = self.policies.cedar();
        for error in spec::check(self, file.as_ref().ok()) {
            validation.fail(Problem::new(error).reported_as(Valid::ValidationFailed));
        }
        validation.add(Condition::new(Valid::ValidationSucceeded, "the spec is valid"));
        rate_limits(self, &mut validation);
        validate_patch(
            spec.pod_template_spec.as_ref(),
            PodTemplateSpecValid::PodTemplateSpecValid,
            PodTemplateSpecValid::InvalidPodTemplateSpec,
            &mut validation,
        );
        self.group.validate_for_virtual_server(&mut validation);
        composite_tools(self, &mut validation);
        embedding(self, &mut validation);
        validation.add(self.auth_server().map(config_refs::auth_server::identity_synthesized));
        validation.add(session_storage::condition(spec.session_storage.as_ref(), spec.replicas));
        validation.add(self.auth_server().and_then(|server| storage_warning(server, spec.replicas)));
        self.oidc.validate(&mut validation);
        self.policies.validate_reference(&mut validation);
        self.telemetry.validate(&mut validation);
        // Conditions that depend on an unresolved reference are unknown.
        if self.oidc.is_resolved() && self.policies.reference.is_resolved() {
            auth_server(self, built_server.as_ref().err(), &mut validation);
            authentication(self, cedar.as_ref().err(), &mut validation);
        }
        validation.add(self.policies.warning());
        // MCPToolConfigs have no condition here: the phase and its message report them.
        let tools = self.tool_configs.values();
        tools.for_each(|tools| tools.validate_as(RefReasons::default(), &mut validation));
        validation.add(file.as_ref().ok().and_then(tool_names));
        outgoing_auth(self, &backend_auths, &mut validation);
        let config = cedar
            .map_err(PoliciesError::into_error)
            .and_then(|cedar| Ok(Config { incoming_auth: Some(self.incoming_auth(cedar)), ..file? }));
        if let (Ok(config), true) = (&config, validation.problems.is_empty()) {
            let problems = startup::errors(spec, config).into_iter().map(Problem::new);
            problems.for_each(|problem| validation.fail(problem));
        }
        validation.finish(|| {
            Ok(ValidServer { inputs: self, backend_auths, config: config?, auth_server: built_server? })
        })
    }
}

/// The condition is there only while a limit is invalid, as users of ToolHive know it.
fn rate_limits(inputs: &Inputs, validation: &mut Validation) {
    let Some(limits) = inputs.config().rate_limiting else { return };
    for error in limits.errors() {
        let problem = Problem::new(error.within("config.rateLimiting"));
        validation.fail(problem.reported_as(RateLimitConfigValid::RateLimitConfigInvalid));
    }
}

fn composite_tools(inputs: &Inputs, validation: &mut Validation) {
    use CompositeToolRefsValidated::{
        CompositeToolRefInvalid, CompositeToolRefNotFound, CompositeToolRefsValid,
    };
    let config = inputs.config();
    let mut names: HashSet<&str> = config.composite_tools.iter().map(|tool| tool.name.as_str()).collect();
    for (index, reference) in inputs.composite_tools.iter().enumerate() {
        let checked = reference.checked(|definition| skep_workflow::check_as_part(&definition.spec.tool));
        let (message, reason) = match checked {
            Err(error @ RefError::Missing(_)) => (error.message().to_owned(), CompositeToolRefNotFound),
            Err(error @ RefError::Invalid(_)) => (error.message().to_owned(), CompositeToolRefInvalid),
            Ok(definition) if !names.insert(&definition.spec.tool.name) => {
                let (tool, definition) = (&definition.spec.tool.name, &reference.name);
                (
                    format!("duplicate tool {tool:?} of {definition}: rename one of them"),
                    CompositeToolRefInvalid,
                )
            }
            Ok(definition) => match skep_workflow::check_permissions(&definition.spec.tool, &config) {
                Some(error) => (format!("{}: {error}", reference.name), CompositeToolRefInvalid),
                None => continue,
            },
        };
        let field = FieldPath::from("config.compositeToolRefs").index(index);
        validation.fail(Problem::new(FieldError::new(field, message)).reported_as(reason));
    }
    validation.add(Condition::new(CompositeToolRefsValid, "all composite tools can run"));
}

fn embedding(inputs: &Inputs, validation: &mut Validation) {
    use EmbeddingServerReady::{
        EmbeddingServerNotFound, EmbeddingServerNotReady, EmbeddingServerReady as IsReady,
    };
    const FIELD: &str = "embeddingServerRef";
    let Some(reference) = &inputs.embedding else { return };
    let name = &reference.name;
    let server = match reference.checked(|_| Vec::new()) {
        Ok(server) => server,
        Err(error) => {
            let problem = Problem::of(FIELD, error.message()).reported_as(EmbeddingServerNotFound);
            return validation.fail(problem.published_as(EventReason::EmbeddingServerRefNotFound));
        }
    };
    match embedding_phase(server) {
        Some(EmbeddingServerPhase::Ready) => {
            validation.add(Condition::new(IsReady, format!("EmbeddingServer {name} serves requests")));
        }
        Some(EmbeddingServerPhase::Failed) => {
            let problem = Problem::of(FIELD, format!("EmbeddingServer {name} has failed: see its status"));
            validation.fail(problem.reported_as(EmbeddingServerNotReady));
        }
        _ => {
            let problem = Problem::of(FIELD, format!("EmbeddingServer {name} is not ready yet"));
            validation.fail(problem.reported_as(EmbeddingServerNotReady).transient());
        }
    }
}

/// Its phase, which counts as Ready only while a pod is ready.
fn embedding_phase(server: &EmbeddingServer) -> Option<EmbeddingServerPhase> {
    let status = server.status.as_ref()?;
    let is_ready = status.ready_replicas.unwrap_or_default() > 0;
    status.phase.filter(|phase| is_ready || *phase != EmbeddingServerPhase::Ready)
}

fn auth_server(inputs: &Inputs, error: Option<&FieldError>, validation: &mut Validation) {
    use AuthServerConfigValidated::{
        AuthServerConfigInvalid, AuthServerConfigValid, AuthzPrimaryProviderRequiresAuthServer,
        AuthzUpstreamUnknown,
    };
    let Some(server) = inputs.auth_server() else {
        if let Some((field, _)) = inputs.named_provider() {
            let problem = Problem::of(field, "needs authServerConfig: set that, or remove this");
            validation.fail(problem.reported_as(AuthzPrimaryProviderRequiresAuthServer));
        }
        return;
    };
    let mut errors = config_refs::auth_server::check(server);
    if errors.is_empty() {
        errors.extend(error.cloned());
    }
    for error in errors {
        // An error about another part of the spec has its whole path.
        let error = if error.field.is_within("oidcConfigRef") {
            error.within("incomingAuth")
        } else {
            error.within("authServerConfig")
        };
        validation.fail(Problem::new(error).reported_as(AuthServerConfigInvalid));
    }
    let has_policies = inputs.spec().incoming_auth.authz_config.is_some();
    match inputs.named_provider() {
        Some((field, name)) if !server.upstream_providers.iter().any(|one| provider(&one.name) == name) => {
            let message = format!("{name:?} is not one of authServerConfig.upstreamProviders");
            validation.fail(Problem::of(field, message).reported_as(AuthzUpstreamUnknown));
        }
        None if has_policies && server.upstream_providers.len() > 1 => {
            let message = "policies evaluate tokens of the first of several providers: name one in \
                           authServerConfig.primaryUpstreamProvider";
            validation.add(Condition::new(AuthzUpstreamSelectionWarning::AuthzUpstreamAutoSelected, message));
        }
        _ => {}
    }
    validation.add(Condition::new(AuthServerConfigValid, "the authorization server is valid"));
}

/// Whether callers can be authenticated, and policies enforced.
fn authentication(inputs: &Inputs, error: Option<&PoliciesError>, validation: &mut Validation) {
    use AuthConfigured::{AuthInvalid, AuthValid, AuthzConfigMapInvalid, AuthzConfigMapNotFound};
    for (field, secret) in inputs.required_secrets() {
        if let Some(message) = inputs.missing(secret) {
            let problem = Problem::new(FieldError::new(field, message)).reported_as(AuthInvalid).transient();
            validation.fail(problem.published_as(EventReason::SecretValidationFailed));
        }
    }
    let Some(PoliciesError { cause, errors }) = error.cloned() else {
        return validation.add(Condition::new(AuthValid, "callers are authenticated as specified"));
    };
    let reason = match cause {
        PoliciesCause::MissingConfigMap => AuthzConfigMapNotFound,
        PoliciesCause::InvalidConfigMap => AuthzConfigMapInvalid,
        PoliciesCause::Invalid => AuthInvalid,
    };
    let transient = cause == PoliciesCause::MissingConfigMap;
    for error in errors {
        validation.fail(Problem { transient, ..Problem::new(error).reported_as(reason) });
    }
}

fn tool_names(file: &Config) -> Option<Condition> {
    let rules = file.aggregation.iter().flat_map(|aggregation| aggregation.tools.iter().enumerate());
    let path = |index| FieldPath::from("config.aggregation.tools").index(index).join("overrides");
    name_warning(rules.map(|(index, rules)| (path(index), &rules.overrides)))
}

fn outgoing_auth(inputs: &Inputs, auths: &BackendAuths, validation: &mut Validation) {
    auths.conditions().into_iter().for_each(|condition| validation.add(condition));
    // Their conditions are named after the backends, and have been added already.
    validation.problems.extend(auths.problems());
    // The server would take a file without backends as a request to discover them.
    if inputs.source() == OutgoingAuthSource::Inline && backends(inputs, auths).is_empty() {
        let message = format!("MCPGroup {} has no member that can be served: add one", inputs.group.name);
        validation.fail(Problem::of("groupRef", message).transient());
    }
}
