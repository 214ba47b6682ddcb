//! The children of an MCPServer.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;
use skep_api::kinds::{MCPServer, Transport};
use skep_config::{annotations, labels, objects};
use skep_converge::Child;
use skep_world::Watched;

use super::{
    container::{environment, volumes},
    inputs::{Inputs, backend_account},
    restart::restarted_at,
    validate::ValidServer,
};
use crate::{
    build::{
        Main, Probes, ProxyDeployment, Rules, checksum_of, own_status, pod_patch, rbac, requirements,
        reviews, service_account,
    },
    reconcile::{BuildError, Desired},
    resources::StatefulSets,
};

impl Desired for ValidServer<'_> {
    fn children(&self) -> Result<Vec<Child>, BuildError> {
        let inputs = self.inputs;
        let proxy = &inputs.proxy;
        let identity = &proxy.identity;
        let config_map = proxy.run_config_map(&self.run_config, labels::MCP_SERVER)?;
        let runner = inputs.runner();
        let secrets = proxy.pull_secrets();
        let more = own_status::<MCPServer>(inputs.name()).into_iter();
        let more = more.chain(reviews(proxy.external_auth.embedded_server().is_some()));
        let (role, binding) = rbac(identity, &runner, &Rules::RUNNER, more);

        let mut children =
            vec![Child::new(&service_account(identity, &runner, secrets.clone(), &inputs.platform_secrets))?];
        children.push(Child::new(&role)?);
        children.push(Child::new(&binding)?);
        if inputs.spec().service_account.is_none() {
            let (account, platform) = (backend_account(inputs.name()), &inputs.platform_secrets);
            children.push(Child::new(&service_account(identity, &account, secrets, platform))?);
        }
        if let Some(policies) = proxy.policies.inline_config_map(identity)? {
            children.push(Child::new(&policies)?);
        }
        children.push(Child::new(&config_map)?);
        children.push(Child::new(&deployment(inputs, &config_map)?)?);
        children.push(Child::new(&proxy.service(&inputs.service()))?);
        children.extend(adopted_stateful_set(inputs));
        Ok(children)
    }
}

fn deployment(inputs: &Inputs, config_map: &ConfigMap) -> Result<Deployment, BuildError> {
    let spec = inputs.spec();
    // The ServiceAccount of the server's own pods.
    let account = spec.service_account.clone().unwrap_or_else(|| backend_account(inputs.name()));
    let patch = pod_patch(spec.pod_template_spec.as_ref(), &account, &spec.secrets);
    let patch = patch.map_err(BuildError::new)?;
    let settings = &inputs.proxy.settings;
    ProxyDeployment {
        identity: &inputs.proxy.identity,
        platform: settings.platform(),
        overrides: inputs.proxy.spec().deployment(),
        annotations: BTreeMap::new(),
        replicas: replicas(inputs),
        service_account: inputs.runner(),
        pull_secrets: inputs.proxy.pull_secrets(),
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

/// The number of proxies, if the spec sets it.
fn replicas(inputs: &Inputs) -> Option<i32> {
    let spec = inputs.spec();
    match spec.transport() {
        Transport::Stdio => spec.replicas.map(|replicas| replicas.min(1)),
        _ => spec.replicas,
    }
}

/// The annotations that roll the pods: for another configuration, another spec, or a requested restart.
fn pod_annotations(inputs: &Inputs, config_map: &ConfigMap) -> BTreeMap<String, String> {
    let mut all = BTreeMap::from([
        checksum_of(config_map),
        (annotations::MCPSERVER_GENERATION.to_owned(), inputs.proxy.generation().to_string()),
    ]);
    if let Some(restarted_at) = restarted_at(inputs) {
        all.insert(annotations::RESTARTED_AT.into(), restarted_at);
    }
    all
}

/// The StatefulSet is the proxy's. The operator owns only its owner reference, so that it is deleted with the object.
fn adopted_stateful_set(inputs: &Inputs) -> Option<Child> {
    let identity = &inputs.proxy.identity;
    let body = json!({"metadata": {"ownerReferences": [identity.owner()]}});
    inputs.server.is_some().then(|| {
        Child::from_value(StatefulSets::kind(), identity.namespace.clone(), identity.name.clone(), body)
    })
}
