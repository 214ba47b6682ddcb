//! ConfigMaps with the configuration of pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use skep_config::{annotations, checksum, labels};
use skep_converge::documents_digest;

use super::Identity;
use crate::resources::facts::ConfigFacts;

/// A ConfigMap with the configuration of the object's pods. Its checksum is what rolls them when the content changes.
/// `component` is what it holds, and `owner_label` the label that names the object.
///
/// The checksum is that of the `live` texts if these are the same documents in another layout: an apply keeps them.
pub(crate) fn config_map(
    identity: &Identity,
    name: String,
    component: &str,
    owner_label: &str,
    data: BTreeMap<String, String>,
    live: Option<&ConfigFacts>,
) -> ConfigMap {
    let labels = [
        (labels::COMPONENT, component),
        (owner_label, &identity.name),
        (labels::MANAGED_BY, labels::OPERATOR),
    ];
    let labels = BTreeMap::from(labels.map(|(key, value)| (key.to_owned(), value.to_owned())));
    let live = live.filter(|live| live.documents == documents_digest(&data));
    let checksum = match live {
        Some(live) => live.checksum.complete(&labels, &BTreeMap::new()),
        None => checksum(&data, &labels, &BTreeMap::new()),
    };
    let mut metadata = identity.metadata(name);
    metadata.labels = Some(labels);
    metadata.annotations = Some([(annotations::CONTENT_CHECKSUM.to_owned(), checksum)].into());
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

/// The annotation that rolls the pods when their configuration changes.
pub(crate) fn checksum_of(config: &ConfigMap) -> (String, String) {
    let annotations = config.metadata.annotations.as_ref();
    let checksum = annotations.and_then(|map| map.get(annotations::CONTENT_CHECKSUM));
    (annotations::RUNCONFIG_CHECKSUM.into(), checksum.cloned().unwrap_or_default())
}
