//! The table of what can be wrong with a VirtualMCPServer.

use crate::kinds::{
    AuthzConfigs, CompositeTools, EmbeddingServers, ExternalAuthConfigs, Groups, OidcConfigs,
    TelemetryConfigs, ToolConfigs, VirtualServers,
};
use serde_json::{Value, json};
use skep_operator::resources::{ConfigMaps, Secrets};
use skep_testkit::json::{condition, with_fields};
use skep_world::Watched;

use super::rows::{NOT_APPLIED, Row, row};
use crate::{fixture::Fixture, references::PERMIT};

fn workflow(name: &str) -> Value {
    json!({"name": name, "description": "d", "steps": [{"id": "a", "tool": "one.x"}]})
}

fn oidc(name: &str) -> Value {
    json!({"type": "oidc", "oidcConfigRef": {
        "name": name, "audience": "https://mcp.example", "resourceUrl": "https://mcp.example",
    }})
}

fn policies() -> Value {
    json!({"type": "inline", "inline": {"policies": [PERMIT]}})
}

/// What is wrong with the spec by itself.
pub(super) fn of_the_spec() -> Vec<Row> {
    let invalid = |wrong: Value| row(wrong, &[("Valid", "ValidationFailed")], Some("ValidationFailed"));
    let config = |config: Value| invalid(json!({"config": config}));
    let search = |fields: Value| json!({"optimizer": with_fields(json!({"embeddingService": "http://embed.example"}), fields)});
    let handling = |handling: Value| config(json!({"operational": {"failureHandling": handling}}));
    let hidden = json!({
        "conflictResolution": "priority", "conflictResolutionConfig": {"priorityOrder": ["a", "b"]},
        "defaultToolVisibility": "deny", "tools": [{"workload": "a"}],
    });
    vec![
        config(json!({"aggregation": {"conflictResolution": "priority"}})),
        config(json!({"aggregation": {"conflictResolution": "manual"}})),
        config(json!({"aggregation": {"tools": [{"workload": "a"}, {"workload": "a"}]}})),
        config(json!({"aggregation": hidden})),
        config(json!({"aggregation": {"conflictResolutionConfig": {"prefixFormat": ""}}})),
        config(json!({"aggregation": {"tools": [{"workload": "a", "overrides": {"x": {}}}]}})),
        config(json!({"audit": {"maxDataSize": -1}})),
        config(json!({"compositeTools": [workflow("a"), workflow("a")]})),
        config(
            json!({"compositeTools": [{"name": "a", "description": "d", "steps": [{"id": "a", "tool": "-"}]}]}),
        ),
        config(json!({"compositeTools": [with_fields(workflow("a"), json!({"runAs": "workflow"}))]})),
        config(json!({"passthroughHeaders": ["Host"]})),
        config(json!({"passthroughHeaders": ["Mcp-Session-Id"]})),
        invalid(json!({"passthroughHeaders": ["Cookie"]})),
        invalid(json!({"passthroughHeaders": ["Accept"]})),
        // Unset fields of the other count as well.
        handling(json!({"healthCheckInterval": "10s"})),
        handling(json!({"healthCheckTimeout": "30s"})),
        handling(json!({"healthCheckInterval": "5s", "healthCheckTimeout": "7s"})),
        config(search(json!({"embeddingProvider": "openai"}))),
        config(search(json!({"hybridSearchSemanticRatio": "1.1"}))),
        config(search(json!({"semanticDistanceThreshold": "2.1"}))),
        invalid(json!({"outgoingAuth": {"default": {"type": "externalAuthConfigRef"}}})),
        row(
            json!({
                "sessionStorage": {"provider": "redis", "address": "redis:6379"},
                "config": {"rateLimiting": {"shared": {"maxTokens": 1, "refillPeriod": "0s"}}},
            }),
            &[("RateLimitConfigValid", "RateLimitConfigInvalid")],
            Some("RateLimitConfigInvalid"),
        ),
        row(
            json!({"podTemplateSpec": {"spec": {"containers": "many"}}}),
            &[("PodTemplateSpecValid", "InvalidPodTemplateSpec")],
            Some("InvalidPodTemplateSpec"),
        ),
        // Of the right types, but invalid for the pods of a Deployment. The API server rejects it.
        row(
            json!({"podTemplateSpec": {"spec": {"restartPolicy": "Never"}}}),
            &[("Ready", "DeploymentFailed")],
            Some("DeploymentUpdateFailed"),
        ),
    ]
}

/// What is wrong with how clients are authenticated, and with the authorization server.
pub(super) fn of_authentication() -> Vec<Row> {
    const SERVER: &str = "AuthServerConfigValidated";
    let auth = |reason, wrong: Value| row(wrong, &[("AuthConfigured", reason)], Some(reason));
    let from_map = |name: &str| json!({"incomingAuth": {"authzConfig": {"type": "configMap", "configMap": {"name": name}}}});
    let document =
        json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [PERMIT], "entities_json": "[]"}});
    let provider = json!({"name": "corp", "type": "oidc", "oidcConfig": {"issuerUrl": "https://idp.example", "clientId": "c"}});
    let server = |fields: Value| {
        with_fields(json!({"issuer": "https://login.example", "upstreamProviders": [provider]}), fields)
    };
    let of_server = |reason, auth: Value, fields: Value| {
        let wrong = json!({"incomingAuth": auth, "authServerConfig": server(fields)});
        row(wrong, &[(SERVER, reason)], Some(reason))
    };
    let key = json!({"name": "later", "key": "k"});
    let password = json!({"provider": "redis", "address": "redis:6379", "passwordRef": key});
    let mut bad = policies();
    bad["inline"]["entitiesJson"] = json!("no list");
    vec![
        row(
            json!({"sessionStorage": password}),
            &[("AuthConfigured", "AuthInvalid")],
            Some("SecretValidationFailed"),
        )
        .waits()
        .until(Secrets::kind(), "later", json!({"stringData": {"k": "v"}})),
        auth("AuthInvalid", json!({"incomingAuth": {"authzConfig": bad}})),
        auth("AuthzConfigMapNotFound", from_map("later")).waits().until(
            ConfigMaps::kind(),
            "later",
            json!({"data": {"authz.json": document.to_string()}}),
        ),
        auth("AuthzConfigMapInvalid", from_map("nonsense")),
        of_server("AuthServerConfigInvalid", oidc("oidc"), json!({"issuer": "https://other.example"})),
        of_server("AuthServerConfigInvalid", json!({}), json!({})),
        of_server("AuthzUpstreamUnknown", oidc("oidc"), json!({"primaryUpstreamProvider": "never"})),
    ]
}

/// What is wrong with what the spec refers to.
pub(super) fn of_references() -> Vec<Row> {
    let refers = |type_, reason, wrong: Value| row(wrong, &[(type_, reason)], Some(reason));
    let group = refers("GroupRefValidated", "GroupRefNotFound", json!({"groupRef": {"name": "later"}}));
    let composite = |reason, name: &str| {
        let wrong = json!({"config": {"compositeToolRefs": [{"name": name}]}});
        refers("CompositeToolRefsValidated", reason, wrong)
    };
    let embedding = |reason, event, name: &str| {
        row(json!({"embeddingServerRef": {"name": name}}), &[("EmbeddingServerReady", reason)], Some(event))
    };
    let issuer =
        |reason, name: &str| refers("OIDCConfigRefValidated", reason, json!({"incomingAuth": oidc(name)}));
    let authz = |reason, name: &str| {
        let wrong = json!({"incomingAuth": {"authzConfigRef": {"name": name}}});
        refers("AuthzConfigRefValidated", reason, wrong)
    };
    let otel = |reason, name: &str| {
        refers("TelemetryConfigRefValidated", reason, json!({"telemetryConfigRef": {"name": name}}))
    };
    let tools = |name: &str| {
        let tools = json!([{"workload": "a", "toolConfigRef": {"name": name}}]);
        row(json!({"config": {"aggregation": {"tools": tools}}}), &[], NOT_APPLIED)
    };
    let way = |name: &str| json!({"type": "externalAuthConfigRef", "externalAuthConfigRef": {"name": name}});
    let default = |reason, name: &str| {
        refers("DefaultAuthConfig", reason, json!({"outgoingAuth": {"default": way(name)}}))
    };
    let backend = |reason, name: &str| {
        let wrong = json!({"outgoingAuth": {"backends": {"one": way(name)}}});
        refers("BackendAuthConfig-one", reason, wrong)
    };
    let of = |spec: Value| json!({"spec": spec});
    vec![
        group.until(Groups::kind(), "later", of(json!({}))),
        composite("CompositeToolRefNotFound", "later").until(
            CompositeTools::kind(),
            "later",
            of(workflow("later")),
        ),
        composite("CompositeToolRefInvalid", "bad"),
        composite("CompositeToolRefInvalid", "independent"),
        embedding("EmbeddingServerNotFound", "EmbeddingServerRefNotFound", "never"),
        embedding("EmbeddingServerNotReady", "EmbeddingServerNotReady", "starting").waits(),
        embedding("EmbeddingServerNotReady", "EmbeddingServerNotReady", "broken"),
        issuer("OIDCConfigRefNotFound", "later").waits().until(
            OidcConfigs::kind(),
            "later",
            of(json!({"type": "inline", "inline": {"issuer": "https://a.example"}})),
        ),
        issuer("OIDCConfigRefNotValid", "bad"),
        authz("AuthzConfigRefNotFound", "later").waits().until(
            AuthzConfigs::kind(),
            "later",
            of(json!({"type": "cedarv1", "config": {"policies": [PERMIT]}})),
        ),
        authz("AuthzConfigRefNotValid", "bad"),
        otel("TelemetryConfigRefNotFound", "later").waits().until(
            TelemetryConfigs::kind(),
            "later",
            of(json!({})),
        ),
        otel("TelemetryConfigRefInvalid", "bad"),
        tools("later").waits().until(ToolConfigs::kind(), "later", of(json!({"toolsFilter": ["a"]}))),
        tools("bad"),
        default("ConversionFailed", "later").waits().until(
            ExternalAuthConfigs::kind(),
            "later",
            of(json!({"type": "unauthenticated"})),
        ),
        default("InvalidExternalAuthConfig", "bad"),
        backend("ConversionFailed", "login"),
        row(json!({"outgoingAuth": {"source": "inline"}}), &[("Ready", "NotApplied")], NOT_APPLIED).waits(),
    ]
}

/// Problems that are reported and block nothing.
pub(super) fn of_advice() -> Vec<Row> {
    let silent = |name: &str| {
        json!({"name": name, "type": "oauth2", "oauth2Config": {
            "authorizationEndpoint": "https://forge.example/authorize", "tokenEndpoint": "https://forge.example/token",
            "clientId": "c",
        }})
    };
    let mut auth = oidc("oidc");
    auth["authzConfig"] = policies();
    let two = json!({"issuer": "https://login.example", "upstreamProviders": [silent("a"), silent("b")]});
    vec![
        row(json!({"replicas": 2}), &[("SessionStorageWarning", "SessionStorageMissingForReplicas")], None)
            .holds(),
        row(
            json!({"incomingAuth": auth, "authServerConfig": two}),
            &[
                ("IdentitySynthesized", "OAuth2UpstreamWithoutUserInfo"),
                ("AuthzUpstreamSelectionWarning", "AuthzUpstreamAutoSelected"),
            ],
            None,
        )
        .holds(),
    ]
}

/// Objects that cannot be used.
pub(super) async fn create_bad_ones(fixture: &Fixture) {
    let mut bad = workflow("bad");
    bad["steps"][0]["dependsOn"] = json!(["never"]);
    fixture.create(CompositeTools::kind(), "bad", bad).await;
    let independent = with_fields(workflow("independent"), json!({"runAs": "workflow"}));
    fixture.create(CompositeTools::kind(), "independent", independent).await;
    fixture.create(EmbeddingServers::kind(), "starting", json!({})).await;
    let broken = json!({"podTemplateSpec": {"spec": {"containers": "many"}}});
    fixture.create(EmbeddingServers::kind(), "broken", broken).await;
    fixture.settle_any(EmbeddingServers::kind(), "broken").await;
}

#[tokio::test]
async fn advice_is_published_once_for_each_spec() {
    let fixture = Fixture::new().await;
    fixture.create(Groups::kind(), "all", json!({})).await;
    fixture.create(EmbeddingServers::kind(), "starting", json!({})).await;
    let mut policies = policies();
    policies["inline"]["primaryUpstreamProvider"] = json!("corp");
    let front = json!({
        "groupRef": {"name": "all"}, "incomingAuth": {"type": "anonymous", "authzConfig": policies},
    });
    fixture.create(VirtualServers::kind(), "front", front).await;
    let object = fixture.settle_any(VirtualServers::kind(), "front").await;
    let reason = "AuthzPrimaryProviderRequiresAuthServer";
    assert_eq!(condition(&object, "AuthServerConfigValidated")["reason"], reason);
    let search = json!({
        "incomingAuth": {"authzConfig": null}, "embeddingServerRef": {"name": "starting"},
        "config": {"optimizer": {"embeddingService": "http://embed.example"}},
    });
    fixture.patch_any(VirtualServers::kind(), "front", json!({"spec": search})).await;
    fixture.settle_any(VirtualServers::kind(), "front").await;
    fixture
        .patch_any(VirtualServers::kind(), "front", json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await;
    fixture.settle_any(VirtualServers::kind(), "front").await;
    let reported: Vec<String> = fixture.events().await.into_iter().map(|(reason, _)| reason).collect();
    let all = [
        "AuthzPrimaryProviderRequiresAuthServer",
        "AuthzPrimaryUpstreamProviderDeprecated",
        "EmbeddingServerNotReady",
        "EmbeddingServiceOverridden",
    ];
    assert_eq!(reported, all);
    fixture.operator.stop().await;
}
