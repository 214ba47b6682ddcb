//! The children that every proxy has.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, LocalObjectReference, Service};
use skep_config::{RunConfig, labels, paths};

use super::ProxyWorkload;
use crate::{
    build::{config_map, proxy_service, pull_secrets},
    reconcile::BuildError,
};

impl ProxyWorkload {
    /// The ConfigMap with the RunConfig. Its checksum in the pod template rolls the pods when the content changes.
    /// `owner_label` is the label with the object's name.
    pub(crate) fn run_config_map(
        &self,
        run_config: &RunConfig,
        owner_label: &str,
    ) -> Result<ConfigMap, BuildError> {
        let text = run_config.render().map_err(BuildError::new)?;
        let data = BTreeMap::from([(paths::RUN_CONFIG_FILE.to_owned(), text)]);
        let live = self.live_config.as_deref();
        Ok(config_map(&self.identity, self.run_config_name(), labels::RUN_CONFIG, owner_label, data, live))
    }

    /// The Service in front of the proxy.
    pub(crate) fn service(&self, name: &str) -> Service {
        let spec = self.spec();
        proxy_service(&self.identity, name, spec.port, spec.session_affinity, None, spec.service())
    }

    /// The Secrets for pulling images.
    pub(crate) fn pull_secrets(&self) -> Option<Vec<LocalObjectReference>> {
        let own = self.spec().deployment().map(|overrides| overrides.image_pull_secrets.as_slice());
        pull_secrets(own.unwrap_or_default(), &self.settings.pull_secrets)
    }
}
