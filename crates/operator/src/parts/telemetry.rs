//! MCPTelemetryConfig: which traces and metrics a proxy makes, and where they go.

use skep_api::{
    kinds::{MCPTelemetryConfigSpec, OpenTelemetry},
    refs::TelemetryConfigRef,
};
use skep_config::{env, paths, run_config::Telemetry};

use super::{
    ca_bundle::{self, CaBundle},
    checks, flag, said,
};
use crate::build::{EnvList, Identity, Volumes};

const CA_VOLUME: &str = "otel-ca-bundle-";

/// What is wrong with the object by itself.
pub(crate) fn check(spec: &MCPTelemetryConfigSpec) -> Result<(), String> {
    let Some(otel) = &spec.open_telemetry else { return Ok(()) };
    if let Some(endpoint) = said(&otel.endpoint)
        && !traces(otel)
        && !metrics(otel)
    {
        return Err(format!(
            "openTelemetry.endpoint: nothing is sent to {endpoint:?}: set openTelemetry.tracing.enabled or \
             openTelemetry.metrics.enabled"
        ));
    }
    if let Some(rate) = sampling_rate(otel)
        && !rate.parse::<f64>().is_ok_and(|rate| rate >= 0.0)
    {
        return Err(format!("openTelemetry.tracing.samplingRate: {rate:?} is not a number from 0 to 1"));
    }
    check_headers(otel)?;
    let Some(bundle) = &otel.ca_bundle_ref else { return Ok(()) };
    if flag(otel.insecure) {
        return Err(
            "openTelemetry.caBundleRef: without TLS there is nothing to trust: leave it out, or set \
                    openTelemetry.insecure to false"
                .into(),
        );
    }
    ca_bundle::check("openTelemetry.caBundleRef", bundle)
}

fn check_headers(otel: &OpenTelemetry) -> Result<(), String> {
    for header in &otel.sensitive_headers {
        let field = format!("openTelemetry.sensitiveHeaders[{:?}]", header.name);
        if header.name.is_empty() {
            return Err(format!("{field}.name: name the header"));
        }
        checks::secret(&format!("{field}.secretKeyRef"), &header.secret_key_ref)?;
        // To HTTP, names of headers are the same in any case.
        if otel.headers.keys().any(|name| name.eq_ignore_ascii_case(&header.name)) {
            return Err(format!("{field}: it is in openTelemetry.headers, too: keep it in one of them"));
        }
    }
    Ok(())
}

/// Which traces and metrics the proxy of a workload makes. Headers from Secrets are in the environment: see
/// [`add_env`].
pub(crate) fn telemetry(
    spec: &MCPTelemetryConfigSpec,
    reference: &TelemetryConfigRef,
    identity: &Identity,
) -> Telemetry {
    let sent = enabled(spec).map(sent).unwrap_or_default();
    Telemetry {
        service_name: service_name(reference, identity).into(),
        enable_prometheus_metrics_path: spec
            .prometheus
            .as_ref()
            .is_some_and(|prometheus| flag(prometheus.enabled)),
        ..sent
    }
}

/// What is sent to a collector.
fn sent(otel: &OpenTelemetry) -> Telemetry {
    Telemetry {
        endpoint: otel.endpoint.as_deref().map(without_scheme).unwrap_or_default().into(),
        tracing_enabled: traces(otel),
        metrics_enabled: metrics(otel),
        sampling_rate: sampling_rate(otel).map(shortest).unwrap_or_default(),
        headers: otel.headers.clone(),
        insecure: flag(otel.insecure),
        custom_attributes: otel.resource_attributes.clone(),
        use_legacy_attributes: otel.use_legacy_attributes.unwrap_or(true),
        ca_cert_path: CaBundle::new(otel.ca_bundle_ref.as_ref())
            .map(|bundle| bundle.path(paths::OTEL_CERTS_FOLDER))
            .unwrap_or_default(),
        ..Telemetry::default()
    }
}

/// The certificates of the collector, if it has a private authority.
pub(crate) fn ca_bundle(spec: &MCPTelemetryConfigSpec) -> Option<CaBundle<'_>> {
    CaBundle::new(enabled(spec)?.ca_bundle_ref.as_ref())
}

/// Adds who the service is, and the headers from Secrets.
pub(crate) fn add_env(
    spec: &MCPTelemetryConfigSpec,
    reference: &TelemetryConfigRef,
    identity: &Identity,
    variables: &mut EnvList,
) {
    let (name, namespace) = (service_name(reference, identity), &identity.namespace);
    let service = format!("service.name={name},service.namespace={namespace}");
    variables.set(env::OTEL_RESOURCE_ATTRIBUTES, service);
    for header in enabled(spec).into_iter().flat_map(|otel| &otel.sensitive_headers) {
        variables.set_from_secret(env::otel_header(&header.name), &header.secret_key_ref);
    }
}

/// Adds the certificates.
pub(crate) fn add_volumes(spec: &MCPTelemetryConfigSpec, volumes: &mut Volumes) {
    if let Some(bundle) = ca_bundle(spec) {
        bundle.add_volume(paths::OTEL_CERTS_FOLDER, CA_VOLUME, volumes);
    }
}

fn enabled(spec: &MCPTelemetryConfigSpec) -> Option<&OpenTelemetry> {
    spec.open_telemetry.as_ref().filter(|otel| flag(otel.enabled))
}

fn traces(otel: &OpenTelemetry) -> bool {
    otel.tracing.as_ref().is_some_and(|tracing| flag(tracing.enabled))
}

fn metrics(otel: &OpenTelemetry) -> bool {
    otel.metrics.as_ref().is_some_and(|metrics| flag(metrics.enabled))
}

fn sampling_rate(otel: &OpenTelemetry) -> Option<&str> {
    said(&otel.tracing.as_ref()?.sampling_rate)
}

/// A share as its shortest decimal number.
fn shortest(rate: &str) -> String {
    rate.parse::<f64>().map(|rate| rate.clamp(0.0, 1.0).to_string()).unwrap_or_default()
}

/// The address of a collector as exporters take it. Whether TLS is used, another field says.
fn without_scheme(endpoint: &str) -> &str {
    ["https://", "http://"].iter().find_map(|scheme| endpoint.strip_prefix(scheme)).unwrap_or(endpoint)
}

fn service_name<'a>(reference: &'a TelemetryConfigRef, identity: &'a Identity) -> &'a str {
    said(&reference.service_name).unwrap_or(&identity.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::parts::samples::{identity, mounts, sample, variables};

    fn otel(fields: Value) -> MCPTelemetryConfigSpec {
        sample(json!({"openTelemetry": fields}))
    }

    fn of(spec: &MCPTelemetryConfigSpec) -> Telemetry {
        telemetry(spec, &sample(json!({"name": "otel"})), &identity("team", "files"))
    }

    #[test]
    fn an_endpoint_needs_something_to_send() {
        let endpoint = "collector:4318";
        let error = check(&otel(json!({"endpoint": endpoint}))).unwrap_err();
        assert!(
            error.starts_with("openTelemetry.endpoint: nothing is sent to \"collector:4318\""),
            "{error}"
        );
        assert_eq!(check(&otel(json!({"endpoint": endpoint, "metrics": {"enabled": true}}))), Ok(()));
        assert_eq!(check(&sample(json!({}))), Ok(()));
    }

    #[test]
    fn a_header_is_plain_or_secret_and_a_secret_one_is_complete() {
        let secret = |name: &str, secret: &str| {
            otel(json!({
                "headers": {"X-Team": "a"},
                "sensitiveHeaders": [{"name": name, "secretKeyRef": {"name": secret, "key": "k"}}],
            }))
        };
        assert_eq!(check(&secret("x-key", "s")), Ok(()));
        for (name, secret_name, field) in [
            ("x-team", "s", "openTelemetry.sensitiveHeaders[\"x-team\"]: "),
            ("x-key", "", "openTelemetry.sensitiveHeaders[\"x-key\"].secretKeyRef.name: "),
        ] {
            let error = check(&secret(name, secret_name)).unwrap_err();
            assert!(error.starts_with(field), "{error}");
        }
    }

    #[test]
    fn certificates_are_for_tls() {
        let spec =
            otel(json!({"insecure": true, "caBundleRef": {"configMapRef": {"name": "ca", "key": "ca.crt"}}}));
        assert!(check(&spec).unwrap_err().starts_with("openTelemetry.caBundleRef: "));
    }

    #[test]
    fn nothing_is_sent_until_it_is_enabled() {
        let spec = sample(json!({
            "openTelemetry": {
                "endpoint": "https://c.example", "tracing": {"enabled": true, "samplingRate": "1"},
                "sensitiveHeaders": [{"name": "a", "secretKeyRef": {"name": "s", "key": "k"}}],
                "caBundleRef": {"configMapRef": {"name": "ca", "key": ""}},
            },
            "prometheus": {"enabled": true},
        }));
        let expected = Telemetry {
            service_name: "files".into(),
            enable_prometheus_metrics_path: true,
            ..Telemetry::default()
        };
        assert_eq!(of(&spec), expected);
        assert!(mounts(|volumes| add_volumes(&spec, volumes)).is_empty());
    }

    #[test]
    fn what_is_sent_is_taken_as_it_is_written() {
        let spec = otel(json!({
            "enabled": true, "endpoint": "https://c.example:4318/base",
            "headers": {"x-team": "a"}, "resourceAttributes": {"zone": "eu"},
            "sensitiveHeaders": [{"name": "x-api-key", "secretKeyRef": {"name": "s", "key": "k"}}],
            "tracing": {"enabled": true, "samplingRate": "0.250"}, "metrics": {"enabled": true},
            "caBundleRef": {"configMapRef": {"name": "ca", "key": ""}},
        }));
        let expected = Telemetry {
            endpoint: "c.example:4318/base".into(),
            service_name: "files".into(),
            tracing_enabled: true,
            metrics_enabled: true,
            sampling_rate: "0.25".into(),
            headers: [("x-team".into(), "a".into())].into(),
            custom_attributes: [("zone".into(), "eu".into())].into(),
            use_legacy_attributes: true,
            ca_cert_path: "/config/certs/otel/ca/ca.crt".into(),
            ..Telemetry::default()
        };
        assert_eq!(of(&spec), expected);
        let mounted = ["otel-ca-bundle-ca /config/certs/otel/ca"];
        assert_eq!(mounts(|volumes| add_volumes(&spec, volumes)), mounted);
        let reference = sample(json!({"name": "otel", "serviceName": "docs"}));
        assert_eq!(
            variables(|list| add_env(&spec, &reference, &identity("team", "files"), list)),
            [
                "OTEL_RESOURCE_ATTRIBUTES=service.name=docs,service.namespace=team",
                "TOOLHIVE_OTEL_HEADER_X_API_KEY<s/k"
            ]
        );
    }

    #[test]
    fn a_sampling_rate_is_a_share() {
        for (written, rate) in
            [("0", "0"), ("1.00", "1"), ("0.10", "0.1"), ("7", "1"), ("0.000001", "0.000001")]
        {
            assert_eq!(shortest(written), rate);
        }
        for bad in ["much", "-1", "NaN"] {
            assert!(check(&otel(json!({"tracing": {"samplingRate": bad}}))).is_err(), "{bad}");
        }
    }
}
