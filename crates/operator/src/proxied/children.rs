//! Children that every proxy has, whatever it stands in front of.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, LocalObjectReference, Service};
use skep_config::{RunConfig, annotations, checksum, labels, paths};

use super::Proxied;
use crate::{
    build::{proxy_service, pull_secrets},
    driver::Blocked,
    parts,
};

impl Proxied {
    /// The ConfigMap with the proxy's configuration. Its checksum is what rolls the proxy when the content changes.
    /// `owner_label` is the label that names the object.
    pub(crate) fn run_config_map(
        &self,
        run_config: &RunConfig,
        owner_label: &str,
    ) -> Result<ConfigMap, Blocked> {
        let text = run_config.render().map_err(Blocked::new)?;
        let data = BTreeMap::from([(paths::RUN_CONFIG_FILE.to_owned(), text)]);
        let labels = BTreeMap::from(
            [
                (labels::COMPONENT, labels::RUN_CONFIG),
                (owner_label, &self.identity.name),
                (labels::MANAGED_BY, labels::OPERATOR),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned())),
        );
        let checksum = checksum(&data, &labels, &BTreeMap::new());
        let mut metadata = self.identity.metadata(self.run_config_name());
        metadata.labels = Some(labels);
        metadata.annotations = Some([(annotations::CONTENT_CHECKSUM.to_owned(), checksum)].into());
        Ok(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() })
    }

    /// The ConfigMap with policies that the object itself carries.
    pub(crate) fn inline_authz(&self) -> Result<Option<ConfigMap>, Blocked> {
        let Some(authz) = self.spec().authz_config.filter(|authz| authz.inline.is_some()) else {
            return Ok(None);
        };
        let mut metadata = self.identity.metadata(self.inline_authz_name());
        let mut labels = self.identity.labels();
        labels.insert(labels::AUTHZ.into(), labels::INLINE.into());
        metadata.labels = Some(labels);
        let file = parts::authz::inline_file(authz).map_err(Blocked::new)?;
        let data = [(paths::AUTHZ_FILE.to_owned(), file)].into();
        Ok(Some(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }))
    }

    /// The Service in front of the proxy.
    pub(crate) fn service(&self, name: &str) -> Service {
        let spec = self.spec();
        proxy_service(&self.identity, name, spec.port, spec.session_affinity, spec.service())
    }

    /// The address of that Service within the cluster.
    pub(crate) fn service_url(&self, name: &str) -> String {
        format!("http://{name}.{}.svc.cluster.local:{}", self.identity.namespace, self.spec().port)
    }

    /// The Secrets with which images are pulled.
    pub(crate) fn pull_secrets(&self) -> Option<Vec<LocalObjectReference>> {
        let own = self.spec().deployment().map(|overrides| overrides.image_pull_secrets.as_slice());
        pull_secrets(own.unwrap_or_default(), &self.settings.pull_secrets)
    }
}

/// The annotation by which the pods roll when their configuration is another.
pub(crate) fn checksum_of(run_config: &ConfigMap) -> (String, String) {
    let annotations = run_config.metadata.annotations.as_ref();
    let checksum = annotations.and_then(|map| map.get(annotations::CONTENT_CHECKSUM));
    (annotations::RUNCONFIG_CHECKSUM.into(), checksum.cloned().unwrap_or_default())
}
