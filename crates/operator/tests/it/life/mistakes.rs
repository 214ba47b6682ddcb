//! The table of what can be wrong with an MCPRemoteProxy.

use crate::kinds::{AuthzConfigs, ExternalAuthConfigs, OidcConfigs, TelemetryConfigs, ToolConfigs};
use serde_json::json;
use skep_operator::resources::{ConfigMaps, Secrets};
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
        .until(ExternalAuthConfigs::kind(), "later", exchange),
        row(
            json!({"authServerRef": {"name": "login"}, "externalAuthConfigRef": {"name": "login"}}),
            &[(CONFIGURATION, "AuthServerConflict"), AUTH],
            Some("AuthServerConflict"),
        ),
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
        .until(ConfigMaps::kind(), "later", policies),
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
        .until(Secrets::kind(), "later", json!({"stringData": {"k": "v"}})),
        row(
            json!({"podTemplateSpec": {"spec": {"containers": "many"}}}),
            &[("PodTemplateValid", "InvalidPodTemplateSpec")],
            Some("InvalidPodTemplateSpec"),
        ),
        // Of the right types, but invalid for the pods of a Deployment. The API server rejects it.
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
    let tools = |reason: &'static str, name: &str| {
        row(refers("toolConfigRef", name), &[("ToolConfigValidated", reason)], Some(reason))
    };
    let otel = |reason: &'static str, name: &str| {
        row(refers("telemetryConfigRef", name), &[("TelemetryConfigRefValidated", reason)], Some(reason))
    };
    let external = |reason: &'static str, name: &str| {
        row(refers("externalAuthConfigRef", name), &[("ExternalAuthConfigValidated", reason)], Some(reason))
    };
    let server = |reason: &'static str, name: &str| {
        row(refers("authServerRef", name), &[("AuthServerRefValidated", reason)], Some(reason))
    };
    let issuer = |reason: &'static str, name: &str| {
        row(oidc(name), &[("OIDCConfigRefValidated", reason)], Some(reason))
    };
    let authz = |reason: &'static str, name: &str| {
        row(refers("authzConfigRef", name), &[("AuthzConfigRefValidated", reason)], Some(reason))
    };
    vec![
        tools("ToolConfigNotFound", "later").until(
            ToolConfigs::kind(),
            "later",
            json!({"spec": {"toolsFilter": ["a"]}}),
        ),
        tools("ToolConfigInvalid", "bad"),
        otel("TelemetryConfigRefNotFound", "later").until(
            TelemetryConfigs::kind(),
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
        // Its pods would wait for the Secret.
        row(
            json!({
                "authServerRef": {"name": "keyed"},
                "oidcConfigRef": {"name": "own", "audience": "https://a.example", "resourceUrl": "https://a.example"},
            }),
            &[],
            NOT_APPLIED,
        )
        .until(Secrets::kind(), "keys", json!({"stringData": {"hmac": "h".repeat(32)}})),
        issuer("OIDCConfigRefNotFound", "later").until(
            OidcConfigs::kind(),
            "later",
            json!({"spec": {"type": "inline", "inline": {"issuer": "https://a.example"}}}),
        ),
        issuer("OIDCConfigRefNotValid", "bad"),
        authz("AuthzConfigRefNotFound", "later").until(
            AuthzConfigs::kind(),
            "later",
            json!({"spec": {"type": "cedarv1", "config": {"policies": [PERMIT]}}}),
        ),
        authz("AuthzConfigRefNotValid", "bad"),
    ]
}

/// Problems that are reported and block nothing.
pub(super) fn of_advice() -> Vec<Row> {
    let group = |reason: &'static str, name: &str| {
        row(json!({"groupRef": {"name": name}}), &[("GroupRefValidated", reason)], None)
    };
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

/// Invalid configurations.
pub(super) async fn create_bad_ones(fixture: &Fixture) {
    let upstream = |name: &str| json!({"name": name, "type": "oidc", "oidcConfig": {"issuerUrl": "https://login.example", "clientId": "c"}});
    let two =
        json!({"issuer": "https://mcp.example", "upstreamProviders": [upstream("one"), upstream("two")]});
    let keyed = json!({
        "issuer": "https://a.example", "upstreamProviders": [upstream("one")],
        "hmacSecretRefs": [{"name": "keys", "key": "hmac"}],
    });
    let trusting = |bundle: &str| json!({"issuer": "https://a.example", "caBundleRef": {"configMapRef": {"name": bundle, "key": "ca.crt"}}});
    for (kind, name, content) in [
        (ToolConfigs::kind(), "bad", json!({"spec": {"toolsFilter": ["a,b"]}})),
        (
            TelemetryConfigs::kind(),
            "bad",
            json!({"spec": {"openTelemetry": {"enabled": true, "endpoint": "https://otel.example"}}}),
        ),
        (
            ExternalAuthConfigs::kind(),
            "bad",
            json!({"spec": {"type": "tokenExchange", "tokenExchange": {"tokenUrl": "no url", "audience": "b"}}}),
        ),
        (
            ExternalAuthConfigs::kind(),
            "two",
            json!({"spec": {"type": "embeddedAuthServer", "embeddedAuthServer": two}}),
        ),
        (
            ExternalAuthConfigs::kind(),
            "keyed",
            json!({"spec": {"type": "embeddedAuthServer", "embeddedAuthServer": keyed}}),
        ),
        (
            OidcConfigs::kind(),
            "own",
            json!({"spec": {"type": "inline", "inline": {"issuer": "https://a.example"}}}),
        ),
        (
            OidcConfigs::kind(),
            "bad",
            json!({"spec": {"type": "inline", "inline": {"issuer": "http://login.example"}}}),
        ),
        (OidcConfigs::kind(), "trusting", json!({"spec": {"type": "inline", "inline": trusting("never")}})),
        (
            OidcConfigs::kind(),
            "trusting-nonsense",
            json!({"spec": {"type": "inline", "inline": trusting("nonsense")}}),
        ),
        (AuthzConfigs::kind(), "bad", json!({"spec": {"type": "cedarv1", "config": {"policies": []}}})),
        (ConfigMaps::kind(), "nonsense", json!({"data": {"authz.json": "type: opa"}})),
    ] {
        fixture.create_any(kind, &object(kind, name, content)).await;
    }
}
