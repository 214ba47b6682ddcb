//! The environment and files of a proxy's container.

use skep_config::{env, paths};

use super::ProxyWorkload;
use crate::{
    build::{EnvList, Volumes},
    config_refs,
    settings::Settings,
};

impl ProxyWorkload {
    /// Adds the user's variables, and then the password, which they cannot override.
    pub(crate) fn add_user_env(&self, list: &mut EnvList) {
        let spec = self.spec();
        list.extend(spec.deployment().map(|overrides| overrides.env.as_slice()).unwrap_or_default());
        if let Some(password) = spec.session_storage.and_then(|storage| storage.password_ref.as_ref()) {
            list.set_from_secret(env::SESSION_REDIS_PASSWORD, password);
        }
    }

    /// Adds the variables of the authorization server that the proxy runs.
    pub(crate) fn add_auth_server_env(&self, list: &mut EnvList) {
        if let Some(server) = self.embedded_server() {
            config_refs::auth_server::add_env(server, list);
        }
    }

    /// Adds the RunConfig file.
    pub(crate) fn add_run_config_files(&self, volumes: &mut Volumes) {
        volumes.config_map("runconfig", &self.run_config_name(), None, paths::RUN_CONFIG_FOLDER);
    }

    pub(crate) fn add_authz_files(&self, volumes: &mut Volumes) {
        if let Some(authz) = self.spec().authz_config {
            config_refs::authz::add_volumes(authz, &self.inline_authz_name(), volumes);
        }
    }

    pub(crate) fn add_auth_server_files(&self, volumes: &mut Volumes) {
        if let Some(server) = self.embedded_server() {
            config_refs::auth_server::add_volumes(server, volumes);
        }
    }
}

/// Adds the variables that every proxy has. A user may override the defaults, and not who may read calls.
pub(crate) fn add_defaults(settings: &Settings, list: &mut EnvList) {
    if let Some(reader) = &settings.calls_reader {
        list.set(env::CALLS_READER, reader);
    }
    list.set_default(env::XDG_CONFIG_HOME, "/tmp");
    list.set_default(env::HOME, "/tmp");
    list.set_default(env::RUNTIME, env::KUBERNETES);
    list.set_default(env::UNSTRUCTURED_LOGS, "false");
}
