//! The validation of an MCPRegistry.

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume, VolumeMount};
use serde::de::DeserializeOwned;
use serde_json::Value;
use skep_api::{
    RawObject, RawValue,
    conditions::{PodTemplateValid, Ready},
    events::EventReason,
};
use skep_config::{FieldError, FieldPath};

use super::{
    inputs::{COMPONENT, Inputs},
    pgpass, pod,
};
use crate::{
    build::check_patch,
    reconcile::{Condition, Problem, Validate, Validated, Validation},
};

/// What the user's spec contributes to the pod.
#[derive(Default)]
pub(super) struct UserPod {
    pub(super) template: Option<PodTemplateSpec>,
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<VolumeMount>,
}

/// A valid MCPRegistry.
pub struct ValidRegistry<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) user: UserPod,
}

impl Validate for Inputs {
    type Valid<'a> = ValidRegistry<'a>;

    fn validate(&self) -> Validated<ValidRegistry<'_>> {
        let mut validation = Validation::default();
        let user = user_pod(self).unwrap_or_else(|problem| {
            validation.fail(problem);
            UserPod::default()
        });
        let template = self.spec().pod_template_spec.as_ref();
        validation.add(
            template
                .map(|_| Condition::new(PodTemplateValid::ValidPodTemplateSpec, "podTemplateSpec is valid")),
        );
        let errors = volumes(&user).chain(mounts(self, &user)).chain(volume_names(self, &user));
        for error in errors.chain(mount_paths(self, &user)) {
            validation.fail(invalid(error));
        }
        pgpass_secret(self, &mut validation);
        validation.finish(|| Ok(ValidRegistry { inputs: self, user }))
    }
}

/// A problem of the spec. `Ready` reports it.
fn invalid(error: FieldError) -> Problem {
    Problem::new(error).reported_as(Ready::ValidationFailed).published_as(EventReason::ValidationFailed)
}

/// The user's part of the pod, parsed.
fn user_pod(inputs: &Inputs) -> Result<UserPod, Problem> {
    let spec = inputs.spec();
    let template = spec.pod_template_spec.as_ref();
    let template = template.map(pod_template).transpose();
    Ok(UserPod {
        template: template
            .map_err(|error| Problem::new(error).reported_as(PodTemplateValid::InvalidPodTemplateSpec))?,
        volumes: list("volumes", &spec.volumes).map_err(invalid)?,
        mounts: list("volumeMounts", &spec.volume_mounts).map_err(invalid)?,
    })
}

fn pod_template(patch: &RawObject) -> Result<PodTemplateSpec, FieldError> {
    check_patch(patch)?;
    let template: PodTemplateSpec = parse("podTemplateSpec".into(), &Value::Object(patch.0.clone()))?;
    let mut containers = template.spec.iter().flat_map(|spec| &spec.containers);
    if let Some(index) = containers.position(|container| container.name.is_empty()) {
        let field = FieldPath::from("podTemplateSpec.spec.containers").index(index).join("name");
        return Err(FieldError::new(field, "must not be empty"));
    }
    Ok(template)
}

fn list<T: DeserializeOwned>(field: &'static str, values: &[RawValue]) -> Result<Vec<T>, FieldError> {
    let items = values.iter().enumerate();
    items.map(|(index, value)| parse(FieldPath::from(field).index(index), &value.0)).collect()
}

fn parse<T: DeserializeOwned>(field: FieldPath, value: &Value) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| FieldError::new(error.path(), error.inner().to_string()).within(field))
}

/// What the API server would reject, reported for the field that the user wrote.
fn volumes(user: &UserPod) -> impl Iterator<Item = FieldError> {
    user.volumes.iter().enumerate().filter_map(|(index, volume)| {
        let at = |field: &'static str| FieldPath::from("volumes").index(index).join(field);
        let secret = volume.secret.as_ref().map(|secret| secret.secret_name.as_deref().unwrap_or_default());
        let config_map = volume.config_map.as_ref().map(|config_map| config_map.name.as_str());
        match (volume.name.as_str(), config_map, secret) {
            ("", ..) => Some(FieldError::new(at("name"), "must not be empty")),
            (_, Some(""), _) => Some(FieldError::new(at("configMap.name"), "must name a ConfigMap")),
            (_, _, Some("")) => Some(FieldError::new(at("secret.secretName"), "must name a Secret")),
            _ => None,
        }
    })
}

fn mounts(inputs: &Inputs, user: &UserPod) -> impl Iterator<Item = FieldError> {
    let template = user.template.as_ref().and_then(|template| template.spec.as_ref());
    let volumes =
        user.volumes.iter().chain(template.into_iter().flat_map(|spec| spec.volumes.iter().flatten()));
    let mut known: Vec<&str> = volumes.map(|volume| volume.name.as_str()).collect();
    known.extend(reserved_volumes(inputs));
    user.mounts.iter().enumerate().filter_map(move |(index, mount)| {
        let at = |field: &'static str| FieldPath::from("volumeMounts").index(index).join(field);
        let name = &mount.name;
        if mount.mount_path.is_empty() {
            return Some(FieldError::new(
                at("mountPath"),
                format!("must be the path at which to mount {name}"),
            ));
        }
        let message = || format!("there is no volume {name}: add it to volumes");
        (!known.contains(&name.as_str())).then(|| FieldError::new(at("name"), message()))
    })
}

/// The volumes that the operator adds.
fn reserved_volumes(inputs: &Inputs) -> Vec<&'static str> {
    let pgpass = inputs.spec().pgpass_secret_ref.is_some().then_some(pgpass::VOLUMES);
    std::iter::once(pod::CONFIG).chain(pgpass.into_iter().flatten()).collect()
}

/// Names that the operator uses itself, and duplicates.
fn volume_names(inputs: &Inputs, user: &UserPod) -> Vec<FieldError> {
    let reserved = reserved_volumes(inputs);
    let template = user.template.as_ref().and_then(|template| template.spec.as_ref());
    let of_template = template.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let own = user.volumes.iter().map(|volume| ("volumes", &volume.name));
    let all = own.chain(of_template.map(|volume| ("podTemplateSpec.spec.volumes", &volume.name)));
    let mut seen: Vec<(&str, &String)> = Vec::new();
    let mut errors = Vec::new();
    for (field, name) in all {
        if reserved.contains(&name.as_str()) {
            let message = format!("the name {name} is reserved for the operator: use another");
            errors.push(FieldError::new(field, message));
        } else if seen.contains(&(field, name)) {
            errors.push(FieldError::new(field, format!("duplicate volume {name}: rename one of them")));
        }
        seen.push((field, name));
    }
    let mut inits = template.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    if inputs.spec().pgpass_secret_ref.is_some() && inits.any(|container| container.name == pgpass::INIT) {
        let message = format!("the name {} is reserved for the operator: use another", pgpass::INIT);
        errors.push(FieldError::new("podTemplateSpec.spec.initContainers", message));
    }
    errors
}

/// Nothing can be mounted where something else is.
fn mount_paths(inputs: &Inputs, user: &UserPod) -> Vec<FieldError> {
    let mut taken = vec![pod::CONFIG_FOLDER];
    taken.extend(inputs.spec().pgpass_secret_ref.is_some().then_some(pgpass::FILE));
    let template = user.template.as_ref().and_then(|template| template.spec.as_ref());
    let servers = template.iter().flat_map(|spec| &spec.containers).filter(|one| one.name == COMPONENT);
    let of_template = servers.flat_map(|container| container.volume_mounts.iter().flatten());
    let own = user.mounts.iter().map(|mount| (FieldPath::from("volumeMounts"), mount));
    let field = || FieldPath::from("podTemplateSpec.spec.containers").key(COMPONENT).join("volumeMounts");
    let mut errors = Vec::new();
    for (field, mount) in own.chain(of_template.map(|mount| (field(), mount))) {
        let path = mount.mount_path.as_str();
        if taken.contains(&path) {
            let message = format!("something else is mounted at {path}: use another path");
            errors.push(FieldError::new(field, message));
        }
        taken.push(path);
    }
    errors
}

/// A pod would wait forever for a Secret key that does not exist, so the object waits instead.
fn pgpass_secret(inputs: &Inputs, validation: &mut Validation) {
    let Some(secret) = &inputs.spec().pgpass_secret_ref else { return };
    let name = secret.name.as_deref().unwrap_or_default();
    if name.is_empty() {
        return validation.fail(invalid(FieldError::new("pgpassSecretRef.name", "must name a Secret")));
    }
    if secret.key.is_empty() {
        let message = format!("must name a key of Secret {name}");
        return validation.fail(invalid(FieldError::new("pgpassSecretRef.key", message)));
    }
    for error in &inputs.missing_secrets {
        validation.fail(Problem::new(error.clone()).transient());
    }
}
