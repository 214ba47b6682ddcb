//! The objects that an MCPRemoteProxy consists of.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use skep_config::{env, labels, objects};
use skep_converge::Child;

use super::{inputs::Inputs, run_config::run_config};
use crate::{
    build::{
        EnvList, Main, Probes, ProxyDeployment, Rules, Volumes, checksum_of, rbac, requirements,
        service_account,
    },
    driver::Blocked,
    parts,
    proxied::add_defaults,
    reference::object,
};

/// What stands where an MCPServer's proxy is told an image.
const NO_IMAGE: &str = "placeholder-for-remote-proxy";

/// The children in the order in which they are written: what pods need comes before the pods.
pub(super) fn children(inputs: &Inputs) -> Result<Vec<Child>, Blocked> {
    if let Some(blocked) = &inputs.findings.blocked {
        return Err(blocked.clone());
    }
    let proxied = &inputs.proxied;
    let config_map = proxied.run_config_map(&run_config(inputs)?, labels::MCP_REMOTE_PROXY)?;
    let mut children = Vec::new();
    if inputs.spec().service_account.is_none() {
        let (identity, runner) = (&proxied.identity, inputs.runner());
        let (role, binding) = rbac(identity, &runner, &Rules::REMOTE);
        children.push(Child::new(&service_account(identity, &runner, proxied.pull_secrets()))?);
        children.push(Child::new(&role)?);
        children.push(Child::new(&binding)?);
    }
    if let Some(policies) = proxied.inline_authz()? {
        children.push(Child::new(&policies)?);
    }
    children.push(Child::new(&config_map)?);
    children.push(Child::new(&deployment(inputs, &config_map)?)?);
    children.push(Child::new(&proxied.service(&inputs.service()))?);
    Ok(children)
}

fn deployment(inputs: &Inputs, config_map: &ConfigMap) -> Result<Deployment, Blocked> {
    let (spec, proxied) = (inputs.spec(), &inputs.proxied);
    ProxyDeployment {
        identity: &proxied.identity,
        platform: proxied.settings.platform(),
        overrides: proxied.spec().deployment(),
        annotations: BTreeMap::new(),
        replicas: spec.replicas,
        service_account: spec.service_account.clone().unwrap_or_else(|| inputs.runner()),
        pull_secrets: proxied.pull_secrets(),
        main: Main {
            name: objects::PROXY_CONTAINER,
            image: &proxied.settings.proxy_image,
            pull_policy: None,
            args: ["run", "--foreground=true", NO_IMAGE].map(Into::into).into(),
            env: environment(inputs),
            port: spec.proxy_port(),
            resources: spec.resources.as_ref().map(requirements),
            probes: Probes::of_proxy(&proxied.settings, 15),
        },
        volumes: volumes(inputs),
        pod_annotations: [checksum_of(config_map)].into(),
        grace_period: None,
        patch: spec.pod_template_spec.as_ref(),
    }
    .build()
}

/// The variables of the proxy's container. What the operator sets goes over what a user sets.
fn environment(inputs: &Inputs) -> EnvList {
    let proxied = &inputs.proxied;
    let mut list = EnvList::default();
    if let Some(oidc) = object(&proxied.oidc) {
        parts::oidc::add_env(&oidc.spec, &mut list);
    }
    if let Some(auth) = object(&proxied.external_auth) {
        parts::external_auth::add_env(&auth.spec, &mut list);
    }
    if let Some(headers) = &inputs.spec().header_forward {
        parts::header_forward::add_env(headers, &proxied.identity.name, &mut list);
    }
    proxied.add_user_env(&mut list);
    add_defaults(&mut list);
    proxied.add_auth_server_env(&mut list);
    if list.any_starts_with(env::SECRET_PREFIX) {
        list.set_default(env::SECRETS_PROVIDER, env::SECRETS_FROM_ENVIRONMENT);
    }
    list
}

/// The files of the proxy's container.
fn volumes(inputs: &Inputs) -> Volumes {
    let proxied = &inputs.proxied;
    let mut volumes = Volumes::default();
    proxied.add_run_config_files(&mut volumes);
    proxied.add_authz_files(&mut volumes);
    proxied.add_telemetry_files(&mut volumes);
    proxied.add_oidc_files(&mut volumes);
    proxied.add_auth_server_files(&mut volumes);
    volumes
}
