//! What the proxy's container finds around it: variables and files.

use skep_api::kinds::PermissionProfileType;
use skep_config::{annotations, env, paths};

use super::inputs::Inputs;
use crate::{
    build::{EnvList, Volumes},
    parts,
    proxied::add_defaults,
    reference::object,
};

/// The variables of the proxy's container. What the operator sets goes over what a user sets.
pub(super) fn environment(inputs: &Inputs) -> EnvList {
    let (spec, proxied) = (inputs.spec(), &inputs.proxied);
    let mut list = EnvList::default();
    if let (Some(reference), Some(telemetry)) = (&spec.telemetry_config_ref, object(&proxied.telemetry)) {
        parts::telemetry::add_env(&telemetry.spec, reference, &proxied.identity, &mut list);
    }
    if let Some(auth) = object(&proxied.external_auth) {
        parts::external_auth::add_env(&auth.spec, &mut list);
    }
    if let Some(oidc) = object(&proxied.oidc) {
        parts::oidc::add_env(&oidc.spec, &mut list);
    }
    proxied.add_user_env(&mut list);
    list.set_from_annotation(env::MCPSERVER_GENERATION, annotations::MCPSERVER_GENERATION);
    proxied.add_auth_server_env(&mut list);
    add_defaults(&mut list);
    if list.any_starts_with(env::SECRET_PREFIX) {
        list.set(env::SECRETS_PROVIDER, env::SECRETS_FROM_ENVIRONMENT);
    }
    list
}

/// The files of the proxy's container.
pub(super) fn volumes(inputs: &Inputs) -> Volumes {
    let (spec, proxied) = (inputs.spec(), &inputs.proxied);
    let mut volumes = Volumes::default();
    proxied.add_run_config_files(&mut volumes);
    if let Some(webhooks) = object(&inputs.webhooks) {
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
    proxied.add_authz_files(&mut volumes);
    proxied.add_oidc_files(&mut volumes);
    proxied.add_telemetry_files(&mut volumes);
    proxied.add_auth_server_files(&mut volumes);
    volumes
}
