//! A user's pod, completed with the operator's values.
//!
//! This is not a strategic merge: a value that the user sets, such as the resources or a probe, is used as a whole,
//! and only absent values are filled in. Registries have been configured by this rule since before skep.

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, ResourceRequirements};

/// The user's template, with absent values from the operator's.
pub(super) fn completed(user: PodTemplateSpec, ours: PodTemplateSpec) -> PodTemplateSpec {
    let (mut metadata, our_metadata) = (user.metadata.unwrap_or_default(), ours.metadata.unwrap_or_default());
    for (all, ours) in
        [(&mut metadata.labels, our_metadata.labels), (&mut metadata.annotations, our_metadata.annotations)]
    {
        for (key, value) in ours.unwrap_or_default() {
            all.get_or_insert_default().entry(key).or_insert(value);
        }
    }
    let spec = completed_pod(user.spec.unwrap_or_default(), ours.spec.unwrap_or_default());
    PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) }
}

fn completed_pod(user: PodSpec, ours: PodSpec) -> PodSpec {
    PodSpec {
        service_account_name: user.service_account_name.or(ours.service_account_name),
        image_pull_secrets: filled(user.image_pull_secrets, ours.image_pull_secrets),
        containers: containers(user.containers, ours.containers),
        init_containers: joined_containers(user.init_containers, ours.init_containers),
        volumes: joined(user.volumes, ours.volumes, |one, other| one.name == other.name),
        ..user
    }
}

fn joined_containers(user: Option<Vec<Container>>, ours: Option<Vec<Container>>) -> Option<Vec<Container>> {
    let all = containers(user.unwrap_or_default(), ours.unwrap_or_default());
    (!all.is_empty()).then_some(all)
}

/// The user's containers in their order, completed by ours of the same name, and then the rest of ours.
fn containers(user: Vec<Container>, mut ours: Vec<Container>) -> Vec<Container> {
    let mut all = Vec::new();
    for container in user {
        let same = ours.iter().position(|other| other.name == container.name);
        all.push(match same {
            Some(position) => completed_container(container, ours.remove(position)),
            None => container,
        });
    }
    all.extend(ours);
    all
}

fn completed_container(user: Container, ours: Container) -> Container {
    let says_resources = |resources: &ResourceRequirements| {
        resources.requests.as_ref().is_some_and(|amounts| !amounts.is_empty())
            || resources.limits.as_ref().is_some_and(|amounts| !amounts.is_empty())
    };
    Container {
        image: user.image.filter(|image| !image.is_empty()).or(ours.image),
        command: filled(user.command, ours.command),
        args: filled(user.args, ours.args),
        working_dir: user.working_dir.or(ours.working_dir),
        resources: user.resources.filter(says_resources).or(ours.resources),
        liveness_probe: user.liveness_probe.or(ours.liveness_probe),
        readiness_probe: user.readiness_probe.or(ours.readiness_probe),
        startup_probe: user.startup_probe.or(ours.startup_probe),
        security_context: user.security_context.or(ours.security_context),
        image_pull_policy: user.image_pull_policy.or(ours.image_pull_policy),
        env: joined(user.env, ours.env, |one, other| one.name == other.name),
        volume_mounts: joined(user.volume_mounts, ours.volume_mounts, |one, other| {
            one.mount_path == other.mount_path
        }),
        ports: joined(user.ports, ours.ports, |one, other| {
            one.container_port == other.container_port || one.name.is_some() && one.name == other.name
        }),
        ..user
    }
}

/// The user's list, or ours if there is nothing in it.
fn filled<T>(user: Option<Vec<T>>, ours: Option<Vec<T>>) -> Option<Vec<T>> {
    user.filter(|items| !items.is_empty()).or(ours)
}

/// The user's items, and those of ours that they do not have.
fn joined<T>(user: Option<Vec<T>>, ours: Option<Vec<T>>, same: fn(&T, &T) -> bool) -> Option<Vec<T>> {
    let mut all = user.unwrap_or_default();
    for item in ours.unwrap_or_default() {
        if !all.iter().any(|other| same(other, &item)) {
            all.push(item);
        }
    }
    (!all.is_empty()).then_some(all)
}
