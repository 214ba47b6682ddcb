//! The pod of a registry server, before the user's patch.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Container, PodSpec, PodTemplateSpec, ResourceRequirements},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use skep_config::annotations;

use super::{
    hash,
    inputs::{COMPONENT, Inputs},
    pgpass,
    template::completed,
    validate::UserPod,
};
use crate::build::{Volumes, container_port, http_probe, pull_secrets, with_defaults};

/// The volume with the server's file.
pub(super) const CONFIG: &str = "registry-server-config";
/// Where the server finds it.
pub(super) const CONFIG_FOLDER: &str = "/config";
/// The file.
pub(super) const CONFIG_FILE: &str = "config.yaml";
/// The port for requests.
pub(super) const PORT: i32 = 8080;
/// The port of the server's probes.
const HEALTH_PORT: i32 = 8081;

/// The pod template: the user's values override the operator's.
pub(super) fn template(inputs: &Inputs, user: &UserPod) -> PodTemplateSpec {
    let hash = [(annotations::CONFIG_HASH.to_owned(), hash::of_spec(inputs.spec()))];
    let metadata = ObjectMeta {
        labels: Some(inputs.labels(&inputs.server())),
        annotations: Some(hash.clone().into()),
        ..ObjectMeta::default()
    };
    let mut template = PodTemplateSpec { metadata: Some(metadata), spec: Some(pod(inputs, user)) };
    if let Some(user) = &user.template {
        template = completed(user.clone(), template);
        let metadata = template.metadata.get_or_insert_default();
        // The Deployment selects its pods by these labels, and a change of the hash rolls them.
        metadata.labels.get_or_insert_default().extend(inputs.selector());
        metadata.annotations.get_or_insert_default().extend(hash);
    }
    with_defaults(template)
}

fn pod(inputs: &Inputs, user: &UserPod) -> PodSpec {
    let mut volumes = Volumes::default();
    volumes.config_map(CONFIG, &inputs.config_map(), None, CONFIG_FOLDER);
    volumes.volumes.extend(user.volumes.iter().cloned());
    volumes.mounts.extend(user.mounts.iter().cloned());
    let mut server = container(inputs);
    server.volume_mounts = Some(volumes.mounts);
    let mut pod = PodSpec {
        service_account_name: Some(inputs.account()),
        image_pull_secrets: pull_secrets(&inputs.spec().image_pull_secrets, &inputs.settings.pull_secrets),
        containers: vec![server],
        volumes: Some(volumes.volumes),
        ..PodSpec::default()
    };
    if let Some(secret) = &inputs.spec().pgpass_secret_ref {
        pgpass::add(secret, &mut pod);
    }
    pod
}

fn container(inputs: &Inputs) -> Container {
    Container {
        name: COMPONENT.into(),
        image: Some(inputs.settings.registry_image.clone()),
        args: Some(vec!["serve".into(), format!("--config={CONFIG_FOLDER}/{CONFIG_FILE}")]),
        ports: Some(vec![container_port(PORT)]),
        resources: Some(ResourceRequirements {
            requests: Some(amounts("100m", "128Mi")),
            limits: Some(amounts("500m", "512Mi")),
            claims: None,
        }),
        liveness_probe: Some(http_probe("/health", HEALTH_PORT, 30, 10)),
        readiness_probe: Some(http_probe("/readiness", HEALTH_PORT, 5, 5)),
        ..Container::default()
    }
}

pub(super) fn amounts(cpu: &str, memory: &str) -> BTreeMap<String, Quantity> {
    [("cpu", cpu), ("memory", memory)].map(|(name, amount)| (name.into(), Quantity(amount.into()))).into()
}
