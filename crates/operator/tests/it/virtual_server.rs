//! A VirtualMCPServer from its creation to its deletion.

use crate::kinds::{Entries, TelemetryConfigs, VirtualServers};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use skep_api::{
    kinds::{
        MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPServer, MCPServerEntry, MCPTelemetryConfig,
        VirtualMCPServer,
    },
    vmcp::{BackendType, Config},
};
use skep_config::objects;
use skep_operator::{render::render, settings::Settings};
use skep_testkit::{
    fixtures::{TestGroup, TestOidcConfig, TestServer},
    json::with_fields,
    until,
};
use skep_world::Watched;

use crate::fixture::Fixture;

/// An object of one of the API's kinds.
pub(crate) fn object<K: DeserializeOwned + kube::Resource<DynamicType = ()>>(name: &str, spec: Value) -> K {
    let (api_version, kind) = (K::api_version(&()), K::kind(&()));
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

/// A Secret with these keys.
pub(crate) async fn secret(fixture: &Fixture, name: &str, keys: &[&str]) {
    let data: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).into(), json!("v"))).collect();
    let secret = json!({"metadata": {"name": name}, "stringData": data});
    fixture.test.create_object(&serde_json::from_value::<Secret>(secret).unwrap()).await;
}

/// A ConfigMap with certificates.
pub(crate) async fn certificates(fixture: &Fixture, name: &str) {
    let config_map = json!({"metadata": {"name": name}, "data": {"ca.crt": "pem", "other.crt": "pem"}});
    fixture.test.create_object(&serde_json::from_value::<ConfigMap>(config_map).unwrap()).await;
}

pub(crate) async fn settled(fixture: &Fixture, name: &str) -> VirtualMCPServer {
    fixture.settle_any(VirtualServers::kind(), name).await;
    fixture.test.api().get(name).await.unwrap()
}

pub(crate) async fn patch(fixture: &Fixture, name: &str, spec: Value) -> VirtualMCPServer {
    fixture.patch_any(VirtualServers::kind(), name, json!({"spec": spec})).await;
    settled(fixture, name).await
}

/// A server of the group `all` without authentication, with further fields.
async fn server(fixture: &Fixture, name: &str, fields: Value) -> VirtualMCPServer {
    let spec =
        with_fields(json!({"groupRef": {"name": "all"}, "incomingAuth": {"type": "anonymous"}}), fields);
    fixture.test.create_object(&object::<VirtualMCPServer>(name, spec)).await;
    settled(fixture, name).await
}

fn phase(server: &VirtualMCPServer) -> &'static str {
    server.status.as_ref().unwrap().phase.unwrap().as_str()
}

fn condition(server: &VirtualMCPServer, type_: &str) -> Option<String> {
    let conditions = &server.status.as_ref().unwrap().conditions;
    let condition = conditions.iter().find(|condition| condition.type_ == type_);
    condition.map(|condition| format!("{} {}", condition.status, condition.reason))
}

async fn file(fixture: &Fixture, server: &str) -> Config {
    let config_map: ConfigMap = fixture.test.api().get(&objects::vmcp_config(server)).await.unwrap();
    Config::parse(&config_map.data.unwrap()["config.yaml"]).unwrap()
}

async fn variables(fixture: &Fixture, server: &str) -> Vec<String> {
    let template = fixture.deployment(server).await.spec.unwrap().template.spec.unwrap();
    let container = template.containers.into_iter().find(|container| container.name == "vmcp").unwrap();
    container.env.unwrap().into_iter().map(|variable| variable.name).collect()
}

#[tokio::test]
async fn the_session_key_is_created_once_and_never_again() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    server(&fixture, "front", json!({})).await;
    let name = objects::session_secret("front");
    let made: Secret = fixture.test.api().get(&name).await.unwrap();
    assert_eq!(made.data.as_ref().unwrap()["hmac-secret"].0.len(), 44, "32 bytes in Base64");

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    patch(&fixture, "front", json!({"replicas": 1})).await;
    let touched: Value = json!({"metadata": {"labels": {"mine": "yes"}}});
    let api = fixture.test.api::<Secret>();
    api.patch(&name, &PatchParams::default(), &Patch::Merge(touched)).await.unwrap();
    settled(&fixture, "front").await;
    let writes = recording.writes().await;
    assert!(!writes.iter().any(|write| write.contains("secrets")), "{writes:#?}");
    assert_eq!(api.get(&name).await.unwrap().data, made.data);

    api.delete(&name, &Default::default()).await.unwrap();
    until("the key exists again", async || api.get_opt(&name).await.unwrap().is_some()).await;
    assert_ne!(api.get(&name).await.unwrap().data, made.data, "a new one is another");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn sidecars_and_variables_of_the_user_cause_no_repeated_writes() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let template = json!({
        "metadata": {"labels": {"extra": "1"}, "annotations": {"vault": "yes"}},
        "spec": {
            "containers": [
                {"name": "side", "image": "registry.example/side:1"},
                {"name": "vmcp", "env": [{"name": "A", "value": "b"}], "resources": {"limits": {"cpu": "0.5"}}},
            ],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    });
    server(&fixture, "front", json!({"podTemplateSpec": template, "imagePullSecrets": [{"name": "pull"}]}))
        .await;
    assert!(variables(&fixture, "front").await.contains(&"A".to_owned()));
    let recording = fixture.record();
    fixture
        .patch_any(VirtualServers::kind(), "front", json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await;
    settled(&fixture, "front").await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);

    // Removing the last of both leaves nothing behind, and causes no repeated writes.
    patch(&fixture, "front", json!({"podTemplateSpec": null, "imagePullSecrets": null})).await;
    let deployment = fixture.deployment("front").await;
    let annotations: Vec<String> = deployment.metadata.annotations.unwrap().into_keys().collect();
    assert_eq!(annotations, ["toolhive.stacklok.io/podvolumes-hash"]);
    let pods = deployment.spec.unwrap().template;
    assert_eq!(pods.metadata.unwrap().labels.unwrap().len(), 5);
    assert_eq!(pods.spec.unwrap().containers.len(), 1);
    let recording = fixture.record();
    settled(&fixture, "front").await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_server_with_inline_backends_gets_their_secrets_and_addresses() {
    let fixture = Fixture::new().await;
    let test = &fixture.test;
    test.create_object(&MCPGroup::test("all")).await;
    secret(&fixture, "token", &["value"]).await;
    certificates(&fixture, "corp").await;
    let inject = json!({"type": "headerInjection", "headerInjection": {
        "headerName": "X-Key", "valueSecretRef": {"name": "token", "key": "value"},
    }});
    test.create_object(&object::<MCPExternalAuthConfig>("inject", inject.clone())).await;
    let mut broken = inject;
    broken["headerInjection"]["valueSecretRef"]["name"] = json!("absent");
    test.create_object(&object::<MCPExternalAuthConfig>("broken", broken)).await;
    let mut member = MCPServer::test("one").in_group("all");
    member.spec.external_auth_config_ref = serde_json::from_value(json!({"name": "inject"})).unwrap();
    test.create_object(&member).await;
    let mut other = MCPServer::test("two").in_group("all");
    other.spec.external_auth_config_ref = serde_json::from_value(json!({"name": "broken"})).unwrap();
    test.create_object(&other).await;
    let entry = json!({
        "remoteUrl": "https://ext.example/mcp", "transport": "sse", "groupRef": {"name": "all"},
        "caBundleRef": {"configMapRef": {"name": "corp", "key": "ca.crt"}},
    });
    test.create_object(&object::<MCPServerEntry>("ext", entry)).await;
    let server = server(&fixture, "front", json!({"outgoingAuth": {"source": "inline"}})).await;

    let config = file(&fixture, "front").await;
    let ext = &config.backends[0];
    assert_eq!((ext.name.as_str(), ext.type_), ("ext", Some(BackendType::Entry)));
    assert_eq!(ext.ca_bundle_path.as_deref(), Some("/etc/toolhive/ca-bundles/ext/ca.crt"));
    let one = &config.backends[1];
    assert_eq!(one.url, format!("http://mcp-one-proxy.{}.svc.cluster.local:8080/mcp", fixture.test.name()));
    assert_eq!(config.backends.len(), 2, "two have no authentication configured");
    let variable = "TOOLHIVE_HEADER_INJECTION_VALUE_INJECT";
    assert!(variables(&fixture, "front").await.contains(&variable.to_owned()));
    assert_eq!(condition(&server, "DiscoveredAuthConfig-one").unwrap(), "True ConversionSucceeded");
    assert_eq!(condition(&server, "DiscoveredAuthConfig-two").unwrap(), "False ConversionFailed");

    // A backend is added with its Secret; a condition is removed with its member.
    secret(&fixture, "absent", &["value"]).await;
    until("two is served", async || file(&fixture, "front").await.backends.len() == 3).await;
    fixture.patch("one", json!({"spec": {"groupRef": null}})).await;
    until("one is removed", async || file(&fixture, "front").await.backends.len() == 2).await;
    let server = settled(&fixture, "front").await;
    assert_eq!(condition(&server, "DiscoveredAuthConfig-one"), None);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn members_that_sign_for_aws_cross_applications_or_act_on_behalf_of_callers_are_served() {
    let fixture = Fixture::new().await;
    let test = &fixture.test;
    test.create_object(&MCPGroup::test("all")).await;
    secret(&fixture, "client", &["secret"]).await;
    let key = json!({"name": "client", "key": "secret"});
    let strategies = [
        (
            "aws",
            "awsSts",
            json!({"region": "eu-west-1", "fallbackRoleArn": "arn:aws:iam::123456789012:role/dev"}),
        ),
        (
            "entra",
            "obo",
            json!({"tenantId": "contoso.example", "clientId": "app", "clientSecretRef": key, "audience": "api://files"}),
        ),
        (
            "partner",
            "xaa",
            json!({"idpTokenUrl": "https://idp.example/token", "targetTokenUrl": "https://as.example/token",
                "targetAudience": "https://as.example", "targetClientId": "us", "targetClientSecretRef": key}),
        ),
    ];
    for (name, type_, fields) in strategies {
        let spec = json!({"type": type_, type_: fields});
        test.create_object(&object::<MCPExternalAuthConfig>(name, spec)).await;
        let entry = json!({
            "remoteUrl": format!("https://{name}.example/mcp"), "transport": "streamable-http",
            "groupRef": {"name": "all"}, "externalAuthConfigRef": {"name": name},
        });
        test.create_object(&object::<MCPServerEntry>(name, entry)).await;
    }
    let server = server(&fixture, "front", json!({"outgoingAuth": {"source": "inline"}})).await;
    until("all are served", async || file(&fixture, "front").await.backends.len() == 3).await;
    let outgoing = file(&fixture, "front").await.outgoing_auth.unwrap();
    let types: Vec<&str> = outgoing.backends.values().map(|strategy| &*strategy.type_).collect();
    assert_eq!(types, ["aws_sts", "obo", "xaa"]);
    let obo = outgoing.backends["entra"].obo.clone().unwrap();
    assert_eq!(obo.token_url, "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token");
    let variables = variables(&fixture, "front").await;
    for variable in ["TOOLHIVE_OBO_CLIENT_SECRET_ENTRA", "TOOLHIVE_XAA_TARGET_CLIENT_SECRET_PARTNER"] {
        assert!(variables.contains(&variable.to_owned()), "{variables:?}");
    }
    for name in ["aws", "entra", "partner"] {
        let type_ = format!("DiscoveredAuthConfig-{name}");
        assert_eq!(condition(&server, &type_).as_deref(), Some("True ConversionSucceeded"), "{name}");
    }
    fixture.operator.stop().await;
}

#[tokio::test]
async fn the_phase_failed_lasts_as_long_as_its_cause() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let bad = json!({"config": {"aggregation": {"conflictResolution": "priority"}}});
    let front = server(&fixture, "front", bad).await;
    assert_eq!(
        (phase(&front), condition(&front, "Valid").unwrap().as_str()),
        ("Failed", "False ValidationFailed")
    );
    let fixture = fixture.restart().await;
    assert_eq!(phase(&settled(&fixture, "front").await), "Failed");
    let front = patch(&fixture, "front", json!({"config": {"aggregation": null}})).await;
    assert_eq!(
        (phase(&front), condition(&front, "Valid").unwrap().as_str()),
        ("Pending", "True ValidationSucceeded")
    );
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_condition_is_removed_with_its_reference_and_a_waiting_object_continues_by_itself() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let front = server(&fixture, "front", json!({"telemetryConfigRef": {"name": "otel"}})).await;
    assert_eq!(phase(&front), "Pending");
    assert_eq!(condition(&front, "TelemetryConfigRefValidated").unwrap(), "False TelemetryConfigRefNotFound");

    certificates(&fixture, "tca").await;
    let otel = json!({"openTelemetry": {
        "enabled": true, "endpoint": "https://otel.example", "tracing": {"enabled": true},
        "caBundleRef": {"configMapRef": {"name": "tca", "key": "ca.crt"}},
    }});
    fixture.test.create_object(&object::<MCPTelemetryConfig>("otel", otel)).await;
    fixture.settle_any(TelemetryConfigs::kind(), "otel").await;
    let front = settled(&fixture, "front").await;
    assert_eq!(condition(&front, "TelemetryConfigRefValidated").unwrap(), "True TelemetryConfigRefValid");
    let telemetry = file(&fixture, "front").await.telemetry.unwrap();
    assert_eq!(telemetry.ca_cert_path.as_deref(), Some("/config/certs/otel/tca/ca.crt"));

    let front = patch(&fixture, "front", json!({"telemetryConfigRef": null})).await;
    assert_eq!(condition(&front, "TelemetryConfigRefValidated"), None);
    assert_eq!(front.status.unwrap().telemetry_config_hash, None);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_change_of_policies_in_a_config_map_takes_effect() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let policies = |policy: &str| {
        let document = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [policy], "entities_json": "[]"}});
        json!({"metadata": {"name": "rules"}, "data": {"authz.json": document.to_string()}})
    };
    let permit = "permit(principal, action, resource);";
    let front = json!({"incomingAuth": {
        "type": "anonymous", "authzConfig": {"type": "configMap", "configMap": {"name": "rules"}},
    }});
    let front = server(&fixture, "front", front).await;
    assert_eq!(condition(&front, "AuthConfigured").unwrap(), "False AuthzConfigMapNotFound");
    let config_map: ConfigMap = serde_json::from_value(policies(permit)).unwrap();
    fixture.test.create_object(&config_map).await;
    let held_to = async |policy: &str| {
        let api = fixture.test.api::<ConfigMap>();
        let map = api.get_opt(&objects::vmcp_config("front")).await.unwrap();
        map.is_some_and(|map| map.data.unwrap()["config.yaml"].contains(policy))
    };
    until("the policy is applied", async || held_to(permit).await).await;
    let forbid = "forbid(principal, action, resource);";
    let api = fixture.test.api::<ConfigMap>();
    api.patch("rules", &PatchParams::default(), &Patch::Merge(policies(forbid))).await.unwrap();
    until("the other policy is applied", async || held_to(forbid).await).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn the_operator_and_the_pods_write_one_status_and_neither_undoes_the_other() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    fixture.test.create_object(&MCPOIDCConfig::test("idp")).await;
    server(&fixture, "front", json!({})).await;
    let api = fixture.test.api::<VirtualMCPServer>();
    let report = |round: i32| {
        json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "VirtualMCPServer",
            "status": {
                "backendCount": round,
                "discoveredBackends": [{"name": "one", "status": "ready", "message": format!("round {round}")}],
                "conditions": [{
                    "type": "Degraded", "status": "False", "reason": "AllReady", "message": format!("round {round}"),
                    "lastTransitionTime": "2025-01-01T00:00:00Z",
                }],
            },
        })
    };
    let pod = PatchParams::apply(objects::VMCP_FIELD_MANAGER);
    let recording = fixture.record();
    for round in 1..=20 {
        // The pods report while the operator has something to report as well.
        let oidc = (round % 2 == 0).then(|| json!({"name": "idp", "audience": "front"}));
        let kind = if oidc.is_some() { "oidc" } else { "anonymous" };
        let spec =
            json!({"spec": {"replicas": round, "incomingAuth": {"type": kind, "oidcConfigRef": oidc}}});
        let report = Patch::Apply(report(round));
        let (reported, ()) = tokio::join!(
            api.patch_status("front", &pod, &report),
            fixture.patch_any(VirtualServers::kind(), "front", spec),
        );
        reported.expect("the operator never takes what the pods own");
    }
    let front = settled(&fixture, "front").await;
    let status = front.status.clone().unwrap();
    assert_eq!(status.backend_count, Some(20));
    assert_eq!(status.discovered_backends[0].message.as_deref(), Some("round 20"));
    assert_eq!(condition(&front, "Degraded").unwrap(), "False AllReady");
    assert_eq!(condition(&front, "OIDCConfigRefValidated").unwrap(), "True OIDCConfigRefValid");
    assert_eq!(status.observed_generation, front.metadata.generation);
    for request in recording.requests().await.iter().filter(|request| request.subresource == "status") {
        let Some(status) = request.body.as_ref().map(|body| body["status"].clone()) else { continue };
        assert!(status["discoveredBackends"].is_null() && status["backendCount"].is_null(), "{status}");
        let conditions = status["conditions"].as_array().into_iter().flatten();
        assert!(conditions.into_iter().all(|condition| condition["type"] != "Degraded"), "{status}");
    }
    assert_eq!(owners(&fixture, "f:conditions").await, 2, "each owns its own conditions");

    // A report of the pods alone causes no write.
    let recording = fixture.record();
    api.patch_status("front", &pod, &Patch::Apply(report(21))).await.unwrap();
    settled(&fixture, "front").await;
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    fixture.operator.stop().await;
}

/// As ToolHive's vMCP image does: see docs/compatibility.md.
#[tokio::test]
async fn a_pod_that_replaces_the_whole_status_is_answered_once() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    server(&fixture, "front", json!({})).await;
    fixture.test.kubelet().pod_of("front", "front-1").await;
    settled(&fixture, "front").await;
    let api = fixture.test.api::<VirtualMCPServer>();
    // The order of its report is not stable.
    for names in [["one", "two"], ["two", "one"], ["one", "two"]] {
        let recording = fixture.record();
        let backends = names.map(|name| json!({"name": name, "status": "unavailable"}));
        let report =
            json!({"phase": "Ready", "message": "theirs", "discoveredBackends": backends, "backendCount": 2});
        fixture.report_as("vmcp", VirtualServers::kind(), "front", &report).await;
        let is_restored = async || {
            let status = api.get("front").await.unwrap().status.unwrap();
            status.selector.is_some() && status.message.as_deref() == Some("unreachable backends: one, two")
        };
        until("restored", is_restored).await;
        let status = settled(&fixture, "front").await.status.unwrap();
        assert_eq!(status.discovered_backends.iter().map(|one| &one.name).collect::<Vec<_>>(), names);
        assert_eq!(status.backend_count, Some(2));
        // The status, which the pods may then share, and at most once more, without them.
        let writes = recording.writes().await;
        assert!(writes.len() <= 3, "{writes:?}");
    }
    fixture.operator.stop().await;
}

/// How many managers own something below this field of the status.
async fn owners(fixture: &Fixture, field: &str) -> usize {
    let front: DynamicObject = fixture.object(VirtualServers::kind(), "front").await.unwrap();
    let entries = front.metadata.managed_fields.unwrap();
    let owned = entries.iter().filter_map(|entry| entry.fields_v1.as_ref()?.0["f:status"].get(field));
    owned.count()
}

#[tokio::test]
async fn the_phase_follows_the_pods_and_their_report_of_backends() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    server(&fixture, "front", json!({})).await;
    fixture.test.kubelet().pod_of("front", "front-1").await;
    let api = fixture.test.api::<VirtualMCPServer>();
    let is = async |phase_: &str, ready: &str| {
        let front = api.get("front").await.unwrap();
        phase(&front) == phase_ && condition(&front, "Ready").as_deref() == Some(ready)
    };
    until("ready", async || is("Ready", "True DeploymentReady").await).await;
    for (states, phase, ready) in [
        (["ready", "unavailable"], "Degraded", "False BackendsDegraded"),
        (["unknown", "unavailable"], "Degraded", "False BackendsUnavailable"),
        (["ready", "unauthenticated"], "Ready", "True DeploymentReady"),
    ] {
        let backends: Vec<Value> = ["one", "two"]
            .iter()
            .zip(states)
            .map(|(name, state)| json!({"name": name, "status": state}))
            .collect();
        let report = Patch::Apply(json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "VirtualMCPServer",
            "status": {"discoveredBackends": backends},
        }));
        api.patch_status("front", &PatchParams::apply(objects::VMCP_FIELD_MANAGER), &report).await.unwrap();
        until(ready, async || is(phase, ready).await).await;
    }
    fixture.test.kubelet().pod_waiting("front-1", "CrashLoopBackOff").await;
    until("failed", async || is("Failed", "False DeploymentFailed").await).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn the_service_and_the_address_follow_the_spec() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let front =
        server(&fixture, "front", json!({"serviceType": "NodePort", "sessionAffinity": "None"})).await;
    let url = format!("http://vmcp-front.{}.svc.cluster.local:4483", fixture.test.name());
    assert_eq!(front.status.unwrap().url, Some(url));
    let service = async || fixture.test.api::<Service>().get("vmcp-front").await.unwrap().spec.unwrap();
    assert_eq!(service().await.type_.as_deref(), Some("NodePort"));
    patch(&fixture, "front", json!({"serviceType": null, "sessionAffinity": null})).await;
    let spec = service().await;
    assert_eq!(
        (spec.type_.as_deref(), spec.session_affinity.as_deref()),
        (Some("ClusterIP"), Some("ClientIP"))
    );
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_broken_entry_does_not_keep_the_others_from_being_served() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let entry = |secret: &str| {
        json!({
            "remoteUrl": "https://ext.example/mcp", "transport": "sse", "groupRef": {"name": "all"},
            "headerForward": {"addHeadersFromSecret": [
                {"headerName": "X-Key", "valueSecretRef": {"name": secret, "key": "k"}},
            ]},
        })
    };
    fixture.test.create_object(&object::<MCPServerEntry>("ext", entry("absent"))).await;
    fixture.settle_any(Entries::kind(), "ext").await;
    let front = server(&fixture, "front", json!({})).await;
    assert_eq!(phase(&front), "Pending");
    let has = async || variables(&fixture, "front").await.iter().any(|name| name.contains("X_KEY_EXT"));
    assert!(!has().await);
    secret(&fixture, "absent", &["k"]).await;
    until("the header is reported", async || has().await).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn an_entry_without_its_certificates_does_not_keep_pods_from_starting() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPGroup::test("all")).await;
    let entry = json!({
        "remoteUrl": "https://ext.example/mcp", "transport": "sse", "groupRef": {"name": "all"},
        "caBundleRef": {"configMapRef": {"name": "corp", "key": "ca.crt"}},
    });
    fixture.test.create_object(&object::<MCPServerEntry>("ext", entry)).await;
    fixture.settle_any(Entries::kind(), "ext").await;
    server(&fixture, "front", json!({})).await;
    let mounts = async || json!(fixture.deployment("front").await).to_string().contains("\"corp\"");
    assert!(!mounts().await, "a pod with a volume that does not exist never starts");
    certificates(&fixture, "corp").await;
    until("the certificates are mounted", async || mounts().await).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn children_can_be_rendered_without_a_cluster() {
    let any = |kind: &str, name: &str, spec: Value| -> DynamicObject {
        let (api_version, metadata) =
            ("toolhive.stacklok.dev/v1beta1", json!({"name": name, "namespace": "team"}));
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
        serde_json::from_value(object).unwrap()
    };
    let group = json!({"name": "all"});
    let objects = vec![
        any("MCPGroup", "all", json!({})),
        any("MCPServer", "one", json!({"image": "registry.example/mcp:1", "groupRef": group})),
        any(
            "VirtualMCPCompositeToolDefinition",
            "shared",
            json!({
                "name": "shared", "description": "d", "steps": [{"id": "a", "tool": "one.x"}],
            }),
        ),
        any(
            "VirtualMCPServer",
            "front",
            json!({
                "groupRef": group, "incomingAuth": {"type": "anonymous"}, "outgoingAuth": {"source": "inline"},
                "config": {"compositeToolRefs": [{"name": "shared"}]},
            }),
        ),
    ];
    let rendered = render(objects, Settings::default()).await.unwrap();
    let front = rendered.iter().find(|rendered| rendered.owner == "VirtualMCPServer front").unwrap();
    let children = front.children.as_ref().unwrap();
    let kinds: Vec<&str> = children.iter().map(|child| child.kind.kind).collect();
    let all = ["ServiceAccount", "Role", "RoleBinding", "Secret", "ConfigMap", "Deployment", "Service"];
    assert_eq!(kinds, all);
    assert_eq!(children[3].body()["data"], Value::Null, "a random value is not for showing");
    let file = children[4].body()["data"]["config.yaml"].as_str().unwrap();
    let config = Config::parse(file).unwrap();
    assert_eq!(config.backends[0].url, "http://mcp-one-proxy.team.svc.cluster.local:8080/mcp");
    assert_eq!(config.composite_tools[0].name, "shared");
}
