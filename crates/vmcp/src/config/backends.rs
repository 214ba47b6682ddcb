//! The backends of a configuration.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Deserialize;
use skep_api::{
    Duration as GoDuration,
    vmcp::{Backend, Config, FailureHandling, Timeouts},
};
use skep_config::env;
use skep_gateway::{AuthorizationServer, body::Budget};
use tokio::sync::watch;

use super::Variables;
use crate::{
    ConfigError,
    backend::{Authorities, Blueprint, Checks, Factory, Thresholds},
    limits,
};

/// Makes the backends of a configuration.
pub(super) fn factory(
    config: &Config,
    changed: Arc<watch::Sender<u64>>,
    server: Option<Arc<dyn AuthorizationServer>>,
    budget: Budget,
) -> Result<Factory, ConfigError> {
    let operational = config.operational.clone().unwrap_or_default();
    let timeouts: Timeouts = operational.timeouts.unwrap_or_default();
    let timeout = move |backend: &str| {
        let own = timeouts.per_workload.get(backend).or(timeouts.default.as_ref());
        duration(own).unwrap_or(limits::BACKEND_TIME)
    };
    Factory::new(checks(operational.failure_handling.as_ref()), timeout, changed, server, budget)
}

/// The backends that the file has.
pub(super) fn blueprints(config: &Config, variables: &Variables) -> Result<Vec<Blueprint>, ConfigError> {
    let each = config.backends.iter().enumerate().map(|(index, backend)| {
        let wrong = |message: String| ConfigError::new(format!("backends[{index}]: {message}"));
        let strategy = config.outgoing_auth.as_ref().and_then(|outgoing| outgoing.strategy(&backend.name));
        Ok(Blueprint {
            name: backend.name.as_str().into(),
            url: backend.url.clone(),
            transport: backend.transport,
            strategy: strategy
                .map(|strategy| strategy.clone().with_secrets(|name| variables.given_secret(name))),
            auth_config: None,
            headers: static_headers(&backend.name, variables).map_err(wrong)?,
            authorities: authorities(backend),
        })
    });
    each.collect()
}

/// A file that does not exist is no error before it is needed, as the operator mounts it.
fn authorities(backend: &Backend) -> Authorities {
    match &backend.ca_bundle_path {
        Some(path) if std::path::Path::new(path).exists() => Authorities::File(path.clone()),
        _ => Authorities::System,
    }
}

fn checks(handling: Option<&FailureHandling>) -> Checks {
    let time = |get: fn(&FailureHandling) -> Option<&GoDuration>| duration(handling.and_then(get));
    let interval =
        time(|handling| handling.health_check_interval.as_ref()).unwrap_or(Duration::from_secs(30));
    let timeout = time(|handling| handling.health_check_timeout.as_ref()).unwrap_or(Duration::from_secs(10));
    Checks { interval, timeout: timeout.min(interval), thresholds: Thresholds::new(handling) }
}

fn duration(duration: Option<&GoDuration>) -> Option<Duration> {
    duration.and_then(|duration| duration.to_std().ok()).filter(|duration| !duration.is_zero())
}

/// The headers that the operator sets for one backend, in its environment.
fn static_headers(backend: &str, variables: &Variables) -> Result<BTreeMap<String, String>, String> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Forward {
        add_plaintext_headers: BTreeMap<String, String>,
        add_headers_from_secret: BTreeMap<String, String>,
    }
    let variable = env::entry_headers(backend);
    let Some(text) = variables.get(&variable) else { return Ok(BTreeMap::new()) };
    let forward: Forward =
        serde_json::from_str(&text).map_err(|_| format!("{variable} is not valid JSON"))?;
    let mut headers = forward.add_plaintext_headers;
    for (name, id) in forward.add_headers_from_secret {
        let variable = env::secret(&id);
        let value = variables.secret(&variable).ok_or_else(|| format!("{variable} is not set"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}
