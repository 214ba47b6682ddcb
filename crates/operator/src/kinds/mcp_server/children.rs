//! The objects that an MCPServer consists of.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;
use skep_api::kinds::Transport;
use skep_config::{annotations, labels, objects};
use skep_converge::Child;
use skep_world::Watched;

use super::{
    container::{environment, volumes},
    inputs::Inputs,
    restart::restarted_at,
    run_config::run_config,
};
use crate::{
    build::{
        Main, Probes, ProxyDeployment, Rules, checksum_of, pod_patch, rbac, requirements, service_account,
    },
    driver::Blocked,
    watched::StatefulSets,
};

/// The children in the order in which they are written: what pods need comes before the pods.
pub(super) fn children(inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
    if let Some(blocked) = &inputs.findings.blocked {
        return Err(blocked.clone());
    }
    let proxied = &inputs.proxied;
    let identity = &proxied.identity;
    let config_map = proxied.run_config_map(&run_config(inputs)?, labels::MCP_SERVER)?;
    let runner = inputs.runner();
    let secrets = proxied.pull_secrets();
    let (role, binding) = rbac(identity, &runner, &Rules::RUNNER);

    let mut children = vec![Child::new(&service_account(identity, &runner, secrets.clone()))?];
    children.push(Child::new(&role)?);
    children.push(Child::new(&binding)?);
    if inputs.spec().service_account.is_none() {
        children.push(Child::new(&service_account(identity, &backend_account(inputs), secrets))?);
    }
    if let Some(policies) = proxied.inline_authz()? {
        children.push(Child::new(&policies)?);
    }
    children.push(Child::new(&config_map)?);
    children.push(Child::new(&deployment(inputs, &config_map)?)?);
    children.push(Child::new(&proxied.service(&inputs.service()))?);
    children.extend(adopted_stateful_set(inputs));
    Ok(children)
}

/// The ServiceAccount of the server's own pods.
fn backend_account(inputs: &Inputs) -> String {
    inputs.spec().service_account.clone().unwrap_or_else(|| format!("{}-sa", inputs.name()))
}

fn deployment(inputs: &Inputs, config_map: &ConfigMap) -> Result<Deployment, Blocked> {
    let spec = inputs.spec();
    let patch = pod_patch(spec.pod_template_spec.as_ref(), &backend_account(inputs), &spec.secrets);
    let patch = patch.map_err(Blocked::new)?;
    let settings = &inputs.proxied.settings;
    ProxyDeployment {
        identity: &inputs.proxied.identity,
        platform: settings.platform(),
        overrides: inputs.proxied.spec().deployment(),
        annotations: BTreeMap::new(),
        replicas: replicas(inputs),
        service_account: inputs.runner(),
        pull_secrets: inputs.proxied.pull_secrets(),
        main: Main {
            name: objects::PROXY_CONTAINER,
            image: &settings.proxy_image,
            pull_policy: None,
            args: vec!["run".into(), format!("{}={patch}", objects::POD_PATCH_FLAG), spec.image.clone()],
            env: environment(inputs),
            port: spec.proxy_port(),
            resources: spec.resources.as_ref().map(requirements),
            probes: Probes::of_proxy(settings, 5),
        },
        volumes: volumes(inputs),
        pod_annotations: pod_annotations(inputs, config_map),
        grace_period: Some(30),
        patch: None,
    }
    .build()
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
    let mut all = BTreeMap::from([
        checksum_of(config_map),
        (annotations::MCPSERVER_GENERATION.to_owned(), inputs.proxied.generation().to_string()),
    ]);
    if let Some(restarted_at) = restarted_at(inputs) {
        all.insert(annotations::RESTARTED_AT.into(), restarted_at);
    }
    all
}

/// The StatefulSet is the proxy's. All that is ours in it is whose it is, so that it goes with the object.
fn adopted_stateful_set(inputs: &Inputs) -> Option<Child> {
    let identity = &inputs.proxied.identity;
    let body = json!({"metadata": {"ownerReferences": [identity.owner()]}});
    inputs.server.is_some().then(|| {
        Child::from_value(StatefulSets::KIND, identity.namespace.clone(), identity.name.clone(), body)
    })
}
