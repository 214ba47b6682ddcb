//! A user's patch of a proxy's own pod template.

use k8s_openapi::{
    api::core::v1::{
        Container, DownwardAPIVolumeFile, ObjectFieldSelector, PodSpec, PodTemplateSpec, Volume,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use serde_json::Value;
use skep_api::{RawObject, conditions::Reason};
use skep_config::FieldError;
use skep_gocompat::structs::{POD_TEMPLATE_SPEC, without_zeros};
use skep_strategic_merge::{merge_pod_template, validate_pod_template};

use crate::reconcile::{Condition, Problem, Validation};

/// Adds the condition about a user's patch, or its problem. A VirtualMCPServer has a condition of another
/// type.
pub(crate) fn validate_patch(
    patch: Option<&RawObject>,
    valid: impl Into<Reason>,
    invalid: impl Into<Reason>,
    validation: &mut Validation,
) {
    match patch.map(check_patch) {
        None => {}
        Some(Ok(())) => validation.add(Condition::new(valid, "podTemplateSpec is valid")),
        Some(Err(error)) => validation.fail(Problem::new(error).reported_as(invalid)),
    }
}

/// Checks a user's patch by itself.
pub(crate) fn check_patch(patch: &RawObject) -> Result<(), FieldError> {
    validate_pod_template(&Value::Object(patch.0.clone()))
        .map_err(|error| FieldError::new(error.path().to_owned(), error.message()))
}

/// The template with the patch merged into it, as the API server would.
pub(crate) fn patched(template: PodTemplateSpec, patch: &RawObject) -> Result<PodTemplateSpec, FieldError> {
    let invalid = |error: serde_json::Error| FieldError::new("podTemplateSpec", error.to_string());
    let template = serde_json::to_value(template).map_err(invalid)?;
    let merged = merge_pod_template(template, &Value::Object(patch.0.clone()));
    let merged = merged.map_err(|error| FieldError::new(error.path().to_owned(), error.message()))?;
    let merged = match merged {
        Value::Object(fields) => Value::Object(without_zeros(POD_TEMPLATE_SPEC, fields)),
        other => other,
    };
    let merged: PodTemplateSpec = serde_path_to_error::deserialize(merged).map_err(|error| {
        FieldError::new(error.path(), error.inner().to_string()).within("podTemplateSpec")
    })?;
    Ok(with_defaults(merged))
}

/// The template with what the API server would fill in where a list's key or a whole value is owned at once, and
/// would then be owned by us although we did not set it.
pub(crate) fn with_defaults(mut template: PodTemplateSpec) -> PodTemplateSpec {
    if let Some(spec) = &mut template.spec {
        set_defaults(spec);
    }
    template
}

fn set_defaults(spec: &mut PodSpec) {
    if spec.service_account_name.is_some() {
        // The old name of the same field, which the API server then overwrites.
        spec.service_account = None;
    }
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        of_container(container);
    }
    for volume in spec.volumes.iter_mut().flatten() {
        of_volume(volume);
    }
}

fn of_container(container: &mut Container) {
    for port in container.ports.iter_mut().flatten() {
        port.protocol.get_or_insert_with(|| "TCP".into());
    }
    for source in container.env.iter_mut().flatten().filter_map(|variable| variable.value_from.as_mut()) {
        of_field(source.field_ref.as_mut());
        if let Some(resource) = &mut source.resource_field_ref {
            resource.divisor.get_or_insert_with(|| Quantity("0".into()));
        }
    }
}

fn of_volume(volume: &mut Volume) {
    of_files(volume.downward_api.as_mut().and_then(|source| source.items.as_mut()));
    let sources = volume.projected.as_mut().and_then(|projected| projected.sources.as_mut());
    for source in sources.into_iter().flatten() {
        of_files(source.downward_api.as_mut().and_then(|source| source.items.as_mut()));
        if let Some(token) = &mut source.service_account_token {
            token.expiration_seconds.get_or_insert(3600);
        }
    }
}

fn of_files(files: Option<&mut Vec<DownwardAPIVolumeFile>>) {
    for file in files.into_iter().flatten() {
        of_field(file.field_ref.as_mut());
        if let Some(resource) = &mut file.resource_field_ref {
            resource.divisor.get_or_insert_with(|| Quantity("0".into()));
        }
    }
}

fn of_field(field: Option<&mut ObjectFieldSelector>) {
    if let Some(field) = field {
        field.api_version.get_or_insert_with(|| "v1".into());
    }
}
