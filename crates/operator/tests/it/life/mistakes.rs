//! The table of what can be wrong with an MCPRemoteProxy.

use serde_json::json;
use skep_operator::watched::{
    AuthzConfigs, ConfigMaps, ExternalAuthConfigs, OidcConfigs, Secrets, TelemetryConfigs, ToolConfigs,
};
use skep_world::Watched;

use super::rows::{AUTH, NOT_APPLIED, Row, object, row};
use crate::{fixture::Fixture, references::PERMIT};

const CONFIGURATION: &str = "ConfigurationValid";

/// What is wrong with the spec by itself, or with what it names directly.
pub(super) fn of_the_configuration() -> Vec<Row> {
    let exchange = json!({"spec": {"type": "unauthenticated"}});
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [PERMIT], "entities_json": "[]"}});
    let policies = json!({"data": {"authz.json": document.to_string()}});
    let from_map = |name: &str| json!({"authzConfig": {"type": "configMap", "configMap": {"name": name}}});
    let inline = json!({"type": "inline", "inline": {"policies": [PERMIT], "entitiesJson": "no list"}});
    let header = json!({"headerName": "X-Key", "valueSecretRef": {"name": "later", "key": "k"}});
    vec![
        row(
            json!({"remoteUrl": "https://localhost/mcp"}),
            &[(CONFIGURATION, "RemoteURLInvalid")],
            Some("RemoteURLInvalid"),
        ),
        row(
            json!({"externalAuthConfigRef": {"name": "later"}}),
            &[
                (CONFIGURATION, "ExternalAuthConfigFetchError"),
                AUTH,
                ("ExternalAuthConfigValidated", "ExternalAuthConfigNotFound"),
            ],
            Some("ExternalAuthConfigFetchError"),
        )
        .until(ExternalAuthConfigs::KIND, "later", exchange),
        row(
            json!({"authzConfig": inline}),
            &[(CONFIGURATION, "AuthzPolicySyntaxInvalid"), AUTH],
            Some("AuthzPolicySyntaxInvalid"),
        ),
        row(
            from_map("later"),
            &[(CONFIGURATION, "AuthzConfigMapNotFound"), AUTH],
            Some("AuthzConfigMapNotFound"),
        )
        .until(ConfigMaps::KIND, "later", policies),
        row(
            from_map("nonsense"),
            &[(CONFIGURATION, "AuthzConfigMapInvalid"), AUTH],
            Some("AuthzConfigMapInvalid"),
        ),
        row(
            json!({"headerForward": {"addPlaintextHeaders": {"Host": "x"}}}),
            &[(CONFIGURATION, "HeaderForwardInvalid")],
            Some("HeaderForwardInvalid"),
        ),
        row(
            json!({"headerForward": {"addHeadersFromSecret": [header]}}),
            &[(CONFIGURATION, "HeaderSecretNotFound")],
            Some("HeaderSecretNotFound"),
        )
        .until(Secrets::KIND, "later", json!({"stringData": {"k": "v"}})),
        row(
            json!({"podTemplateSpec": {"spec": {"containers": "many"}}}),
            &[("PodTemplateValid", "InvalidPodTemplateSpec")],
            Some("InvalidPodTemplateSpec"),
        ),
        // Of the right types, but no pod of a Deployment can be so. The API server tells.
        row(
            json!({"podTemplateSpec": {"spec": {"restartPolicy": "Never"}}}),
            &[("Ready", "NotReady")],
            NOT_APPLIED,
        ),
    ]
}

/// What is wrong with a configuration that the spec refers to.
pub(super) fn of_references() -> Vec<Row> {
    let refers = |field: &str, name: &str| json!({field: {"name": name}});
    let oidc = |name: &str| json!({"oidcConfigRef": {"name": name, "audience": "a"}});
    let tools = |reason, name: &str| {
        row(refers("toolConfigRef", name), &[("ToolConfigValidated", reason)], NOT_APPLIED)
    };
    let otel = |reason, name: &str| {
        row(refers("telemetryConfigRef", name), &[("TelemetryConfigRefValidated", reason)], NOT_APPLIED)
    };
    let external = |reason, name: &str| {
        row(refers("externalAuthConfigRef", name), &[("ExternalAuthConfigValidated", reason)], NOT_APPLIED)
    };
    let server = |reason, name: &str| {
        row(refers("authServerRef", name), &[("AuthServerRefValidated", reason)], NOT_APPLIED)
    };
    let issuer = |reason, name: &str| row(oidc(name), &[("OIDCConfigRefValidated", reason)], NOT_APPLIED);
    let authz = |reason, name: &str| {
        row(refers("authzConfigRef", name), &[("AuthzConfigRefValidated", reason)], NOT_APPLIED)
    };
    vec![
        tools("ToolConfigNotFound", "later").until(
            ToolConfigs::KIND,
            "later",
            json!({"spec": {"toolsFilter": ["a"]}}),
        ),
        tools("ToolConfigInvalid", "bad"),
        otel("TelemetryConfigRefNotFound", "later").until(
            TelemetryConfigs::KIND,
            "later",
            json!({"spec": {}}),
        ),
        otel("TelemetryConfigRefInvalid", "bad"),
        external("InvalidExternalAuthConfig", "bad"),
        external("MultiUpstreamNotSupported", "two"),
        external("InvalidConfig", "login"),
        server("AuthServerRefNotFound", "never"),
        server("AuthServerRefInvalidType", "exchange"),
        server("MultiUpstreamNotSupported", "two"),
        server("AuthServerRefInvalidConfig", "login"),
        issuer("OIDCConfigRefNotFound", "later").until(
            OidcConfigs::KIND,
            "later",
            json!({"spec": {"type": "inline", "inline": {"issuer": "https://a.example"}}}),
        ),
        issuer("OIDCConfigRefNotValid", "bad"),
        authz("AuthzConfigRefNotFound", "later").until(
            AuthzConfigs::KIND,
            "later",
            json!({"spec": {"type": "cedarv1", "config": {"policies": [PERMIT]}}}),
        ),
        authz("AuthzConfigRefNotValid", "bad"),
    ]
}

/// What is told and keeps nothing from running.
pub(super) fn of_advice() -> Vec<Row> {
    let group =
        |reason, name: &str| row(json!({"groupRef": {"name": name}}), &[("GroupRefValidated", reason)], None);
    let oidc = |name: &str| json!({"oidcConfigRef": {"name": name, "audience": "a"}});
    let inline = json!({"policies": [PERMIT], "primaryUpstreamProvider": "company"});
    vec![
        group("GroupRefNotFound", "never"),
        row(oidc("trusting"), &[("CABundleRefValidated", "CABundleRefNotFound")], None),
        row(oidc("trusting-nonsense"), &[("CABundleRefValidated", "CABundleRefInvalid")], None),
        row(
            json!({"authzConfig": {"type": "inline", "inline": inline}}),
            &[("AuthzPrimaryUpstreamProviderIgnored", "PrimaryUpstreamProviderIgnored")],
            None,
        )
        .holds(),
        row(json!({"replicas": 2}), &[("SessionStorageWarning", "SessionStorageMissingForReplicas")], None)
            .holds(),
    ]
}

/// Configurations that are no good.
pub(super) async fn create_bad_ones(fixture: &Fixture) {
    let upstream = |name: &str| json!({"name": name, "type": "oidc", "oidcConfig": {"issuerUrl": "https://login.example", "clientId": "c"}});
    let two =
        json!({"issuer": "https://mcp.example", "upstreamProviders": [upstream("one"), upstream("two")]});
    let trusting = |bundle: &str| json!({"issuer": "https://a.example", "caBundleRef": {"configMapRef": {"name": bundle, "key": "ca.crt"}}});
    for (kind, name, content) in [
        (ToolConfigs::KIND, "bad", json!({"spec": {"toolsFilter": ["a,b"]}})),
        (
            TelemetryConfigs::KIND,
            "bad",
            json!({"spec": {"openTelemetry": {"enabled": true, "endpoint": "https://otel.example"}}}),
        ),
        (
            ExternalAuthConfigs::KIND,
            "bad",
            json!({"spec": {"type": "tokenExchange", "tokenExchange": {"tokenUrl": "no url", "audience": "b"}}}),
        ),
        (
            ExternalAuthConfigs::KIND,
            "two",
            json!({"spec": {"type": "embeddedAuthServer", "embeddedAuthServer": two}}),
        ),
        (
            OidcConfigs::KIND,
            "bad",
            json!({"spec": {"type": "inline", "inline": {"issuer": "http://login.example"}}}),
        ),
        (OidcConfigs::KIND, "trusting", json!({"spec": {"type": "inline", "inline": trusting("never")}})),
        (
            OidcConfigs::KIND,
            "trusting-nonsense",
            json!({"spec": {"type": "inline", "inline": trusting("nonsense")}}),
        ),
        (AuthzConfigs::KIND, "bad", json!({"spec": {"type": "cedarv1", "config": {"policies": []}}})),
        (ConfigMaps::KIND, "nonsense", json!({"data": {"authz.json": "type: opa"}})),
    ] {
        fixture.create_any(kind, &object(kind, name, content)).await;
    }
}
