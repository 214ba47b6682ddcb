//! The environment and files of a proxy's container.

use skep_config::{env, paths};

use super::ProxyWorkload;
use crate::{
    build::{EnvList, Volumes},
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

    /// Adds the RunConfig file.
    pub(crate) fn add_run_config_files(&self, volumes: &mut Volumes) {
        volumes.config_map("runconfig", &self.run_config_name(), None, paths::RUN_CONFIG_FOLDER);
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
