//! The environment and files of the proxy's container.

use skep_api::kinds::PermissionProfileType;
use skep_config::{annotations, env, paths};

use super::inputs::Inputs;
use crate::{
    build::{EnvList, Volumes},
    proxy_workload::add_defaults,
};

/// The variables of the proxy's container. The operator's override the user's.
pub(super) fn environment(inputs: &Inputs) -> EnvList {
    let proxy = &inputs.proxy;
    let mut list = EnvList::default();
    proxy.telemetry.add_env(&proxy.identity, &mut list);
    proxy.external_auth.upstream.add_env(&mut list);
    proxy.oidc.add_env(env::OIDC_CLIENT_SECRET, &mut list);
    proxy.add_user_env(&mut list);
    list.set_from_annotation(env::MCPSERVER_GENERATION, annotations::MCPSERVER_GENERATION);
    proxy.external_auth.add_server_env(&mut list);
    add_defaults(&proxy.settings, &mut list);
    if list.any_starts_with(env::SECRET_PREFIX) {
        list.set(env::SECRETS_PROVIDER, env::SECRETS_FROM_ENVIRONMENT);
    }
    list
}

/// The files of the proxy's container.
pub(super) fn volumes(inputs: &Inputs) -> Volumes {
    let (spec, proxy) = (inputs.spec(), &inputs.proxy);
    let mut volumes = Volumes::default();
    proxy.add_run_config_files(&mut volumes);
    inputs.webhooks.add_volumes(&mut volumes);
    for volume in &spec.volumes {
        let read_only = volume.read_only.unwrap_or_default();
        volumes.host_path(&volume.name, &volume.host_path, &volume.mount_path, read_only);
    }
    if let Some(profile) = &spec.permission_profile
        && profile.type_.unwrap_or_default() == PermissionProfileType::ConfigMap
    {
        volumes.config_map("permission-profile", &profile.name, None, paths::PROFILES_FOLDER);
    }
    proxy.policies.add_volumes(&proxy.identity, &mut volumes);
    proxy.oidc.add_volumes(&mut volumes);
    proxy.telemetry.add_volumes(&mut volumes);
    proxy.external_auth.add_volumes(&mut volumes);
    volumes
}
