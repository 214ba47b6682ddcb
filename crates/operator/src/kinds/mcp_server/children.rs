//! The objects that an MCPServer consists of.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;
use skep_api::kinds::Transport;
use skep_config::{RunConfig, annotations, checksum, labels, objects, paths};
use skep_converge::Child;
use skep_world::Watched;

use super::{
    container::{environment, volumes},
    inputs::Inputs,
    restart::restarted_at,
    run_config::run_config,
};
use crate::{
    build::{Probes, ProxyDeployment, Rules, pod_patch, proxy_service, pull_secrets, rbac, service_account},
    driver::Blocked,
    parts,
    watched::StatefulSets,
};

/// The children in the order in which they are written: what pods need comes before the pods.
pub(super) fn children(inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
    if let Some(blocked) = &inputs.findings.blocked {
        return Err(blocked.clone());
    }
    let identity = &inputs.identity;
    let spec = inputs.spec();
    let run_config = run_config(inputs)?;
    let config_map = run_config_map(inputs, &run_config)?;
    let runner = inputs.runner();
    let secrets = pull_secrets_of(inputs);
    let (role, binding) = rbac(identity, &runner, &Rules::RUNNER);
    let affinity = spec.session_affinity.unwrap_or_default();
    let service =
        proxy_service(identity, &inputs.service(), spec.proxy_port(), affinity, spec.proxy_service());

    let mut children = vec![Child::new(&service_account(identity, &runner, secrets.clone()))?];
    children.push(Child::new(&role)?);
    children.push(Child::new(&binding)?);
    if spec.service_account.is_none() {
        children.push(Child::new(&service_account(identity, &backend_account(inputs), secrets))?);
    }
    if let Some(policies) = inline_authz(inputs)? {
        children.push(Child::new(&policies)?);
    }
    children.push(Child::new(&config_map)?);
    children.push(Child::new(&deployment(inputs, &config_map)?)?);
    children.push(Child::new(&service)?);
    children.extend(adopted_stateful_set(inputs));
    Ok(children)
}

fn pull_secrets_of(inputs: &Inputs) -> Option<Vec<k8s_openapi::api::core::v1::LocalObjectReference>> {
    let own = inputs
        .spec()
        .proxy_deployment()
        .map(|overrides| overrides.image_pull_secrets.as_slice())
        .unwrap_or_default();
    pull_secrets(own, &inputs.settings.pull_secrets)
}

/// The ServiceAccount of the server's own pods.
fn backend_account(inputs: &Inputs) -> String {
    inputs.spec().service_account.clone().unwrap_or_else(|| format!("{}-sa", inputs.identity.name))
}

/// The ConfigMap with the proxy's configuration. Its checksum is what rolls the proxy when the content changes.
fn run_config_map(inputs: &Inputs, run_config: &RunConfig) -> Result<ConfigMap, Blocked> {
    let text = run_config.render().map_err(Blocked::new)?;
    let data = BTreeMap::from([(paths::RUN_CONFIG_FILE.to_owned(), text)]);
    let labels = BTreeMap::from(
        [
            (labels::COMPONENT, labels::RUN_CONFIG),
            (labels::MCP_SERVER, &inputs.identity.name),
            (labels::MANAGED_BY, labels::OPERATOR),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    let checksum = checksum(&data, &labels, &BTreeMap::new());
    let mut metadata = inputs.identity.metadata(inputs.run_config_name());
    metadata.labels = Some(labels);
    metadata.annotations = Some([(annotations::CONTENT_CHECKSUM.to_owned(), checksum)].into());
    Ok(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() })
}

/// The ConfigMap with policies that the object itself carries.
fn inline_authz(inputs: &Inputs) -> Result<Option<ConfigMap>, Blocked> {
    let Some(authz) = inputs.spec().authz_config.as_ref().filter(|authz| authz.inline.is_some()) else {
        return Ok(None);
    };
    let mut metadata = inputs.identity.metadata(inputs.inline_authz_name());
    let mut labels = inputs.identity.labels();
    labels.insert(labels::AUTHZ.into(), labels::INLINE.into());
    metadata.labels = Some(labels);
    let file = parts::authz::inline_file(authz).map_err(Blocked::new)?;
    let data = [(paths::AUTHZ_FILE.to_owned(), file)].into();
    Ok(Some(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }))
}

fn deployment(inputs: &Inputs, config_map: &ConfigMap) -> Result<Deployment, Blocked> {
    let spec = inputs.spec();
    let patch = pod_patch(spec.pod_template_spec.as_ref(), &backend_account(inputs), &spec.secrets);
    let patch = patch.map_err(Blocked::new)?;
    let deployment = ProxyDeployment {
        identity: &inputs.identity,
        settings: &inputs.settings,
        overrides: spec.proxy_deployment(),
        replicas: replicas(inputs),
        service_account: inputs.runner(),
        pull_secrets: pull_secrets_of(inputs),
        args: vec!["run".into(), format!("{}={patch}", objects::POD_PATCH_FLAG), spec.image.clone()],
        env: environment(inputs),
        volumes: volumes(inputs),
        port: spec.proxy_port(),
        resources: spec.resources.as_ref(),
        pod_annotations: pod_annotations(inputs, config_map),
        grace_period: Some(30),
        probes: Probes { readiness_delay: 5 },
    };
    Ok(deployment.build())
}

/// How many proxies there are, if it is for this object to say.
fn replicas(inputs: &Inputs) -> Option<i32> {
    let spec = inputs.spec();
    match spec.transport() {
        Transport::Stdio => spec.replicas.map(|replicas| replicas.min(1)),
        _ => spec.replicas,
    }
}

/// The annotations by which the pods roll: for another configuration, another spec, or a restart that was asked for.
fn pod_annotations(inputs: &Inputs, config_map: &ConfigMap) -> BTreeMap<String, String> {
    let checksum =
        config_map.metadata.annotations.as_ref().and_then(|map| map.get(annotations::CONTENT_CHECKSUM));
    let mut all = BTreeMap::from([
        (annotations::RUNCONFIG_CHECKSUM.to_owned(), checksum.cloned().unwrap_or_default()),
        (annotations::MCPSERVER_GENERATION.to_owned(), inputs.generation().to_string()),
    ]);
    if let Some(restarted_at) = restarted_at(inputs) {
        all.insert(annotations::RESTARTED_AT.into(), restarted_at);
    }
    all
}

/// The StatefulSet is the proxy's. All that is ours in it is whose it is, so that it goes with the object.
fn adopted_stateful_set(inputs: &Inputs) -> Option<Child> {
    let identity = &inputs.identity;
    let body = json!({"metadata": {"ownerReferences": [identity.owner()]}});
    inputs.stateful_set.then(|| {
        Child::from_value(StatefulSets::KIND, identity.namespace.clone(), identity.name.clone(), body)
    })
}
