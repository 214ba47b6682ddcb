//! The StatefulSet of a server.

use k8s_openapi::{
    api::apps::v1::{StatefulSet, StatefulSetSpec},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use skep_config::RunConfig;

use super::{ManifestError, all_labels, name, selector, template::pod_template};
use crate::runtime::kubernetes::Platform;

/// The StatefulSet of the server, as it is applied: fields that are not set may have other owners. So may the replicas, unless
/// the RunConfig sets the number.
pub fn stateful_set(config: &RunConfig, platform: Platform) -> Result<StatefulSet, ManifestError> {
    let name = name(config)?;
    let metadata = ObjectMeta {
        name: Some(name.into()),
        labels: Some(all_labels(config, name)),
        ..ObjectMeta::default()
    };
    let spec = StatefulSetSpec {
        replicas: config.scaling_config.as_ref().and_then(|scaling| scaling.backend_replicas),
        selector: LabelSelector { match_labels: Some(selector(name)), match_expressions: None },
        // With OrderedReady, a pod that never gets ready would stay after the template has been fixed.
        pod_management_policy: Some("Parallel".into()),
        // No Service of this name exists. It cannot be changed on an existing StatefulSet, so it stays.
        service_name: Some(name.into()),
        template: pod_template(config, name, platform)?,
        ..StatefulSetSpec::default()
    };
    Ok(StatefulSet { metadata, spec: Some(spec), status: None })
}
