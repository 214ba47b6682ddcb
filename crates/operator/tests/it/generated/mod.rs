//! Nothing moves when nothing changes, for generated specs.

use proptest::{
    prelude::*,
    sample::select,
    strategy::{BoxedStrategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Map, Value, json};
use skep_api::kinds::{
    MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPServer, MCPTelemetryConfig,
    MCPToolConfig, MCPWebhookConfig,
};
use skep_testkit::fixtures::{TestGroup, TestOidcConfig, TestToolConfig};

use crate::fixture::Fixture;

/// How many specs are tried in one run.
const SPECS: usize = 200;

fn one_of(values: Vec<Value>) -> BoxedStrategy<Value> {
    select(values).boxed()
}

/// Values with which a server cannot run: in few, so that most can.
fn rarely(mut values: Vec<Value>) -> BoxedStrategy<Value> {
    values.resize(values.len() * 8, Value::Null);
    one_of(values)
}

/// For each field, the values that it is tried with. Each spec has about half of the fields.
fn fields() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    let resources = json!({"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "100m"}});
    let overrides = json!({
        "proxyDeployment": {
            "annotations": {"a": "", "b": "c"},
            "labels": {"team": "x"},
            "env": [{"name": "EMPTY", "value": ""}, {"name": "HOME", "value": "/home"}],
            "imagePullSecrets": [{"name": "one"}, {"name": "two"}, {"name": "one"}],
            "podTemplateMetadataOverrides": {"annotations": {"vault": "yes"}, "labels": {"mesh": "on"}},
        },
        "proxyService": {"annotations": {"cloud": "d"}, "labels": {"exposed": "no"}},
    });
    let template = json!({"spec": {
        "containers": [{"name": "mcp", "resources": {"limits": {"cpu": "1.5"}}, "env": [{"name": "A", "value": ""}]}],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }});
    let limit = json!({"maxTokens": 5, "refillPeriod": "1m30s"});
    let redis = json!({"provider": "redis", "address": "redis:6379", "db": 2, "keyPrefix": "p:", "passwordRef": {"name": "r", "key": "k"}});
    let inline = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource);"]}, "groupClaimName": "groups"});
    vec![
        ("transport", one_of(vec![json!("stdio"), json!("sse"), json!("streamable-http")])),
        ("proxyMode", one_of(vec![json!("sse"), json!("streamable-http")])),
        ("proxyPort", (1..65536).prop_map(|port| json!(port)).boxed()),
        ("mcpPort", (1..65536).prop_map(|port| json!(port)).boxed()),
        ("args", one_of(vec![json!(["--x"]), json!(["", "<&>"])])),
        ("env", one_of(vec![json!([{"name": "A", "value": ""}]), json!([{"name": "B", "value": "<b>"}])])),
        (
            "volumes",
            one_of(vec![json!([{"name": "v", "hostPath": "/a", "mountPath": "/b", "readOnly": true}])]),
        ),
        ("resources", one_of(vec![resources, json!({}), json!({"limits": {"cpu": "2"}})])),
        ("secrets", one_of(vec![json!([{"name": "s", "key": "k", "targetEnvName": "S"}])])),
        ("serviceAccount", one_of(vec![json!("existing")])),
        (
            "permissionProfile",
            one_of(vec![
                json!({"name": "none"}),
                json!({"name": "network"}),
                json!({"type": "configmap", "name": "p", "key": "k"}),
            ]),
        ),
        ("podTemplateSpec", one_of(vec![template, json!({}), json!({"spec": {"containers": "bad"}})])),
        ("resourceOverrides", one_of(vec![overrides, json!({}), json!({"proxyDeployment": {}})])),
        (
            "oidcConfigRef",
            one_of(vec![
                json!({"name": "oidc", "audience": "a", "scopes": ["x"]}),
                json!({"name": "absent", "audience": "a"}),
            ]),
        ),
        (
            "authzConfig",
            one_of(vec![inline, json!({"type": "configMap", "configMap": {"name": "policies"}})]),
        ),
        ("authzConfigRef", one_of(vec![json!({"name": "authz"})])),
        ("audit", one_of(vec![json!({"enabled": true}), json!({})])),
        ("toolConfigRef", one_of(vec![json!({"name": "tools"})])),
        ("externalAuthConfigRef", one_of(vec![json!({"name": "exchange"})])),
        ("authServerRef", rarely(vec![json!({"name": "exchange"}), json!({"name": "absent"})])),
        ("webhookConfigRef", one_of(vec![json!({"name": "hooks"})])),
        (
            "telemetryConfigRef",
            one_of(vec![json!({"name": "otel"}), json!({"name": "otel", "serviceName": "s"})]),
        ),
        ("trustProxyHeaders", one_of(vec![json!(true), json!(false)])),
        ("endpointPrefix", one_of(vec![json!("/p"), json!("")])),
        ("groupRef", one_of(vec![json!({"name": "group"}), json!({"name": "absent"})])),
        ("sessionAffinity", one_of(vec![json!("None"), json!("ClientIP")])),
        ("replicas", (0..4).prop_map(|replicas| json!(replicas)).boxed()),
        ("backendReplicas", (0..4).prop_map(|replicas| json!(replicas)).boxed()),
        ("sessionStorage", one_of(vec![redis, json!({"provider": "memory"})])),
        (
            "rateLimiting",
            one_of(vec![
                json!({"shared": limit}),
                json!({"shared": limit, "tools": [{"name": "t", "shared": limit}]}),
            ]),
        ),
    ]
}

fn spec() -> impl Strategy<Value = Value> {
    let fields: Vec<BoxedStrategy<Option<(&'static str, Value)>>> = fields()
        .into_iter()
        .map(|(name, values)| {
            proptest::option::of(values).prop_map(move |value| Some((name, value?))).boxed()
        })
        .collect();
    fields.prop_map(|fields| {
        let mut spec: Map<String, Value> =
            fields.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect();
        spec.retain(|_, value| !value.is_null());
        spec.insert("image".into(), json!("registry.example/mcp:1"));
        admissible(&mut spec);
        Value::Object(spec)
    })
}

/// What the API server's rules ask for.
fn admissible(spec: &mut Map<String, Value>) {
    if spec.contains_key("authzConfig") {
        spec.remove("authzConfigRef");
    }
    if spec.contains_key("rateLimiting") {
        spec.insert("sessionStorage".into(), json!({"provider": "redis", "address": "redis:6379"}));
    }
}

async fn references(fixture: &Fixture) {
    let test = &fixture.test;
    test.create_object(&MCPGroup::test("group")).await;
    test.create_object(&MCPOIDCConfig::test("oidc")).await;
    test.create_object(&MCPToolConfig::test("tools").offering("fetch")).await;
    test.create_object(&object::<MCPExternalAuthConfig>("exchange", json!({
        "type": "tokenExchange", "tokenExchange": {"tokenUrl": "https://sts.example/token", "audience": "b"},
    })))
    .await;
    test.create_object(&object::<MCPAuthzConfig>("authz", json!({
        "type": "cedarv1", "config": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"},
    })))
    .await;
    test.create_object(&object::<MCPTelemetryConfig>(
        "otel",
        json!({
            "openTelemetry": {
                "enabled": true, "endpoint": "https://otel.example:4318", "tracing": {"enabled": true},
                "sensitiveHeaders": [{"name": "x-key", "secretKeyRef": {"name": "s", "key": "k"}}],
            },
        }),
    ))
    .await;
    test.create_object(&object::<MCPWebhookConfig>("hooks", json!({
        "validating": [{"name": "v", "url": "https://hook.example", "hmacSecretRef": {"name": "s", "key": "k"}}],
    })))
    .await;
    let policies = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"}});
    let config_map = json!({"metadata": {"name": "policies"}, "data": {"authz.json": policies.to_string()}});
    test.create_object(&serde_json::from_value::<k8s_openapi::api::core::v1::ConfigMap>(config_map).unwrap())
        .await;
}

fn object<K: serde::de::DeserializeOwned + kube::Resource<DynamicType = ()>>(name: &str, spec: Value) -> K {
    let (api_version, kind) = (K::api_version(&()), K::kind(&()));
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn a_generated_server_that_is_settled_is_never_written_again() {
    let fixture = Fixture::new().await;
    references(&fixture).await;
    let mut runner = TestRunner::default();
    let strategy = spec();
    for number in 0..SPECS {
        let spec = strategy.new_tree(&mut runner).unwrap().current();
        let server: MCPServer = object(&format!("s-{number}"), spec);
        fixture.test.create_object(&server).await;
    }
    for number in 0..SPECS {
        let name = format!("s-{number}");
        fixture.until(&name, "reported on", |status| status.observed_generation == Some(1)).await;
    }
    fixture.settle("s-0").await;
    let failed = failures(&fixture).await;
    assert!(failed.len() < SPECS * 3 / 4, "most generated servers cannot run: {failed:#?}");

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.settle("s-0").await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let writes = recording.requests().await;
    let mut rewritten = Vec::new();
    for request in writes.iter().filter(|request| request.is_write()) {
        let server: Option<MCPServer> =
            fixture.test.api().get_opt(request.name.trim_end_matches("-runconfig")).await.unwrap();
        rewritten.push(format!("{request}: {}", json!(server.map(|server| server.spec))));
    }
    assert!(rewritten.is_empty(), "{rewritten:#?}");
    fixture.operator.stop().await;
}

async fn failures(fixture: &Fixture) -> Vec<String> {
    let servers = fixture.test.api::<MCPServer>().list(&kube::api::ListParams::default()).await.unwrap();
    let statuses = servers.items.into_iter().filter_map(|server| server.status);
    let failed = statuses.filter(|status| status.phase == Some(skep_api::kinds::MCPServerPhase::Failed));
    failed.filter_map(|status| status.message).collect()
}

#[test]
fn every_field_of_the_spec_is_generated() {
    let crds = skep_api::crd::crds().unwrap();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == "MCPServer").unwrap();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
    let properties =
        schema.pointer("/openAPIV3Schema/properties/spec/properties").unwrap().as_object().unwrap().clone();
    let generated: Vec<&str> = fields().into_iter().map(|(name, _)| name).chain(["image"]).collect();
    let missing: Vec<&String> =
        properties.keys().filter(|name| !generated.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "add these to `fields` in this file: {missing:?}");
}
