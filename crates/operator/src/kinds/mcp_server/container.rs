//! What the proxy's container finds around it: variables and files.

use skep_api::kinds::PermissionProfileType;
use skep_config::{annotations, env, paths};

use super::{inputs::Inputs, run_config::auth_server};
use crate::{
    build::{EnvList, Volumes},
    parts,
    reference::object,
};

/// The variables of the proxy's container. What the operator sets goes over what a user sets.
pub(super) fn environment(inputs: &Inputs) -> EnvList {
    let spec = inputs.spec();
    let identity = &inputs.identity;
    let mut list = EnvList::default();
    if let (Some(reference), Some(telemetry)) = (&spec.telemetry_config_ref, object(&inputs.telemetry)) {
        parts::telemetry::add_env(&telemetry.spec, reference, identity, &mut list);
    }
    if let Some(auth) = object(&inputs.external_auth) {
        parts::external_auth::add_env(&auth.spec, &mut list);
    }
    if let Some(oidc) = object(&inputs.oidc) {
        parts::oidc::add_env(&oidc.spec, &mut list);
    }
    list.extend(spec.proxy_deployment().map(|overrides| overrides.env.as_slice()).unwrap_or_default());
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

/// The files of the proxy's container.
pub(super) fn volumes(inputs: &Inputs) -> Volumes {
    let spec = inputs.spec();
    let mut volumes = Volumes::default();
    volumes.config_map("runconfig", &inputs.run_config_name(), None, paths::RUN_CONFIG_FOLDER);
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
    if let Some(authz) = &spec.authz_config {
        parts::authz::add_volumes(authz, &inputs.inline_authz_name(), &mut volumes);
    }
    if let Some(oidc) = object(&inputs.oidc) {
        parts::oidc::add_volumes(&oidc.spec, &mut volumes);
    }
    if let Some(telemetry) = object(&inputs.telemetry) {
        parts::telemetry::add_volumes(&telemetry.spec, &mut volumes);
    }
    if let Some(server) = auth_server(inputs) {
        parts::auth_server::add_volumes(server, &mut volumes);
    }
    volumes
}
