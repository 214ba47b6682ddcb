//! The children of an MCPRemoteProxy.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use skep_api::kinds::MCPRemoteProxy;
use skep_config::{env, labels, objects};
use skep_converge::Child;

use super::{inputs::Inputs, validate::ValidProxy};
use crate::{
    build::{
        EnvList, Main, Probes, ProxyDeployment, Rules, Volumes, checksum_of, own_status, rbac, requirements,
        reviews, service_account,
    },
    config_refs,
    proxy_workload::add_defaults,
    reconcile::{BuildError, Desired},
};

/// The image argument, which the proxy of a remote server ignores.
const NO_IMAGE: &str = "placeholder-for-remote-proxy";

impl Desired for ValidProxy<'_> {
    fn children(&self) -> Result<Vec<Child>, BuildError> {
        let inputs = self.inputs;
        let proxy = &inputs.proxy;
        let config_map = proxy.run_config_map(&self.run_config, labels::MCP_REMOTE_PROXY)?;
        let identity = &proxy.identity;
        let mut children = Vec::new();
        if inputs.spec().service_account.is_none() {
            let runner = inputs.runner();
            let more = own_status::<MCPRemoteProxy>(&identity.name).into_iter();
            let more = more.chain(reviews(proxy.external_auth.embedded_server().is_some()));
            let (role, binding) = rbac(identity, &runner, &Rules::REMOTE, more);
            let (secrets, platform) = (proxy.pull_secrets(), &inputs.platform_secrets);
            children.push(Child::new(&service_account(identity, &runner, secrets, platform))?);
            children.push(Child::new(&role)?);
            children.push(Child::new(&binding)?);
        }
        if let Some(policies) = proxy.policies.inline_config_map(identity)? {
            children.push(Child::new(&policies)?);
        }
        children.push(Child::new(&config_map)?);
        children.push(Child::new(&deployment(inputs, &config_map)?)?);
        children.push(Child::new(&proxy.service(&inputs.service()))?);
        Ok(children)
    }
}

fn deployment(inputs: &Inputs, config_map: &ConfigMap) -> Result<Deployment, BuildError> {
    let (spec, proxy) = (inputs.spec(), &inputs.proxy);
    ProxyDeployment {
        identity: &proxy.identity,
        platform: proxy.settings.platform(),
        overrides: proxy.spec().deployment(),
        annotations: BTreeMap::new(),
        replicas: spec.replicas,
        service_account: spec.service_account.clone().unwrap_or_else(|| inputs.runner()),
        pull_secrets: proxy.pull_secrets(),
        main: Main {
            name: objects::PROXY_CONTAINER,
            image: &proxy.settings.proxy_image,
            pull_policy: None,
            args: ["run", "--foreground=true", NO_IMAGE].map(Into::into).into(),
            env: environment(inputs),
            port: spec.proxy_port(),
            resources: spec.resources.as_ref().map(requirements),
            probes: Probes::of_proxy(&proxy.settings, 15),
        },
        volumes: volumes(inputs),
        pod_annotations: [checksum_of(config_map)].into(),
        grace_period: None,
        patch: spec.pod_template_spec.as_ref(),
    }
    .build()
}

/// The variables of the proxy's container. The operator's override the user's.
fn environment(inputs: &Inputs) -> EnvList {
    let proxy = &inputs.proxy;
    let mut list = EnvList::default();
    proxy.oidc.add_env(env::OIDC_CLIENT_SECRET, &mut list);
    proxy.external_auth.upstream.add_env(&mut list);
    if let Some(headers) = &inputs.spec().header_forward {
        config_refs::header_forward::add_env(headers, &proxy.identity.name, &mut list);
    }
    proxy.add_user_env(&mut list);
    add_defaults(&proxy.settings, &mut list);
    proxy.external_auth.add_server_env(&mut list);
    if list.any_starts_with(env::SECRET_PREFIX) {
        list.set_default(env::SECRETS_PROVIDER, env::SECRETS_FROM_ENVIRONMENT);
    }
    list
}

/// The files of the proxy's container.
fn volumes(inputs: &Inputs) -> Volumes {
    let proxy = &inputs.proxy;
    let mut volumes = Volumes::default();
    proxy.add_run_config_files(&mut volumes);
    proxy.policies.add_volumes(&proxy.identity, &mut volumes);
    proxy.telemetry.add_volumes(&mut volumes);
    proxy.oidc.add_volumes(&mut volumes);
    proxy.external_auth.add_volumes(&mut volumes);
    volumes
}
