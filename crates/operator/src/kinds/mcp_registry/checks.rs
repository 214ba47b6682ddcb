//! What can be said of an MCPRegistry before anything is built.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::de::DeserializeOwned;
use serde_json::Value;
use skep_api::RawValue;
use skep_strategic_merge::validate_pod_template;

use super::{
    inputs::{COMPONENT, Inputs, UsersPod},
    pgpass, pod,
};

/// Why a registry cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The user's patch of the pod is none.
    PodTemplate(String),
    /// The spec contradicts itself, or what is made of it.
    Spec(String),
    /// Something is not there.
    Missing(String),
}

impl Wrong {
    pub(super) fn message(&self) -> &str {
        match self {
            Self::PodTemplate(message) | Self::Spec(message) | Self::Missing(message) => message,
        }
    }
}

/// What the user gives for the pod, if it can be used.
pub(super) fn users_pod(inputs: &Inputs) -> Result<UsersPod, Wrong> {
    let spec = inputs.spec();
    let users = UsersPod {
        template: spec
            .pod_template_spec
            .as_ref()
            .map(|template| pod_template(&Value::Object(template.0.clone())))
            .transpose()?,
        volumes: list("volumes", &spec.volumes)?,
        mounts: list("volumeMounts", &spec.volume_mounts)?,
    };
    given(inputs, &users)?;
    volume_names(inputs, &users)?;
    mount_paths(inputs, &users)?;
    passwords(inputs)?;
    Ok(users)
}

fn pod_template(template: &Value) -> Result<PodTemplateSpec, Wrong> {
    validate_pod_template(template).map_err(|error| Wrong::PodTemplate(error.to_string()))?;
    let template: PodTemplateSpec = decoded("podTemplateSpec", template).map_err(Wrong::PodTemplate)?;
    let mut containers = template.spec.iter().flat_map(|spec| &spec.containers);
    if let Some(index) = containers.position(|container| container.name.is_empty()) {
        let message = format!("podTemplateSpec.spec.containers[{index}].name: give the container a name");
        return Err(Wrong::PodTemplate(message));
    }
    Ok(template)
}

fn list<T: DeserializeOwned>(field: &str, values: &[RawValue]) -> Result<Vec<T>, Wrong> {
    let items = values.iter().enumerate();
    let items = items.map(|(index, value)| decoded(&format!("{field}[{index}]"), &value.0));
    items.collect::<Result<_, _>>().map_err(Wrong::Spec)
}

fn decoded<T: DeserializeOwned>(place: &str, value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| match error.path().to_string().as_str() {
        "." => format!("{place}: {}", error.inner()),
        path => format!("{place}.{path}: {}", error.inner()),
    })
}

/// What Kubernetes would refuse: here the field is named as the user has written it.
fn given(inputs: &Inputs, users: &UsersPod) -> Result<(), Wrong> {
    let wrong = |place: String, message: String| Err(Wrong::Spec(format!("{place}: {message}")));
    for (index, volume) in users.volumes.iter().enumerate() {
        let secret = volume.secret.as_ref().map(|secret| secret.secret_name.as_deref().unwrap_or_default());
        let config_map = volume.config_map.as_ref().map(|config_map| config_map.name.as_str());
        match (volume.name.as_str(), config_map, secret) {
            ("", ..) => return wrong(format!("volumes[{index}].name"), "give the volume a name".into()),
            (_, Some(""), _) => {
                return wrong(format!("volumes[{index}].configMap.name"), "name the ConfigMap".into());
            }
            (_, _, Some("")) => {
                return wrong(format!("volumes[{index}].secret.secretName"), "name the Secret".into());
            }
            _ => {}
        }
    }
    let template = users.template.as_ref().and_then(|template| template.spec.as_ref());
    let volumes = users.volumes.iter().chain(template.iter().flat_map(|spec| spec.volumes.iter().flatten()));
    let volumes: Vec<&str> = volumes.map(|volume| volume.name.as_str()).collect();
    let own = own_volumes(inputs);
    for (index, mount) in users.mounts.iter().enumerate() {
        let name = &mount.name;
        if mount.mount_path.is_empty() {
            return wrong(format!("volumeMounts[{index}].mountPath"), format!("say where to mount {name}"));
        }
        if !volumes.contains(&name.as_str()) && !own.contains(&name.as_str()) {
            let message = format!("there is no volume {name}: add it to volumes");
            return wrong(format!("volumeMounts[{index}].name"), message);
        }
    }
    Ok(())
}

/// The volumes that the operator adds.
fn own_volumes(inputs: &Inputs) -> Vec<&'static str> {
    let pgpass = inputs.spec().pgpass_secret_ref.is_some().then_some(pgpass::VOLUMES);
    std::iter::once(pod::CONFIG).chain(pgpass.into_iter().flatten()).collect()
}

/// The names that are not the user's to give, and that each name is given once.
fn volume_names(inputs: &Inputs, users: &UsersPod) -> Result<(), Wrong> {
    let reserved = own_volumes(inputs);
    let template = users.template.as_ref().and_then(|template| template.spec.as_ref());
    let of_template = template.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let own = users.volumes.iter().map(|volume| ("volumes", &volume.name));
    let all = own.chain(of_template.map(|volume| ("podTemplateSpec.spec.volumes", &volume.name)));
    let mut seen: Vec<(&str, &String)> = Vec::new();
    for (field, name) in all {
        if reserved.contains(&name.as_str()) {
            let message = format!("{field}: the name {name} is the operator's: give the volume another");
            return Err(Wrong::Spec(message));
        }
        if seen.contains(&(field, name)) {
            return Err(Wrong::Spec(format!("{field}: there are two volumes {name}: rename one of them")));
        }
        seen.push((field, name));
    }
    let mut inits = template.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    if inputs.spec().pgpass_secret_ref.is_some() && inits.any(|container| container.name == pgpass::INIT) {
        let field = "podTemplateSpec.spec.initContainers";
        let message =
            format!("{field}: the name {} is the operator's: give the container another", pgpass::INIT);
        return Err(Wrong::Spec(message));
    }
    Ok(())
}

/// Nothing can be mounted where something else is.
fn mount_paths(inputs: &Inputs, users: &UsersPod) -> Result<(), Wrong> {
    let mut taken = vec![pod::CONFIG_FOLDER];
    taken.extend(inputs.spec().pgpass_secret_ref.is_some().then_some(pgpass::FILE));
    let template = users.template.as_ref().and_then(|template| template.spec.as_ref());
    let servers = template.iter().flat_map(|spec| &spec.containers).filter(|one| one.name == COMPONENT);
    let of_template = servers.flat_map(|container| container.volume_mounts.iter().flatten());
    let own = users.mounts.iter().map(|mount| ("volumeMounts", mount));
    let field = "podTemplateSpec.spec.containers[registry-api].volumeMounts";
    for (field, mount) in own.chain(of_template.map(|mount| (field, mount))) {
        let path = mount.mount_path.as_str();
        if taken.contains(&path) {
            let message = format!("{field}: something else is mounted at {path}: choose another path");
            return Err(Wrong::Spec(message));
        }
        taken.push(path);
    }
    Ok(())
}

/// A pod would wait for ever for a key that is not there; so it is said before one is made.
fn passwords(inputs: &Inputs) -> Result<(), Wrong> {
    const FIELD: &str = "pgpassSecretRef";
    let Some(secret) = &inputs.spec().pgpass_secret_ref else { return Ok(()) };
    let (name, key) = (secret.name.as_deref().unwrap_or_default(), &secret.key);
    if name.is_empty() {
        return Err(Wrong::Spec(format!("{FIELD}.name: name the Secret")));
    }
    if key.is_empty() {
        return Err(Wrong::Spec(format!("{FIELD}.key: name the key within the Secret {name}")));
    }
    match &inputs.pgpass_keys {
        Some(keys) if keys.contains(key) => Ok(()),
        Some(_) => Err(Wrong::Missing(format!("{FIELD}: the Secret {name} has no key {key}: add it"))),
        None => {
            Err(Wrong::Missing(format!("{FIELD}: there is no Secret {name}: create it with the key {key}")))
        }
    }
}
