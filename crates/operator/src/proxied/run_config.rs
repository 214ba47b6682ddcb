//! What the file says that tells a proxy what to do, whatever it stands in front of.

use std::collections::BTreeMap;

use skep_config::{
    Json, RunConfig, labels,
    run_config::{Audit, Oidc, SessionRedis},
};

use super::Proxied;
use crate::{
    driver::Blocked,
    parts::{self, external_auth::ExternalAuth},
    reference::object,
};

/// Why there are no policies to go by.
pub(crate) enum AuthzProblem {
    /// The ConfigMap is not there.
    MissingConfigMap(String),
    /// The ConfigMap does not hold what it should.
    InvalidConfigMap(String),
    /// The policies that the object itself carries, or an MCPAuthzConfig's.
    Invalid(String),
}

impl AuthzProblem {
    pub(crate) fn message(self) -> String {
        let (Self::MissingConfigMap(message) | Self::InvalidConfigMap(message) | Self::Invalid(message)) =
            self;
        message
    }
}

impl Proxied {
    /// A RunConfig with who the proxy is and everything that its references add. The middleware is still to come.
    pub(crate) fn run_config(&self, transport: &str) -> Result<RunConfig, Blocked> {
        let (identity, spec) = (&self.identity, self.spec());
        let mut config = RunConfig {
            name: identity.name.clone(),
            container_name: identity.name.clone(),
            base_name: identity.name.clone(),
            host: self.settings.proxy_host.clone(),
            // The API allows no other numbers.
            port: spec.port.try_into().unwrap_or_default(),
            container_labels: self.container_labels(transport),
            trust_proxy_headers: spec.trust_proxy_headers,
            endpoint_prefix: spec.endpoint_prefix.cloned().unwrap_or_default(),
            oidc_config: self.oidc_config(),
            ..RunConfig::default()
        };
        self.add_auth_server(&mut config)?;
        if let Some(oidc) = &config.oidc_config {
            config.thv_ca_bundle.clone_from(&oidc.ca_cert_path);
            config.jwks_auth_token_file.clone_from(&oidc.auth_token_file);
        }
        config.authz_config = self.authz_document().map_err(|problem| Blocked::new(problem.message()))?;
        if spec.audit.and_then(|audit| audit.enabled).unwrap_or_default() {
            config.audit_config = Some(Audit::standard());
        }
        if let (Some(reference), Some(telemetry)) = (spec.telemetry_config_ref, object(&self.telemetry)) {
            config.telemetry_config = Some(parts::telemetry::telemetry(&telemetry.spec, reference, identity));
        }
        self.add_external_auth(&mut config)?;
        if let Some(tools) = object(&self.tools) {
            config.tools_filter = parts::tools::tools_filter(&tools.spec);
            config.tools_override = parts::tools::tools_override(&tools.spec);
        }
        Ok(config)
    }

    /// Whose tokens the proxy accepts.
    pub(crate) fn oidc_config(&self) -> Option<Oidc> {
        let spec = self.spec();
        let (reference, config) = (spec.oidc_config_ref?, object(&self.oidc)?);
        Some(parts::oidc::oidc(&config.spec, reference, &self.identity, spec.port))
    }

    /// Where sessions are kept that are shared.
    pub(crate) fn session_redis(&self) -> Option<SessionRedis> {
        match self.spec().session_storage {
            Some(storage) if self.spec().shares_sessions() => Some(SessionRedis {
                address: storage.address.clone().unwrap_or_default(),
                db: storage.db.unwrap_or_default(),
                key_prefix: storage.key_prefix.clone().unwrap_or_default(),
            }),
            // Sessions that are to stay in memory do; those of which nothing is said go to the installation's Redis.
            Some(_) => None,
            None => {
                let address = self.settings.default_redis.clone();
                address.map(|address| SessionRedis { address, ..SessionRedis::default() })
            }
        }
    }

    /// The policies that requests are held to.
    pub(crate) fn authz_document(&self) -> Result<Option<Json>, AuthzProblem> {
        if let Some(authz) = object(&self.authz) {
            return parts::authz::document(&authz.spec).map(Some).map_err(AuthzProblem::Invalid);
        }
        let Some(authz) = self.spec().authz_config else { return Ok(None) };
        if authz.inline.is_some() {
            return parts::authz::inline_document(authz).map(Some).map_err(AuthzProblem::Invalid);
        }
        let Some(source) = &authz.config_map else { return Ok(None) };
        let data = self.config_maps.get(&source.name).and_then(Option::as_ref);
        let Some(data) = data else {
            let message = format!("authzConfig.configMap: there is no ConfigMap {}: create it", source.name);
            return Err(AuthzProblem::MissingConfigMap(message));
        };
        let Some(text) = data.get(source.key()) else {
            let message =
                format!("authzConfig.configMap: the ConfigMap {} has no key {}", source.name, source.key());
            return Err(AuthzProblem::InvalidConfigMap(message));
        };
        parts::authz::config_map_document(authz, text).map(Some).map_err(AuthzProblem::InvalidConfigMap)
    }

    fn container_labels(&self, transport: &str) -> BTreeMap<String, String> {
        let name = &self.identity.name;
        let labels = [
            (labels::TOOLHIVE, labels::TRUE),
            (labels::NAME, name),
            (labels::BASE_NAME, name),
            (labels::TRANSPORT, transport),
            (labels::PORT, &self.spec().port.to_string()),
        ];
        labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    fn add_auth_server(&self, config: &mut RunConfig) -> Result<(), Blocked> {
        let Some(server) = self.embedded_server() else { return Ok(()) };
        let server = parts::auth_server::auth_server(server, config.oidc_config.as_ref(), &self.identity);
        let server = server.map_err(Blocked::new)?;
        if let Some(oidc) = &mut config.oidc_config {
            parts::auth_server::announce_scopes(&server, oidc);
        }
        config.embedded_auth_server_config = Some(server);
        Ok(())
    }

    fn add_external_auth(&self, config: &mut RunConfig) -> Result<(), Blocked> {
        let Some(auth) = object(&self.external_auth) else { return Ok(()) };
        match parts::external_auth::external_auth(&auth.spec).map_err(Blocked::new)? {
            ExternalAuth::TokenExchange(exchange) => config.token_exchange_config = Some(exchange),
            ExternalAuth::RemoteAuth(remote) => config.remote_auth_config = Some(*remote),
            ExternalAuth::AwsSts(sts) => config.aws_sts_config = Some(sts),
            ExternalAuth::AuthServer(_) | ExternalAuth::Nothing => {}
        }
        Ok(())
    }
}
