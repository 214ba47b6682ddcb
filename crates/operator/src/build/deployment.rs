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
use skep_api::{
    RawObject,
    workload::{ProxyDeploymentOverrides, ResourceList, Resources},
};
use skep_config::{annotations, fingerprint, ports};

use super::{
    EnvList, Identity, Volumes,
    identity::added,
    pod_template::patched,
    security::{container_security, pod_security},
};
use crate::{
    reconcile::BuildError,
    settings::{Platform, Settings},
};

/// The probes of a container.
#[derive(Clone, Copy)]
pub(crate) struct Probes {
    /// The period of the startup probe, in seconds. The other probes wait for it.
    startup_period: Option<i32>,
    /// The path of the readiness probe.
    readiness_path: &'static str,
    /// The initial delay of the readiness probe, in seconds.
    readiness_delay: Option<i32>,
}

/// How long a proxy may take to start, in seconds.
const STARTUP_TIME: i32 = 90;

impl Probes {
    /// A virtual MCP server distinguishes readiness from liveness.
    pub(crate) const VMCP: Self =
        Self { startup_period: None, readiness_path: ports::READY_PATH, readiness_delay: Some(15) };

    /// The probes of a proxy. `delay` is how long it takes to become ready unless it is known to start fast.
    pub(crate) const fn of_proxy(settings: &Settings, delay: i32) -> Self {
        let (period, delay) = if settings.quick_proxies { (1, None) } else { (5, Some(delay)) };
        Self { startup_period: Some(period), readiness_path: ports::HEALTH_PATH, readiness_delay: delay }
    }
}

/// The main container of a Deployment.
pub(crate) struct Main<'a> {
    pub(crate) name: &'static str,
    pub(crate) image: &'a str,
    /// Defaulted by the API server when absent.
    pub(crate) pull_policy: Option<&'static str>,
    pub(crate) args: Vec<String>,
    pub(crate) env: EnvList,
    pub(crate) port: i32,
    pub(crate) resources: Option<ResourceRequirements>,
    pub(crate) probes: Probes,
}

/// The parameters of a proxy's Deployment.
pub(crate) struct ProxyDeployment<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) platform: Platform,
    pub(crate) overrides: Option<&'a ProxyDeploymentOverrides>,
    /// Annotations of the Deployment that are ours.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Not owned when absent.
    pub(crate) replicas: Option<i32>,
    pub(crate) service_account: String,
    pub(crate) pull_secrets: Option<Vec<LocalObjectReference>>,
    pub(crate) main: Main<'a>,
    pub(crate) volumes: Volumes,
    /// Annotations of the pods that are ours.
    pub(crate) pod_annotations: BTreeMap<String, String>,
    pub(crate) grace_period: Option<i64>,
    /// A user's patch of the pods, which overrides everything else.
    pub(crate) patch: Option<&'a RawObject>,
}

impl ProxyDeployment<'_> {
    pub(crate) fn build(mut self) -> Result<Deployment, BuildError> {
        if let Some(patch) = self.patch {
            let hash = fingerprint(&patch.0).map_err(BuildError::new)?;
            self.annotations.insert(annotations::POD_TEMPLATE_SPEC_HASH.into(), hash);
        }
        let mut metadata = self.identity.metadata(&self.identity.name);
        metadata.labels = added(self.identity.labels(), self.overrides.map(|overrides| &overrides.labels));
        metadata.annotations =
            added(self.annotations.clone(), self.overrides.map(|overrides| &overrides.annotations));
        let selector =
            LabelSelector { match_labels: Some(self.identity.labels()), ..LabelSelector::default() };
        let (replicas, patch) = (self.replicas, self.patch);
        let mut template = self.template();
        if let Some(patch) = patch {
            template = patched(template, patch)?;
        }
        let spec = DeploymentSpec { replicas, selector, template, ..DeploymentSpec::default() };
        Ok(Deployment { metadata, spec: Some(spec), status: None })
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
            security_context: Some(pod_security(self.platform)),
            volumes: Some(self.volumes.volumes.clone()),
            containers: vec![self.container()],
            ..PodSpec::default()
        };
        PodTemplateSpec { metadata: Some(metadata), spec: Some(spec) }
    }

    fn container(self) -> Container {
        let main = self.main;
        let Probes { startup_period, readiness_path, readiness_delay } = main.probes;
        Container {
            name: main.name.into(),
            image: Some(main.image.into()),
            image_pull_policy: main.pull_policy.map(Into::into),
            args: Some(main.args),
            env: Some(main.env.into_vec()),
            ports: Some(vec![ContainerPort {
                name: Some(ports::HTTP.into()),
                container_port: main.port,
                // Part of the key that identifies the port for the API server.
                protocol: Some("TCP".into()),
                ..ContainerPort::default()
            }]),
            resources: main.resources,
            volume_mounts: Some(self.volumes.mounts),
            security_context: Some(container_security(self.platform)),
            startup_probe: startup_period
                .map(|period| probe(ports::HEALTH_PATH, None, period, 3, STARTUP_TIME / period)),
            liveness_probe: Some(probe(ports::HEALTH_PATH, Some(30), 10, 5, 3)),
            readiness_probe: Some(probe(readiness_path, readiness_delay, 5, 3, 3)),
            ..Container::default()
        }
    }
}

fn probe(path: &str, delay: Option<i32>, period: i32, timeout: i32, failures: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.into()),
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

/// An empty string counts as not set.
fn amounts(list: &ResourceList) -> Option<BTreeMap<String, Quantity>> {
    let amounts = [("cpu", &list.cpu), ("memory", &list.memory)];
    let amounts = amounts.into_iter().filter_map(|(name, amount)| {
        let amount = &amount.as_ref()?.0;
        (!amount.is_empty()).then(|| (name.into(), Quantity(amount.clone())))
    });
    Some(amounts.collect::<BTreeMap<_, _>>()).filter(|amounts| !amounts.is_empty())
}
