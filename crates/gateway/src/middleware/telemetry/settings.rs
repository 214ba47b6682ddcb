//! The settings of traces and metrics, validated.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_sdk::{Resource, resource::EnvResourceDetector};
use skep_config::{env, run_config};

use crate::ConfigError;

/// The part of the requests that is traced by default.
const SAMPLING_RATE: f64 = 0.05;

pub(super) fn wrong(what: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::new(format!("telemetry: {what}"))
}

/// Where a signal is sent. `insecure` alone decides whether TLS is used.
pub(super) fn address(config: &run_config::Telemetry, signal: &str) -> Result<String, ConfigError> {
    let endpoint = &config.endpoint;
    let bare = ["https://", "http://"].iter().find_map(|scheme| endpoint.strip_prefix(scheme));
    let scheme = if config.insecure { "http" } else { "https" };
    let address = format!("{scheme}://{}/v1/{signal}", bare.unwrap_or(endpoint).trim_end_matches('/'));
    match address.parse::<http::Uri>() {
        Ok(uri) if uri.host().is_some_and(|host| !host.is_empty()) && uri.query().is_none() => Ok(address),
        _ => Err(wrong(&"endpoint: write it as host:port, with a path if need be")),
    }
}

/// From 0 to 1.
pub(super) fn sampling_rate(config: &run_config::Telemetry) -> Result<f64, ConfigError> {
    if config.sampling_rate.is_empty() {
        return Ok(SAMPLING_RATE);
    }
    let rate = config.sampling_rate.parse::<f64>().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| wrong(&format!("samplingRate: {:?} is not a share from 0 to 1", config.sampling_rate)))
}

/// The headers for the collector: those of the file, and those that the operator puts into variables because they are
/// secret. `_` in a variable's name replaces `-` in the header's name.
pub(super) fn headers(
    config: &run_config::Telemetry,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<HeaderMap, ConfigError> {
    let secret = variables.filter_map(|(name, value)| {
        let header = name.strip_prefix(env::OTEL_HEADER_PREFIX)?;
        (!header.is_empty()).then(|| (header.replace('_', "-"), value))
    });
    let plain = config.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let mut headers = HeaderMap::new();
    for (name, value) in plain.chain(secret) {
        let known: HeaderName =
            name.parse().map_err(|_| wrong(&format!("headers: {name:?} is not the name of a header")))?;
        // Not the value: it may be a secret.
        let mut value: HeaderValue =
            value.parse().map_err(|_| wrong(&format!("headers: the value of {name:?} cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}

/// The resource that is observed. The environment takes precedence over the file.
pub(super) fn resource(config: &run_config::Telemetry) -> Resource {
    let version = match config.service_version.as_str() {
        "" => env!("CARGO_PKG_VERSION"),
        version => version,
    };
    let custom =
        config.custom_attributes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let host = std::env::var("HOSTNAME").ok().map(|name| KeyValue::new("host.name", name));
    Resource::builder_empty()
        .with_service_name(config.service_name.clone())
        .with_attribute(KeyValue::new("service.version", version.to_owned()))
        .with_attributes(custom)
        .with_detector(Box::new(EnvResourceDetector::new()))
        .with_attributes(host)
        .build()
}

/// The variables that are attributes of every span.
pub(super) fn environment(
    config: &run_config::Telemetry,
    variables: &BTreeMap<String, String>,
) -> Vec<KeyValue> {
    let set = config.environment_variables.iter().filter_map(|name| {
        let name = name.trim();
        Some(KeyValue::new(format!("environment.{name}"), variables.get(name)?.clone()))
    });
    set.collect()
}

/// The environment, as far as it is text.
pub(super) fn variables() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: serde_json::Value) -> run_config::Telemetry {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_path_of_a_collector_stays_and_insecure_determines_the_scheme() {
        for (endpoint, insecure, expected) in [
            ("c:4318", false, "https://c:4318/v1/traces"),
            ("c:4318", true, "http://c:4318/v1/traces"),
            ("http://c:4318/base/", false, "https://c:4318/base/v1/traces"),
        ] {
            let config = config(serde_json::json!({"endpoint": endpoint, "insecure": insecure}));
            assert_eq!(address(&config, "traces").unwrap(), expected);
        }
        for endpoint in ["", "a b", "c?key=1", "https://"] {
            assert!(
                address(&config(serde_json::json!({"endpoint": endpoint})), "traces").is_err(),
                "{endpoint}"
            );
        }
    }

    #[test]
    fn a_sampling_rate_is_a_share() {
        let rate = |text: &str| sampling_rate(&config(serde_json::json!({"samplingRate": text}))).ok();
        assert_eq!([rate(""), rate("0"), rate("1.0"), rate("0.25")], [0.05, 0.0, 1.0, 0.25].map(Some));
        assert_eq!([rate("-1"), rate("2"), rate("NaN"), rate("much")], [None; 4]);
    }

    #[test]
    fn secret_headers_come_from_the_environment_and_are_not_shown() {
        let config = config(serde_json::json!({"headers": {"x-team": "a"}}));
        let variables =
            [("TOOLHIVE_OTEL_HEADER_X_API_KEY", "k"), ("TOOLHIVE_OTEL_HEADER_", "no"), ("HOME", "/")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let sent = headers(&config, variables.into_iter()).unwrap();
        assert_eq!(
            (sent.len(), &sent["x-team"], &sent["x-api-key"]),
            (2, &"a".parse().unwrap(), &"k".parse().unwrap())
        );
        assert!(!format!("{sent:?}").contains("\"k\""));
        let bad = [("TOOLHIVE_OTEL_HEADER_X".to_owned(), "secret\n".to_owned())];
        let error = headers(&config, bad.into_iter()).unwrap_err().to_string();
        assert!(error.contains("\"X\"") && !error.contains("secret"), "{error}");
    }
}
