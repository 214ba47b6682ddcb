//! What a proxy's container finds around it, whatever it stands in front of.

use skep_config::{env, paths};

use super::Proxied;
use crate::{
    build::{EnvList, Volumes},
    parts,
    reference::object,
};

impl Proxied {
    /// Adds the variables that a user gives, and after them the password that is not theirs to change.
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
            parts::auth_server::add_env(server, list);
        }
    }

    /// Adds the file that tells the proxy what to do.
    pub(crate) fn add_run_config_files(&self, volumes: &mut Volumes) {
        volumes.config_map("runconfig", &self.run_config_name(), None, paths::RUN_CONFIG_FOLDER);
    }

    pub(crate) fn add_authz_files(&self, volumes: &mut Volumes) {
        if let Some(authz) = self.spec().authz_config {
            parts::authz::add_volumes(authz, &self.inline_authz_name(), volumes);
        }
    }

    pub(crate) fn add_oidc_files(&self, volumes: &mut Volumes) {
        if let Some(oidc) = object(&self.oidc) {
            parts::oidc::add_volumes(&oidc.spec, volumes);
        }
    }

    pub(crate) fn add_telemetry_files(&self, volumes: &mut Volumes) {
        if let Some(telemetry) = object(&self.telemetry) {
            parts::telemetry::add_volumes(&telemetry.spec, volumes);
        }
    }

    pub(crate) fn add_auth_server_files(&self, volumes: &mut Volumes) {
        if let Some(server) = self.embedded_server() {
            parts::auth_server::add_volumes(server, volumes);
        }
    }
}

/// What every proxy's container has unless something else was said.
pub(crate) fn add_defaults(list: &mut EnvList) {
    list.set_default(env::XDG_CONFIG_HOME, "/tmp");
    list.set_default(env::HOME, "/tmp");
    list.set_default(env::RUNTIME, env::KUBERNETES);
    list.set_default(env::UNSTRUCTURED_LOGS, "false");
}
