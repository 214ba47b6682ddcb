//! The MCPExternalAuthConfigs that the workload of a proxy refers to: for its upstream, and for the
//! authorization server that it runs.

use skep_api::{
    auth_server::EmbeddedAuthServer,
    conditions::{AuthServerRefValidated, ExternalAuthConfigValidated, Reason},
    kinds::{ExternalAuthType, MCPExternalAuthConfig, MCPRemoteProxy},
    refs::{AuthServerRef, ExternalAuthConfigRef, SecretKeyRef},
};
use skep_config::{
    AuthServer, FieldError, FieldPath, RunConfig, env,
    run_config::{Oidc, RemoteAuth},
};
use skep_world::Reader;

use super::{aws_sts, token_exchange};
use crate::{
    build::{EnvList, Identity, Volumes},
    config_refs::{ConfigRef, RefReasons, auth_server, reference::ConfigField},
    reconcile::{Condition, Problem, Validation},
    resources::kind_of,
};

const UPSTREAM: &str = "externalAuthConfigRef";
const SERVER: &str = "authServerRef";

/// Both references. Either may describe the authorization server.
pub(crate) struct ExternalAuth {
    pub(crate) upstream: ConfigRef<ExternalAuthConfigRef>,
    pub(crate) server: ConfigRef<AuthServerRef>,
}

impl ExternalAuth {
    pub(crate) fn resolve(
        upstream: Option<&ExternalAuthConfigRef>,
        server: Option<&AuthServerRef>,
        reader: &mut Reader,
    ) -> Self {
        Self {
            upstream: ConfigRef::resolve(UPSTREAM, upstream, reader),
            server: ConfigRef::resolve(SERVER, server, reader),
        }
    }

    /// The authorization server to run.
    pub(crate) fn embedded_server(&self) -> Option<&EmbeddedAuthServer> {
        self.server.embedded_server().or_else(|| self.upstream.embedded_server())
    }

    /// The error of two authorization servers: a proxy runs one.
    pub(crate) fn conflict(&self) -> Option<FieldError> {
        let both = self.server.embedded_server().is_some() && self.upstream.embedded_server().is_some();
        let message = "externalAuthConfigRef refers to an authorization server as well: keep one of them";
        both.then(|| FieldError::new(SERVER, message))
    }

    /// Adds the condition about the reference for the upstream, or its problem, and builds the authorization
    /// server that the configuration describes. Kinds differ in the reasons for a valid and for a missing
    /// configuration.
    pub(crate) fn validate_upstream(
        &self,
        valid: Option<ExternalAuthConfigValidated>,
        missing: Option<ExternalAuthConfigValidated>,
        owner: (&Identity, Option<&Oidc>),
        validation: &mut Validation,
    ) -> Option<AuthServer> {
        use ExternalAuthConfigValidated::{
            InvalidConfig, InvalidExternalAuthConfig, MultiUpstreamNotSupported,
        };
        let reasons = RefReasons {
            valid: valid.map(Into::into),
            missing: missing.map(Into::into),
            invalid: Some(InvalidExternalAuthConfig.into()),
        };
        let (name, config) = self.upstream.checked(reasons, validation)?;
        let config = (UPSTREAM, config);
        let server = self.build_server(config, owner, MultiUpstreamNotSupported, InvalidConfig);
        let server = validation.ok(server)?;
        let message = format!("MCPExternalAuthConfig {name} is valid");
        validation.add(reasons.valid.map(|reason| Condition::new(reason, message)));
        server
    }

    /// Adds the condition about the reference for the authorization server, or its problem, and builds the
    /// server.
    pub(crate) fn validate_server(
        &self,
        owner: (&Identity, Option<&Oidc>),
        validation: &mut Validation,
    ) -> Option<AuthServer> {
        use AuthServerRefValidated::{
            AuthServerRefInvalidConfig, AuthServerRefInvalidType, AuthServerRefNotFound, AuthServerRefValid,
            MultiUpstreamNotSupported,
        };
        let reasons = RefReasons::new(AuthServerRefValid, AuthServerRefNotFound, AuthServerRefInvalidConfig);
        let (name, config) = self.server.checked(reasons, validation)?;
        if config.spec.type_ != ExternalAuthType::EmbeddedAuthServer {
            let type_ = config.spec.type_.as_str();
            let message = format!(
                "must refer to an MCPExternalAuthConfig of type embeddedAuthServer; {name} is of type {type_}"
            );
            validation.fail(Problem::of(SERVER, message).reported_as(AuthServerRefInvalidType));
            return None;
        }
        let config = (SERVER, config);
        let server = self.build_server(config, owner, MultiUpstreamNotSupported, AuthServerRefInvalidConfig);
        let server = validation.ok(server)?;
        let message = format!("the authorization server of MCPExternalAuthConfig {name} is valid");
        validation.add(Condition::new(AuthServerRefValid, message));
        server
    }

    /// Builds the authorization server that a valid configuration describes. `upstreams` is the reason for
    /// more than one upstream provider, which a proxy does not support, and `invalid` that for a server that
    /// does not fit the object.
    fn build_server(
        &self,
        (field, config): (&'static str, &MCPExternalAuthConfig),
        (identity, oidc): (&Identity, Option<&Oidc>),
        upstreams: impl Into<Reason>,
        invalid: impl Into<Reason>,
    ) -> Result<Option<AuthServer>, Problem> {
        let Some(server) = embedded_server(config) else { return Ok(None) };
        if let Some(error) = auth_server::check_single_upstream(server) {
            return Err(Problem::new(error.within(field)).reported_as(upstreams));
        }
        // Both references of an MCPRemoteProxy are valid, and it has another condition for the conflict.
        let conflict = self.conflict().filter(|_| identity.kind != kind_of::<MCPRemoteProxy>());
        let built = match conflict {
            Some(error) => Err(error),
            None => auth_server::auth_server(server, oidc, identity),
        };
        built.map(Some).map_err(|error| Problem::new(error).reported_as(invalid))
    }

    /// Adds how the proxy authenticates to its upstream, and the authorization server that validation has
    /// built. Secrets are in the environment: see [`add_env`](Self::add_env).
    pub(crate) fn add_to(&self, run_config: &mut RunConfig, server: Option<AuthServer>) {
        if let (Some(server), Some(oidc)) = (&server, &mut run_config.oidc_config) {
            auth_server::announce_scopes(server, oidc);
        }
        run_config.embedded_auth_server_config = server;
        self.upstream.add_to(run_config);
    }

    /// Adds the variables of the authorization server.
    pub(crate) fn add_server_env(&self, list: &mut EnvList) {
        if let Some(server) = self.embedded_server() {
            auth_server::add_env(server, list);
        }
    }

    /// Adds the files of the authorization server.
    pub(crate) fn add_volumes(&self, volumes: &mut Volumes) {
        if let Some(server) = self.embedded_server() {
            auth_server::add_volumes(server, volumes);
        }
    }

    /// The Secret keys that the proxy needs, each with the field that refers to it.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (FieldPath, &SecretKeyRef)> {
        let upstream = self.upstream.variables().map(|(_, secret)| (UPSTREAM.into(), secret));
        let field = if self.server.is_set() { SERVER } else { UPSTREAM };
        let server = self.embedded_server().map(auth_server::secrets).unwrap_or_default();
        upstream.chain(server.into_iter().map(move |(_, secret)| (field.into(), secret)))
    }
}

impl<F: ConfigField<Kind = MCPExternalAuthConfig>> ConfigRef<F> {
    fn embedded_server(&self) -> Option<&EmbeddedAuthServer> {
        self.config().and_then(embedded_server)
    }
}

impl ConfigRef<ExternalAuthConfigRef> {
    /// Types that only virtual MCP servers support add nothing.
    pub(in crate::config_refs) fn add_to(&self, run_config: &mut RunConfig) {
        let Some(config) = self.config() else { return };
        let bearer = config.spec.bearer_token.as_ref();
        run_config.token_exchange_config = config.spec.token_exchange.as_ref().map(token_exchange);
        run_config.remote_auth_config =
            bearer.map(|bearer| RemoteAuth::with_bearer_token(&bearer.token_secret_ref.name));
        run_config.aws_sts_config = config.spec.aws_sts.as_ref().map(aws_sts);
    }

    /// Adds the secrets that the proxy presents.
    pub(crate) fn add_env(&self, list: &mut EnvList) {
        for (name, secret) in self.variables() {
            list.set_from_secret(name, secret);
        }
    }

    /// The variables with the secrets that the proxy presents.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, &SecretKeyRef)> {
        let spec = self.config().map(|config| &config.spec);
        let exchange = spec.and_then(|spec| spec.token_exchange.as_ref()?.client_secret_ref.as_ref());
        let exchange = exchange.map(|secret| (env::TOKEN_EXCHANGE_CLIENT_SECRET.to_owned(), secret));
        let bearer = spec.and_then(|spec| Some(&spec.bearer_token.as_ref()?.token_secret_ref));
        let bearer = bearer.map(|secret| (env::secret(&secret.name), secret));
        exchange.into_iter().chain(bearer)
    }
}

/// The authorization server that the object describes.
fn embedded_server(config: &MCPExternalAuthConfig) -> Option<&EmbeddedAuthServer> {
    let server = config.spec.embedded_auth_server.as_ref();
    server.filter(|_| config.spec.type_ == ExternalAuthType::EmbeddedAuthServer)
}
