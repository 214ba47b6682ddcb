//! The Deployment of a proxy.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{
            Container, ContainerPort, HTTPGetAction, LocalObjectReference, PodSpec, PodTemplateSpec, Probe,
            ResourceRequirements,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
        util::intstr::IntOrString,
    },
};
use skep_api::workload::{ProxyDeploymentOverrides, ResourceList, Resources};
use skep_config::{objects, ports};

use super::{
    EnvList, Identity, Volumes,
    identity::added,
    security::{container_security, pod_security},
};
use crate::settings::Settings;

/// When a proxy is asked how it is doing.
#[derive(Clone, Copy)]
pub(crate) struct Probes {
    /// How long a new pod has before it is asked whether it is ready, in seconds.
    pub(crate) readiness_delay: i32,
}

/// What a proxy's Deployment is made of.
pub(crate) struct ProxyDeployment<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) settings: &'a Settings,
    pub(crate) overrides: Option<&'a ProxyDeploymentOverrides>,
    /// Annotations of the Deployment that are ours.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Left to others when there is none.
    pub(crate) replicas: Option<i32>,
    pub(crate) service_account: String,
    pub(crate) pull_secrets: Option<Vec<LocalObjectReference>>,
    pub(crate) args: Vec<String>,
    pub(crate) env: EnvList,
    pub(crate) volumes: Volumes,
    pub(crate) port: i32,
    pub(crate) resources: Option<&'a Resources>,
    /// Annotations of the pods that are ours.
    pub(crate) pod_annotations: BTreeMap<String, String>,
    pub(crate) grace_period: Option<i64>,
    pub(crate) probes: Probes,
}

impl ProxyDeployment<'_> {
    pub(crate) fn build(self) -> Deployment {
        let mut metadata = self.identity.metadata(&self.identity.name);
        metadata.labels = added(self.identity.labels(), self.overrides.map(|overrides| &overrides.labels));
        metadata.annotations =
            added(self.annotations.clone(), self.overrides.map(|overrides| &overrides.annotations));
        let selector =
            LabelSelector { match_labels: Some(self.identity.labels()), ..LabelSelector::default() };
        let replicas = self.replicas;
        let spec =
            DeploymentSpec { replicas, selector, template: self.template(), ..DeploymentSpec::default() };
        Deployment { metadata, spec: Some(spec), status: None }
    }

    fn template(self) -> PodTemplateSpec {
        let users = self.overrides.and_then(|overrides| overrides.pod_template_metadata_overrides.as_ref());
        let metadata = ObjectMeta {
            labels: added(self.identity.labels(), users.map(|users| &users.labels)),
            annotations: added(self.pod_annotations.clone(), users.map(|users| &users.annotations)),
            ..ObjectMeta::default()
        };
        let spec = PodSpec {
            service_account_name: Some(self.service_account.clone()),
            image_pull_secrets: self.pull_secrets.clone(),
            termination_grace_period_seconds: self.grace_period,
            security_context: Some(pod_security(self.settings.platform)),
            volumes: Some(self.volumes.volumes.clone()),
            containers: vec![self.container()],
            ..PodSpec::default()
        };
        PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) }
    }

    fn container(self) -> Container {
        Container {
            name: objects::PROXY_CONTAINER.into(),
            image: Some(self.settings.proxy_image.clone()),
            args: Some(self.args),
            env: Some(self.env.into_vec()),
            ports: Some(vec![ContainerPort {
                name: Some(ports::HTTP.into()),
                container_port: self.port,
                // Part of the key by which the API server knows the port.
                protocol: Some("TCP".into()),
                ..ContainerPort::default()
            }]),
            resources: self.resources.map(requirements),
            volume_mounts: Some(self.volumes.mounts),
            security_context: Some(container_security(self.settings.platform)),
            startup_probe: Some(probe(None, 5, 3, 18)),
            liveness_probe: Some(probe(Some(30), 10, 5, 3)),
            readiness_probe: Some(probe(Some(self.probes.readiness_delay), 5, 3, 3)),
            ..Container::default()
        }
    }
}

fn probe(delay: Option<i32>, period: i32, timeout: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(ports::HEALTH_PATH.into()),
            port: IntOrString::String(ports::HTTP.into()),
            ..HTTPGetAction::default()
        }),
        initial_delay_seconds: delay,
        period_seconds: Some(period),
        timeout_seconds: Some(timeout),
        failure_threshold: Some(failures),
        ..Probe::default()
    }
}

pub(crate) fn requirements(resources: &Resources) -> ResourceRequirements {
    ResourceRequirements {
        limits: resources.limits.as_ref().and_then(amounts),
        requests: resources.requests.as_ref().and_then(amounts),
        claims: None,
    }
}

/// A text that is empty is one that was not set.
fn amounts(list: &ResourceList) -> Option<BTreeMap<String, Quantity>> {
    let amounts = [("cpu", &list.cpu), ("memory", &list.memory)];
    let amounts = amounts.into_iter().filter_map(|(name, amount)| {
        let amount = &amount.as_ref()?.0;
        (!amount.is_empty()).then(|| (name.into(), Quantity(amount.clone())))
    });
    Some(amounts.collect::<BTreeMap<_, _>>()).filter(|amounts| !amounts.is_empty())
}
