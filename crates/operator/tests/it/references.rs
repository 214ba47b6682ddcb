//! Objects for others to refer to, one or two of each kind.

use crate::kinds::{
    AuthzConfigs, CompositeTools, ExternalAuthConfigs, Groups, OidcConfigs, TelemetryConfigs, ToolConfigs,
    WebhookConfigs,
};
use serde_json::{Value, json};
use skep_converge::Kind;
use skep_operator::resources::{ConfigMaps, Secrets};
use skep_world::Watched;

use crate::fixture::Fixture;

/// A policy that permits everything.
pub(crate) const PERMIT: &str = "permit(principal, action, resource);";

/// The objects, with the kind of each.
pub(crate) fn references() -> Vec<(Kind, Value)> {
    let custom = |kind: Kind, name: &str, spec: Value| {
        let types = json!({"apiVersion": kind.api_version(), "kind": kind.kind});
        (
            kind,
            json!({"apiVersion": types["apiVersion"], "kind": types["kind"], "metadata": {"name": name}, "spec": spec}),
        )
    };
    let exchange = json!({"tokenUrl": "https://sts.example/token", "audience": "b"});
    let upstream = json!({"name": "company", "type": "oidc", "oidcConfig": {"issuerUrl": "https://login.example", "clientId": "mcp"}});
    let login = json!({"issuer": "https://login.example", "upstreamProviders": [upstream]});
    let otel = json!({
        "enabled": true, "endpoint": "https://otel.example:4318", "tracing": {"enabled": true},
        "sensitiveHeaders": [{"name": "x-key", "secretKeyRef": {"name": "s", "key": "k"}}],
    });
    let hook =
        json!({"name": "v", "url": "https://hook.example", "hmacSecretRef": {"name": "s", "key": "k"}});
    let cedar = json!({"policies": [PERMIT], "entities_json": "[]"});
    let workflow = json!({"name": "workflow", "description": "d", "steps": [{"id": "a", "tool": "one.x"}]});
    let document = json!({"version": "1.0", "type": "cedarv1", "cedar": cedar}).to_string();
    vec![
        custom(Groups::kind(), "group", json!({})),
        custom(
            OidcConfigs::kind(),
            "oidc",
            json!({"type": "inline", "inline": {"issuer": "https://login.example"}}),
        ),
        custom(ToolConfigs::kind(), "tools", json!({"toolsFilter": ["fetch"]})),
        custom(
            ExternalAuthConfigs::kind(),
            "exchange",
            json!({"type": "tokenExchange", "tokenExchange": exchange}),
        ),
        custom(
            ExternalAuthConfigs::kind(),
            "login",
            json!({"type": "embeddedAuthServer", "embeddedAuthServer": login}),
        ),
        custom(AuthzConfigs::kind(), "authz", json!({"type": "cedarv1", "config": cedar})),
        custom(TelemetryConfigs::kind(), "otel", json!({"openTelemetry": otel})),
        custom(WebhookConfigs::kind(), "hooks", json!({"validating": [hook]})),
        custom(CompositeTools::kind(), "workflow", workflow),
        (
            ConfigMaps::kind(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "policies"}, "data": {"authz.json": document}}),
        ),
        // Base64 of one letter.
        (
            Secrets::kind(),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "dg=="}}),
        ),
    ]
}

/// Creates them all.
pub(crate) async fn create_references(fixture: &Fixture) {
    for (kind, object) in references() {
        fixture.create_any(kind, &object).await;
    }
}
