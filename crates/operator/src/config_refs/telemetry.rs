//! MCPTelemetryConfig: which traces and metrics a proxy exports, and where to.

use skep_api::{
    conditions::TelemetryConfigRefValidated,
    kinds::{MCPTelemetryConfig, MCPTelemetryConfigSpec, OpenTelemetry},
    refs::TelemetryConfigRef,
};
use skep_config::{FieldError, FieldPath, env, paths, run_config::Telemetry};
use skep_converge::Finalizer;

use super::{
    ConfigRef, RefReasons,
    ca_bundle::{self, CaBundle},
    checks, flag, non_empty,
};
use crate::{
    build::{EnvList, Identity, Volumes},
    config_controller::Config,
    reconcile::Validation,
};

const CA_VOLUME: &str = "otel-ca-bundle-";

impl Config for MCPTelemetryConfig {
    const CONFIG_FINALIZER: Finalizer = Finalizer("mcptelemetryconfig.toolhive.stacklok.dev/finalizer");

    fn check(spec: &MCPTelemetryConfigSpec) -> Vec<FieldError> {
        let otel = spec.open_telemetry.iter();
        otel.flat_map(|otel| checks::within("openTelemetry", check_otel(otel))).collect()
    }
}

fn check_otel(otel: &OpenTelemetry) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(endpoint) = non_empty(&otel.endpoint)
        && !exports_traces(otel)
        && !exports_metrics(otel)
    {
        let message = format!(
            "nothing is sent to {endpoint:?}: set openTelemetry.tracing.enabled or openTelemetry.metrics.enabled"
        );
        errors.push(FieldError::new("endpoint", message));
    }
    if let Some(rate) = sampling_rate(otel)
        && !rate.parse::<f64>().is_ok_and(|rate| rate >= 0.0)
    {
        errors.push(FieldError::new("tracing.samplingRate", format!("{rate:?} is not a number from 0 to 1")));
    }
    errors.extend(check_headers(otel));
    match &otel.ca_bundle_ref {
        Some(_) if flag(otel.insecure) => {
            let message = "has no effect without TLS: remove it, or set openTelemetry.insecure to false";
            errors.push(FieldError::new("caBundleRef", message));
        }
        Some(bundle) => errors.extend(ca_bundle::check("caBundleRef", bundle).err()),
        None => {}
    }
    errors
}

fn check_headers(otel: &OpenTelemetry) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, header) in otel.sensitive_headers.iter().enumerate() {
        let field = FieldPath::from("sensitiveHeaders").index(index);
        let name = field.clone().join("name");
        if header.name.is_empty() {
            errors.push(FieldError::new(name, "is empty: name the header"));
        } else if otel.headers.keys().any(|other| other.eq_ignore_ascii_case(&header.name)) {
            // HTTP ignores the case of header names.
            let message = format!("{:?} is in openTelemetry.headers, too: remove one of them", header.name);
            errors.push(FieldError::new(name, message));
        }
        errors.extend(checks::secret(field.join("secretKeyRef"), &header.secret_key_ref).err());
    }
    errors
}

impl ConfigRef<TelemetryConfigRef> {
    pub(crate) fn validate(&self, validation: &mut Validation) {
        use TelemetryConfigRefValidated::{
            TelemetryConfigRefInvalid, TelemetryConfigRefNotFound, TelemetryConfigRefValid,
        };
        let reasons =
            RefReasons::new(TelemetryConfigRefValid, TelemetryConfigRefNotFound, TelemetryConfigRefInvalid);
        self.validate_as(reasons, validation);
    }

    /// The traces and metrics that the workload exports. Headers from Secrets are in the environment: see
    /// [`add_env`](Self::add_env).
    pub(crate) fn telemetry(&self, identity: &Identity) -> Option<Telemetry> {
        let (field, config) = self.found()?;
        let prometheus = config.spec.prometheus.as_ref();
        Some(Telemetry {
            service_name: service_name(field, identity).into(),
            enable_prometheus_metrics_path: prometheus.is_some_and(|prometheus| flag(prometheus.enabled)),
            ..enabled(&config.spec).map(exported).unwrap_or_default()
        })
    }

    /// Adds the name of the service, and the headers from Secrets.
    pub(crate) fn add_env(&self, identity: &Identity, variables: &mut EnvList) {
        let Some((field, config)) = self.found() else { return };
        let (name, namespace) = (service_name(field, identity), &identity.namespace);
        let service = format!("service.name={name},service.namespace={namespace}");
        variables.set(env::OTEL_RESOURCE_ATTRIBUTES, service);
        for header in enabled(&config.spec).into_iter().flat_map(|otel| &otel.sensitive_headers) {
            variables.set_from_secret(env::otel_header(&header.name), &header.secret_key_ref);
        }
    }

    /// Adds the certificates of the collector, if it has a private authority.
    pub(crate) fn add_volumes(&self, volumes: &mut Volumes) {
        let otel = self.config().and_then(|config| enabled(&config.spec));
        if let Some(bundle) = otel.and_then(|otel| CaBundle::new(otel.ca_bundle_ref.as_ref())) {
            bundle.add_volume(paths::OTEL_CERTS_FOLDER, CA_VOLUME, volumes);
        }
    }
}

/// The part that is exported to a collector.
fn exported(otel: &OpenTelemetry) -> Telemetry {
    Telemetry {
        endpoint: otel.endpoint.as_deref().map(without_scheme).unwrap_or_default().into(),
        tracing_enabled: exports_traces(otel),
        metrics_enabled: exports_metrics(otel),
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

fn enabled(spec: &MCPTelemetryConfigSpec) -> Option<&OpenTelemetry> {
    spec.open_telemetry.as_ref().filter(|otel| flag(otel.enabled))
}

fn exports_traces(otel: &OpenTelemetry) -> bool {
    otel.tracing.as_ref().is_some_and(|tracing| flag(tracing.enabled))
}

fn exports_metrics(otel: &OpenTelemetry) -> bool {
    otel.metrics.as_ref().is_some_and(|metrics| flag(metrics.enabled))
}

fn sampling_rate(otel: &OpenTelemetry) -> Option<&str> {
    non_empty(&otel.tracing.as_ref()?.sampling_rate)
}

/// A ratio as its shortest decimal number.
fn shortest(rate: &str) -> String {
    rate.parse::<f64>().map(|rate| rate.clamp(0.0, 1.0).to_string()).unwrap_or_default()
}

/// The address of a collector as exporters expect it. Another field decides whether TLS is used.
fn without_scheme(endpoint: &str) -> &str {
    ["https://", "http://"].iter().find_map(|scheme| endpoint.strip_prefix(scheme)).unwrap_or(endpoint)
}

fn service_name<'a>(reference: &'a TelemetryConfigRef, identity: &'a Identity) -> &'a str {
    non_empty(&reference.service_name).unwrap_or(&identity.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config_refs::samples::{fields, identity, mounts, resolved, sample, variables};

    fn otel(fields: Value) -> MCPTelemetryConfigSpec {
        sample(json!({"openTelemetry": fields}))
    }

    fn reference(spec: MCPTelemetryConfigSpec, service: Option<&str>) -> ConfigRef<TelemetryConfigRef> {
        let field = sample(json!({"name": "otel", "serviceName": service}));
        resolved(field, MCPTelemetryConfig::new("otel", spec))
    }

    #[test]
    fn an_endpoint_needs_traces_or_metrics() {
        let endpoint = "collector:4318";
        let errors = MCPTelemetryConfig::check(&otel(json!({"endpoint": endpoint})));
        assert_eq!(fields(&errors), ["openTelemetry.endpoint"]);
        assert!(errors[0].message.starts_with("nothing is sent to \"collector:4318\""), "{errors:?}");
        assert_eq!(
            MCPTelemetryConfig::check(&otel(json!({"endpoint": endpoint, "metrics": {"enabled": true}}))),
            []
        );
        assert_eq!(MCPTelemetryConfig::check(&sample(json!({}))), []);
    }

    #[test]
    fn a_header_is_plain_or_secret_and_a_secret_one_is_complete() {
        let secret = |name: &str, secret: &str| {
            otel(json!({
                "headers": {"X-Team": "a"},
                "sensitiveHeaders": [{"name": name, "secretKeyRef": {"name": secret, "key": "k"}}],
            }))
        };
        assert_eq!(MCPTelemetryConfig::check(&secret("x-key", "s")), []);
        for (name, secret_name, field) in [
            ("x-team", "s", "openTelemetry.sensitiveHeaders[0].name"),
            ("x-key", "", "openTelemetry.sensitiveHeaders[0].secretKeyRef.name"),
        ] {
            assert_eq!(fields(&MCPTelemetryConfig::check(&secret(name, secret_name))), [field]);
        }
    }

    #[test]
    fn certificates_are_for_tls() {
        let spec =
            otel(json!({"insecure": true, "caBundleRef": {"configMapRef": {"name": "ca", "key": "ca.crt"}}}));
        assert_eq!(fields(&MCPTelemetryConfig::check(&spec)), ["openTelemetry.caBundleRef"]);
    }

    #[test]
    fn every_mistake_is_reported() {
        let spec = otel(json!({
            "endpoint": "collector:4318", "tracing": {"samplingRate": "much"},
            "sensitiveHeaders": [{"name": "", "secretKeyRef": {"name": "s", "key": ""}}],
            "caBundleRef": {"configMapRef": {"name": "corp.ca", "key": ""}},
        }));
        let expected = [
            "openTelemetry.endpoint",
            "openTelemetry.tracing.samplingRate",
            "openTelemetry.sensitiveHeaders[0].name",
            "openTelemetry.sensitiveHeaders[0].secretKeyRef.key",
            "openTelemetry.caBundleRef.configMapRef.name",
        ];
        assert_eq!(fields(&MCPTelemetryConfig::check(&spec)), expected);
    }

    #[test]
    fn nothing_is_exported_until_it_is_enabled() {
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
        let reference = reference(spec, None);
        assert_eq!(reference.telemetry(&identity("team", "files")), Some(expected));
        assert!(mounts(|volumes| reference.add_volumes(volumes)).is_empty());
    }

    #[test]
    fn the_fields_of_an_export_are_passed_on() {
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
        let files = identity("team", "files");
        let unnamed = reference(spec.clone(), None);
        assert_eq!(unnamed.telemetry(&files), Some(expected));
        let mounted = ["otel-ca-bundle-ca /config/certs/otel/ca"];
        assert_eq!(mounts(|volumes| unnamed.add_volumes(volumes)), mounted);
        let named = reference(spec, Some("docs"));
        assert_eq!(
            variables(|list| named.add_env(&files, list)),
            [
                "OTEL_RESOURCE_ATTRIBUTES=service.name=docs,service.namespace=team",
                "TOOLHIVE_OTEL_HEADER_X_API_KEY<s/k"
            ]
        );
    }

    #[test]
    fn a_sampling_rate_is_a_ratio() {
        for (written, rate) in
            [("0", "0"), ("1.00", "1"), ("0.10", "0.1"), ("7", "1"), ("0.000001", "0.000001")]
        {
            assert_eq!(shortest(written), rate);
        }
        for bad in ["much", "-1", "NaN"] {
            let errors = MCPTelemetryConfig::check(&otel(json!({"tracing": {"samplingRate": bad}})));
            assert_eq!(fields(&errors), ["openTelemetry.tracing.samplingRate"], "{bad}");
        }
    }
}
