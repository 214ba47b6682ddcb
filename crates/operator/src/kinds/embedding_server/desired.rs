//! The children of an EmbeddingServer.

use k8s_openapi::{
    api::{
        apps::v1::{StatefulSet, StatefulSetSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec, Probe, Service, VolumeMount},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use skep_api::kinds::StatefulSetOverrides;
use skep_config::{FieldError, ports};
use skep_converge::Child;

use super::{
    cache::{self, claims},
    inputs::Inputs,
    validate::ValidServer,
};
use crate::{
    build::{
        EnvList, added, container_port, http_probe, least_rights, patched, port_service, pull_secrets,
        requirements,
    },
    reconcile::{BuildError, Desired},
};

/// The server's container, as podTemplateSpec names it.
const CONTAINER: &str = "embedding";

impl Desired for ValidServer<'_> {
    fn children(&self) -> Result<Vec<Child>, BuildError> {
        Ok(vec![Child::new(&stateful_set(self))?, Child::new(&service(self.inputs))?])
    }
}

fn stateful_set(ValidServer { inputs, template }: &ValidServer<'_>) -> StatefulSet {
    let users = overrides(inputs).map(|overrides| &overrides.metadata);
    let mut metadata = inputs.identity.metadata(&inputs.identity.name);
    metadata.labels = added(inputs.labels(), users.map(|users| &users.labels));
    metadata.annotations = added([].into(), users.map(|users| &users.annotations));
    let spec = StatefulSetSpec {
        replicas: Some(inputs.spec().replicas()),
        selector: LabelSelector { match_labels: Some(inputs.selector()), ..LabelSelector::default() },
        service_name: Some(inputs.identity.name.clone()),
        template: template.clone(),
        volume_claim_templates: Some(claims(inputs)),
        ..StatefulSetSpec::default()
    };
    StatefulSet { metadata, spec: Some(spec), status: None }
}

/// The pod template, with the user's patch.
pub(super) fn template(inputs: &Inputs) -> Result<PodTemplateSpec, FieldError> {
    let users = overrides(inputs).and_then(|overrides| overrides.pod_template_metadata_overrides.as_ref());
    let mut labels = inputs.labels();
    labels.extend(inputs.selector());
    let metadata = ObjectMeta {
        labels: added(labels, users.map(|users| &users.labels)),
        annotations: added([].into(), users.map(|users| &users.annotations)),
        ..ObjectMeta::default()
    };
    let spec = PodSpec {
        containers: vec![container(inputs)],
        image_pull_secrets: pull_secrets(&[], &inputs.settings.pull_secrets),
        ..PodSpec::default()
    };
    let template = PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) };
    match &inputs.spec().pod_template_spec {
        Some(patch) => patched(template, patch),
        None => Ok(template),
    }
}

fn container(inputs: &Inputs) -> Container {
    let spec = inputs.spec();
    let mut args: Vec<String> =
        vec!["--model-id".into(), spec.model().into(), "--port".into(), spec.port().to_string()];
    args.extend(spec.args.iter().cloned());
    let mounts = is_cached(inputs).then(|| {
        vec![VolumeMount {
            name: cache::VOLUME.into(),
            mount_path: cache::FOLDER.into(),
            ..VolumeMount::default()
        }]
    });
    Container {
        name: CONTAINER.into(),
        image: Some(spec.image().into()),
        image_pull_policy: Some(spec.image_pull_policy.unwrap_or_default().as_str().into()),
        args: Some(args),
        env: Some(environment(inputs).into_vec()),
        ports: Some(vec![container_port(spec.port())]),
        resources: spec.resources.as_ref().map(requirements),
        volume_mounts: mounts,
        liveness_probe: Some(probe(inputs, 60, 30, 10)),
        readiness_probe: Some(probe(inputs, 30, 10, 5)),
        // The image runs as root and writes its downloads as root; podTemplateSpec can set another user.
        security_context: (!inputs.was_toolhives()).then(|| least_rights(spec.port())),
        ..Container::default()
    }
}

/// Downloading a model takes time, so probes start late and are rare.
fn probe(inputs: &Inputs, delay: i32, period: i32, timeout: i32) -> Probe {
    let probe = http_probe(ports::HEALTH_PATH, inputs.spec().port(), delay, period);
    Probe { timeout_seconds: Some(timeout), failure_threshold: Some(3), ..probe }
}

/// The variables of the server's container.
fn environment(inputs: &Inputs) -> EnvList {
    let spec = inputs.spec();
    let mut list = EnvList::default();
    list.set("MODEL_ID", spec.model());
    if let Some(token) = &spec.hf_token_secret_ref {
        list.set_from_secret("HF_TOKEN", token);
    }
    list.extend(&spec.env);
    if is_cached(inputs) {
        list.set("HF_HOME", cache::FOLDER);
    }
    list
}

/// Whether the pods have the volume for the model.
fn is_cached(inputs: &Inputs) -> bool {
    claims(inputs).iter().any(|claim| claim.metadata.name.as_deref() == Some(cache::VOLUME))
}

fn service(inputs: &Inputs) -> Service {
    let users = inputs.spec().resource_overrides.as_ref().and_then(|overrides| overrides.service.as_ref());
    let port = inputs.spec().port();
    port_service(&inputs.identity, &inputs.identity.name, inputs.labels(), inputs.labels(), port, users)
}

fn overrides(inputs: &Inputs) -> Option<&StatefulSetOverrides> {
    inputs.spec().resource_overrides.as_ref()?.stateful_set.as_ref()
}
