//! The objects that an MCPServer consists of.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use serde_json::json;
use skep_api::kinds::{PermissionProfileType, Transport};
use skep_config::{RunConfig, annotations, checksum, env, labels, objects, paths};
use skep_converge::Child;
use skep_world::Watched;

use super::{
    inputs::Inputs,
    restart::restarted_at,
    run_config::{auth_server, run_config},
};
use crate::{
    build::{
        EnvList, Probes, ProxyDeployment, Rules, Volumes, pod_patch, proxy_service, pull_secrets, rbac,
        service_account,
    },
    driver::Blocked,
    parts,
    reference::Reference,
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
    let runner = format!("{}-proxy-runner", identity.name);
    let secrets = pull_secrets_of(inputs);
    let (role, binding) = rbac(identity, &runner, &Rules::RUNNER);
    let overrides = spec.resource_overrides.as_ref().and_then(|overrides| overrides.proxy_service.as_ref());
    let affinity = spec.session_affinity.unwrap_or_default();
    let service = proxy_service(identity, &inputs.service(), spec.proxy_port(), affinity, overrides);

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
    let overrides = inputs.spec().resource_overrides.as_ref();
    let overrides = overrides.and_then(|overrides| overrides.proxy_deployment.as_ref());
    let own = overrides.map(|overrides| overrides.image_pull_secrets.as_slice()).unwrap_or_default();
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

fn authz_config_name(inputs: &Inputs) -> String {
    format!("{}-authz-inline", inputs.identity.name)
}

/// The ConfigMap with policies that the object itself carries.
fn inline_authz(inputs: &Inputs) -> Result<Option<ConfigMap>, Blocked> {
    let Some(authz) = inputs.spec().authz_config.as_ref().filter(|authz| authz.inline.is_some()) else {
        return Ok(None);
    };
    let mut metadata = inputs.identity.metadata(authz_config_name(inputs));
    let mut labels = inputs.identity.labels();
    labels.insert(labels::AUTHZ.into(), labels::INLINE.into());
    metadata.labels = Some(labels);
    let file = parts::authz::inline_file(authz).map_err(Blocked::new)?;
    let data = [(paths::AUTHZ_FILE.to_owned(), file)].into();
    Ok(Some(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }))
}

fn deployment(inputs: &Inputs, config_map: &ConfigMap) -> Result<Deployment, Blocked> {
    let spec = inputs.spec();
    let overrides =
        spec.resource_overrides.as_ref().and_then(|overrides| overrides.proxy_deployment.as_ref());
    let patch = pod_patch(spec.pod_template_spec.as_ref(), &backend_account(inputs), &spec.secrets);
    let patch = patch.map_err(Blocked::new)?;
    let deployment = ProxyDeployment {
        identity: &inputs.identity,
        settings: &inputs.settings,
        overrides,
        replicas: replicas(inputs),
        service_account: format!("{}-proxy-runner", inputs.identity.name),
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

fn environment(inputs: &Inputs) -> EnvList {
    let spec = inputs.spec();
    let identity = &inputs.identity;
    let mut list = EnvList::default();
    if let (Some(reference), Some(telemetry)) =
        (&spec.telemetry_config_ref, inputs.telemetry.as_ref().and_then(Reference::object))
    {
        parts::telemetry::add_env(&telemetry.spec, reference, identity, &mut list);
    }
    if let Some(auth) = inputs.external_auth.as_ref().and_then(Reference::object) {
        parts::external_auth::add_env(&auth.spec, &mut list);
    }
    if let Some(oidc) = inputs.oidc.as_ref().and_then(Reference::object) {
        parts::oidc::add_env(&oidc.spec, &mut list);
    }
    let overrides =
        spec.resource_overrides.as_ref().and_then(|overrides| overrides.proxy_deployment.as_ref());
    list.extend(overrides.map(|overrides| overrides.env.as_slice()).unwrap_or_default());
    let password = spec.session_storage.as_ref().and_then(|storage| storage.password_ref.as_ref());
    if let Some(password) = password {
        list.set_from_secret(env::SESSION_REDIS_PASSWORD, password);
    }
    list.set_from_annotation(env::MCPSERVER_GENERATION, annotations::MCPSERVER_GENERATION);
    if let Some(server) = auth_server(inputs) {
        parts::auth_server::add_env(server, &mut list);
    }
    list.set_default(env::XDG_CONFIG_HOME, "/tmp");
    list.set_default(env::HOME, "/tmp");
    list.set_default(env::RUNTIME, env::KUBERNETES);
    list.set_default(env::UNSTRUCTURED_LOGS, "false");
    if list.any_starts_with(env::SECRET_PREFIX) {
        list.set(env::SECRETS_PROVIDER, env::SECRETS_FROM_ENVIRONMENT);
    }
    list
}

fn volumes(inputs: &Inputs) -> Volumes {
    let spec = inputs.spec();
    let mut volumes = Volumes::default();
    volumes.config_map("runconfig", &inputs.run_config_name(), None, paths::RUN_CONFIG_FOLDER);
    if let Some(webhooks) = inputs.webhooks.as_ref().and_then(Reference::object) {
        parts::webhooks::add_volumes(&webhooks.spec, &mut volumes);
    }
    for volume in &spec.volumes {
        let read_only = volume.read_only.unwrap_or_default();
        volumes.host_path(&volume.name, &volume.host_path, &volume.mount_path, read_only);
    }
    if let Some(profile) = &spec.permission_profile
        && profile.type_.unwrap_or_default() == PermissionProfileType::ConfigMap
    {
        volumes.config_map("permission-profile", &profile.name, None, paths::PROFILES_FOLDER);
    }
    if let Some(authz) = &spec.authz_config {
        parts::authz::add_volumes(authz, &authz_config_name(inputs), &mut volumes);
    }
    if let Some(oidc) = inputs.oidc.as_ref().and_then(Reference::object) {
        parts::oidc::add_volumes(&oidc.spec, &mut volumes);
    }
    if let Some(telemetry) = inputs.telemetry.as_ref().and_then(Reference::object) {
        parts::telemetry::add_volumes(&telemetry.spec, &mut volumes);
    }
    if let Some(server) = auth_server(inputs) {
        parts::auth_server::add_volumes(server, &mut volumes);
    }
    volumes
}

/// The StatefulSet is the proxy's. All that is ours in it is whose it is, so that it goes with the object.
fn adopted_stateful_set(inputs: &Inputs) -> Option<Child> {
    let identity = &inputs.identity;
    let body = json!({"metadata": {"ownerReferences": [identity.owner()]}});
    inputs.stateful_set.then(|| {
        Child::from_value(StatefulSets::KIND, identity.namespace.clone(), identity.name.clone(), body)
    })
}
