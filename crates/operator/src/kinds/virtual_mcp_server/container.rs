//! The arguments, environment and files of the server's container.

use skep_api::{kinds::MCPServerEntry, refs::SecretKeyRef, vmcp::LogLevel};
use skep_config::{env, objects, paths, ports};

use super::{backend_auth::BackendAuths, backends::Member, inputs::Inputs};
use crate::{
    build::{EnvList, Volumes},
    config_refs,
    proxy_workload::add_defaults,
};

/// The arguments of the server.
pub(super) fn args(inputs: &Inputs) -> Vec<String> {
    let mut args = vec![
        "serve".to_owned(),
        format!("--config={}/{}", paths::VMCP_CONFIG_FOLDER, paths::VMCP_CONFIG_FILE),
        "--host=0.0.0.0".to_owned(),
        format!("--port={}", ports::VMCP),
    ];
    if inputs.config().operational.and_then(|operational| operational.log_level) == Some(LogLevel::Debug) {
        args.push("--debug".into());
    }
    args
}

/// The variables of the server's container.
pub(super) fn environment(inputs: &Inputs, backend_auths: &BackendAuths) -> EnvList {
    let identity = &inputs.identity;
    let mut list = EnvList::default();
    list.set(env::VMCP_NAME, &identity.name);
    list.set(env::VMCP_NAMESPACE, &identity.namespace);
    inputs.oidc.add_env(env::VMCP_OIDC_CLIENT_SECRET, &mut list);
    for (name, secret) in backend_auths.variables(inputs) {
        list.set_from_secret(name, secret);
    }
    add_headers(inputs, &mut list);
    let key =
        SecretKeyRef { name: objects::session_secret(&identity.name), key: objects::SESSION_KEY.into() };
    list.set_from_secret(env::VMCP_SESSION_KEY, &key);
    if let Some(password) = inputs.redis_password() {
        list.set_from_secret(env::SESSION_REDIS_PASSWORD, password);
    }
    inputs.telemetry.add_env(identity, &mut list);
    if let Some(server) = inputs.auth_server() {
        config_refs::auth_server::add_env(server, &mut list);
    }
    add_defaults(&inputs.settings, &mut list);
    if list.any_starts_with(env::SECRET_PREFIX) {
        list.set(env::SECRETS_PROVIDER, env::SECRETS_FROM_ENVIRONMENT);
    }
    list
}

/// Adds the headers of entries, sorted by variable. An entry without one of its Secrets gets none: the pods would wait for
/// it, and with them all other backends.
fn add_headers(inputs: &Inputs, list: &mut EnvList) {
    let entries = inputs.members.iter().filter_map(Member::entry);
    let complete = |name: &str, entry: &MCPServerEntry| {
        config_refs::entry::secrets(name, &entry.spec).all(|(_, secret)| inputs.missing(secret).is_none())
    };
    let entries: Vec<_> = entries.filter(|(name, entry)| complete(name, entry)).collect();
    let mut plain: Vec<_> =
        entries.iter().filter_map(|(name, entry)| config_refs::entry::headers(name, &entry.spec)).collect();
    let mut secret: Vec<_> =
        entries.iter().flat_map(|(name, entry)| config_refs::entry::secrets(name, &entry.spec)).collect();
    // The prefixes of the two kinds of variables sort all of one before all of the other.
    plain.sort();
    secret.sort_by(|(a, _), (b, _)| a.cmp(b));
    plain.into_iter().for_each(|(name, value)| list.set(name, value));
    secret.into_iter().for_each(|(name, secret)| list.set_from_secret(name, secret));
}

/// The files of the server's container. Their hash is an annotation of the Deployment.
pub(super) fn volumes(inputs: &Inputs) -> Volumes {
    let mut volumes = Volumes::default();
    let config = objects::vmcp_config(&inputs.identity.name);
    volumes.config_map("vmcp-config", &config, None, paths::VMCP_CONFIG_FOLDER);
    inputs.oidc.add_volumes(&mut volumes);
    let entries = inputs.members.iter().filter_map(Member::entry);
    for (name, entry) in entries.filter(|(_, entry)| inputs.has_certificates(entry)) {
        config_refs::entry::add_volumes(name, &entry.spec, &mut volumes);
    }
    inputs.telemetry.add_volumes(&mut volumes);
    if let Some(server) = inputs.auth_server() {
        config_refs::auth_server::add_volumes(server, &mut volumes);
    }
    volumes
}
