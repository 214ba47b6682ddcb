//! The part of a RunConfig that every proxy has.

use std::collections::BTreeMap;

use skep_config::{
    FieldError, Json, RunConfig, labels,
    run_config::{Audit, SessionRedis},
};

use super::{PoliciesError, ProxyWorkload, policies};
use crate::{
    config_refs::{self, external_auth::ExternalAuth},
    resources::object,
};

impl ProxyWorkload {
    /// A RunConfig with the proxy's identity and everything that its references add. The middlewares follow from the
    /// whole.
    pub(crate) fn run_config(&self, transport: &str) -> Result<RunConfig, FieldError> {
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
            oidc_config: self.oidc.oidc(identity, spec.port),
            telemetry_config: self.telemetry.telemetry(identity),
            ..RunConfig::default()
        };
        self.add_auth_server(&mut config)?;
        if let Some(oidc) = &config.oidc_config {
            config.thv_ca_bundle.clone_from(&oidc.ca_cert_path);
            config.jwks_auth_token_file.clone_from(&oidc.auth_token_file);
        }
        config.authz_config = self.policies().map_err(PoliciesError::into_error)?;
        if spec.audit.and_then(|audit| audit.enabled).unwrap_or_default() {
            config.audit_config = Some(Audit::standard());
        }
        self.add_external_auth(&mut config)?;
        self.tools.add_to(&mut config);
        Ok(config)
    }

    /// The Redis with the sessions that replicas share.
    pub(crate) fn session_redis(&self) -> Option<SessionRedis> {
        match self.spec().session_storage {
            Some(storage) if self.spec().shares_sessions() => Some(SessionRedis {
                address: storage.address.clone().unwrap_or_default(),
                db: storage.db.unwrap_or_default(),
                key_prefix: storage.key_prefix.clone().unwrap_or_default(),
            }),
            // An explicit memory is respected; without sessionStorage, the installation's Redis is used.
            Some(_) => None,
            None => {
                let address = self.settings.default_redis.clone();
                address.map(|address| SessionRedis { address, ..SessionRedis::default() })
            }
        }
    }

    /// The policies to enforce.
    pub(crate) fn policies(&self) -> Result<Option<Json>, PoliciesError> {
        let config = self.spec().authz_config;
        policies(&self.authz, config, self.policies.as_deref().map(|texts| &**texts))
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

    fn add_auth_server(&self, config: &mut RunConfig) -> Result<(), FieldError> {
        let Some(server) = self.embedded_server() else { return Ok(()) };
        let oidc = config.oidc_config.as_ref();
        let server = config_refs::auth_server::auth_server(server, oidc, &self.identity)?;
        if let Some(oidc) = &mut config.oidc_config {
            config_refs::auth_server::announce_scopes(&server, oidc);
        }
        config.embedded_auth_server_config = Some(server);
        Ok(())
    }

    fn add_external_auth(&self, config: &mut RunConfig) -> Result<(), FieldError> {
        let Some(auth) = object(&self.external_auth) else { return Ok(()) };
        match config_refs::external_auth::external_auth(&auth.spec)? {
            ExternalAuth::TokenExchange(exchange) => config.token_exchange_config = Some(exchange),
            ExternalAuth::RemoteAuth(remote) => config.remote_auth_config = Some(*remote),
            ExternalAuth::AwsSts(sts) => config.aws_sts_config = Some(sts),
            ExternalAuth::AuthServer(_) | ExternalAuth::Nothing => {}
        }
        Ok(())
    }
}
