//! The pod template of a server: the user's patch, overridden by what the server needs.

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde_json::Value;
use skep_config::{RunConfig, annotations, objects::MCP_CONTAINER};

use super::{
    ManifestError, all_labels,
    container::{container, remove_duplicates},
    security,
};
use crate::runtime::kubernetes::Platform;

const PATCH: &str = "k8s_pod_template_patch";

pub(super) fn pod_template(
    config: &RunConfig,
    name: &str,
    platform: Platform,
) -> Result<PodTemplateSpec, ManifestError> {
    let patch = patch(&config.k8s_pod_template_patch)?;
    let given = patch.metadata.unwrap_or_default();
    let mut labels = given.labels.unwrap_or_default();
    labels.extend(all_labels(config, name));
    let mut pod_annotations = given.annotations.unwrap_or_default();
    // It is ours alone: one from elsewhere would keep the right proxy from applying.
    pod_annotations.remove(annotations::MCPSERVER_GENERATION);
    if config.mcpserver_generation > 0 {
        pod_annotations
            .insert(annotations::MCPSERVER_GENERATION.into(), config.mcpserver_generation.to_string());
    }
    let metadata = ObjectMeta {
        labels: Some(labels),
        annotations: (!pod_annotations.is_empty()).then_some(pod_annotations),
        ..ObjectMeta::default()
    };
    let spec = pod_spec(patch.spec.unwrap_or_default(), config, platform)?;
    Ok(PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) })
}

fn pod_spec(mut spec: PodSpec, config: &RunConfig, platform: Platform) -> Result<PodSpec, ManifestError> {
    spec.restart_policy.get_or_insert_with(|| "Always".into());
    spec.security_context = Some(security::pod(spec.security_context, platform));
    if let Some(given) = spec.containers.iter_mut().find(|container| container.name == MCP_CONTAINER) {
        *given = container(std::mem::take(given), config, platform)?;
    } else {
        let named = Container { name: MCP_CONTAINER.into(), ..Container::default() };
        spec.containers.push(container(named, config, platform)?);
    }
    let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
    containers.filter_map(|container| container.env.as_mut()).for_each(remove_duplicates);
    Ok(spec)
}

/// The patch as a pod template. An error only names the place, as the patch may hold secrets.
fn patch(text: &str) -> Result<PodTemplateSpec, ManifestError> {
    if text.is_empty() {
        return Ok(PodTemplateSpec::default());
    }
    let patch: Value = serde_json::from_str(text).map_err(|error| {
        ManifestError::new(PATCH, format!("not JSON (line {}, column {})", error.line(), error.column()))
    })?;
    if !patch.is_object() {
        return Err(ManifestError::new(PATCH, "not a JSON object"));
    }
    serde_path_to_error::deserialize(patch).map_err(|error| {
        ManifestError::new(
            PATCH,
            format!("{} is not of the type that a pod template has there", error.path()),
        )
    })
}
