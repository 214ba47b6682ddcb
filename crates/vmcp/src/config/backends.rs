//! The backends of a configuration.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use skep_api::{
    Duration as GoDuration,
    vmcp::{Config, FailureHandling},
};
use skep_config::{FieldPath, field::joined};
use skep_gateway::outbound::Client;
use tokio::sync::watch;

use crate::{
    ConfigError,
    backend::{Backend, Checks, Settings, Thresholds},
    limits,
    outgoing::Credentials,
    views::Backends,
};

/// The backends by their names.
pub(super) fn backends(config: &Config, changed: &Arc<watch::Sender<u64>>) -> Result<Backends, ConfigError> {
    let client = Arc::new(Client::new(false)?);
    let mut backends = Backends::new();
    for (index, backend) in config.backends.iter().enumerate() {
        let wrong = |message: String| ConfigError::new(format!("backends[{index}]: {message}"));
        let name: Arc<str> = backend.name.as_str().into();
        let credentials = credentials(config, &backend.name)?;
        let settings = Settings {
            name: name.clone(),
            uri: backend.url.parse().map_err(|_| wrong(format!("url: {:?} is not a URL", backend.url)))?,
            transport: backend.transport,
            headers: static_headers(&backend.name).map_err(wrong)?,
            timeout: timeout(config, &backend.name),
            checks: checks(config, !matches!(credentials, Credentials::Unauthenticated)),
            credentials,
        };
        backends.insert(name, Arc::new(Backend::new(settings, client.clone(), changed.clone())));
    }
    Ok(backends)
}

fn credentials(config: &Config, backend: &str) -> Result<Credentials, ConfigError> {
    let Some(outgoing) = &config.outgoing_auth else { return Ok(Credentials::Unauthenticated) };
    let (strategy, path) = match outgoing.backends.get(backend) {
        Some(strategy) => (Some(strategy), FieldPath::from("outgoingAuth.backends").key(backend)),
        None => (outgoing.default.as_ref(), FieldPath::from("outgoingAuth.default")),
    };
    Credentials::new(strategy).map_err(|errors| {
        let errors: Vec<_> = errors.into_iter().map(|error| error.within(path.clone())).collect();
        ConfigError::new(joined(&errors))
    })
}

fn timeout(config: &Config, backend: &str) -> Duration {
    let timeouts = config.operational.as_ref().and_then(|operational| operational.timeouts.as_ref());
    let own = timeouts.and_then(|timeouts| timeouts.per_workload.get(backend).or(timeouts.default.as_ref()));
    duration(own).unwrap_or(limits::BACKEND_TIME)
}

fn checks(config: &Config, has_credentials: bool) -> Checks {
    let handling: Option<&FailureHandling> =
        config.operational.as_ref().and_then(|operational| operational.failure_handling.as_ref());
    let time = |get: fn(&FailureHandling) -> Option<&GoDuration>| duration(handling.and_then(get));
    let interval =
        time(|handling| handling.health_check_interval.as_ref()).unwrap_or(Duration::from_secs(30));
    let timeout = time(|handling| handling.health_check_timeout.as_ref()).unwrap_or(Duration::from_secs(10));
    Checks {
        interval,
        timeout: timeout.min(interval),
        thresholds: Thresholds::new(handling, has_credentials),
    }
}

fn duration(duration: Option<&GoDuration>) -> Option<Duration> {
    duration.and_then(|duration| duration.to_std().ok()).filter(|duration| !duration.is_zero())
}

/// The headers that the operator sets for one backend, in its environment.
fn static_headers(backend: &str) -> Result<HeaderMap, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Forward {
        add_plaintext_headers: std::collections::BTreeMap<String, String>,
        add_headers_from_secret: std::collections::BTreeMap<String, String>,
    }
    let suffix: String = backend
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect();
    let variable = format!("TOOLHIVE_HEADER_FORWARD_{suffix}");
    let Ok(text) = std::env::var(&variable) else { return Ok(HeaderMap::new()) };
    let forward: Forward =
        serde_json::from_str(&text).map_err(|_| format!("{variable} is not valid JSON"))?;
    let secret = |id: &String| {
        let variable = format!("TOOLHIVE_SECRET_{id}");
        std::env::var(&variable).map_err(|_| format!("{variable} is not set"))
    };
    let mut headers = HeaderMap::new();
    let plain = forward.add_plaintext_headers.iter().map(|(name, value)| Ok((name.clone(), value.clone())));
    let secrets = forward
        .add_headers_from_secret
        .iter()
        .map(|(name, id)| secret(id).map(|value| (name.clone(), value)));
    for header in plain.chain(secrets) {
        let (name, value) = header?;
        let invalid = || format!("{variable}: {name:?} is not a valid header");
        let parsed = HeaderName::try_from(name.as_str()).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}
