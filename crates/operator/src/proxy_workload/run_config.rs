//! The part of a RunConfig that every proxy has.

use std::collections::BTreeMap;

use skep_config::{
    AuthServer, Json, RunConfig, labels,
    run_config::{Audit, Oidc},
};

use super::ProxyWorkload;

/// The parts of a RunConfig that validation has built.
pub(crate) struct ValidParts {
    pub(crate) oidc: Option<Oidc>,
    pub(crate) auth_server: Option<AuthServer>,
    pub(crate) policies: Option<Json>,
}

impl ProxyWorkload {
    /// A RunConfig with the proxy's identity and everything that its references add. The middlewares follow from the
    /// whole.
    pub(crate) fn run_config(&self, transport: &str, valid: ValidParts) -> RunConfig {
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
            oidc_config: valid.oidc,
            authz_config: valid.policies,
            telemetry_config: self.telemetry.telemetry(identity),
            ..RunConfig::default()
        };
        self.external_auth.add_to(&mut config, valid.auth_server);
        if let Some(oidc) = &config.oidc_config {
            config.thv_ca_bundle.clone_from(&oidc.ca_cert_path);
            config.jwks_auth_token_file.clone_from(&oidc.auth_token_file);
        }
        if spec.audit.and_then(|audit| audit.enabled).unwrap_or_default() {
            config.audit_config = Some(Audit::standard());
        }
        self.tools.add_to(&mut config);
        config
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
}
