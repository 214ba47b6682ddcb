//! Nothing is written when nothing changes, for generated VirtualMCPServers.

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::{
    prelude::*,
    sample::select,
    strategy::{BoxedStrategy, ValueTree},
};
use serde_json::{Map, Value, json};
use skep_api::kinds::{
    EmbeddingServer, MCPAuthzConfig, MCPExternalAuthConfig, MCPGroup, MCPOIDCConfig, MCPServer,
    MCPServerEntry, MCPTelemetryConfig, MCPToolConfig, VirtualMCPCompositeToolDefinition, VirtualMCPServer,
    VirtualMCPServerPhase,
};
use skep_api::vmcp::Config;
use skep_config::paths::VMCP_CONFIG_FILE;
use skep_testkit::fixtures::{TestGroup, TestServer, TestToolConfig};

use crate::{
    fixture::Fixture,
    generated::runner,
    virtual_server::{certificates, object, secret},
};

/// How many specs are tried in one run.
const SPECS: usize = 120;

fn one_of(values: Vec<Value>) -> BoxedStrategy<Value> {
    select(values).boxed()
}

/// Values with which a server cannot run: rare, so that most can.
fn rarely(bad: Value, mut good: Vec<Value>) -> BoxedStrategy<Value> {
    good.resize(12, Value::Null);
    good.push(bad);
    one_of(good)
}

/// For each field, the values that it is tried with. Each spec has about half of the fields.
fn fields() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    let oidc =
        json!({"name": "idp", "audience": "https://mcp.example", "resourceUrl": "https://mcp.example"});
    let inline = json!({"type": "inline", "inline": {"policies": ["permit(principal, action, resource)\nwhen { true };\n"]}});
    let template = json!({
        "metadata": {"annotations": {"vault": ""}},
        "spec": {
            "containers": [
                {"name": "vmcp", "resources": {"limits": {"cpu": "1.5"}}, "env": [{"name": "A", "value": ""}]},
                {"name": "side", "image": "registry.example/side:1", "ports": [{"containerPort": 1}]},
            ],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}}],
        },
    });
    let auth = json!({"type": "externalAuthConfigRef", "externalAuthConfigRef": {"name": "inject"}});
    vec![
        (
            "incomingAuth",
            one_of(vec![
                json!({"type": "oidc", "oidcConfigRef": oidc}),
                json!({"type": "oidc", "oidcConfigRef": oidc, "authzConfig": inline}),
                json!({"type": "oidc", "oidcConfigRef": oidc, "authzConfigRef": {"name": "authz"}}),
                json!({"type": "anonymous", "authzConfig": inline}),
            ]),
        ),
        (
            "outgoingAuth",
            one_of(vec![
                json!({"source": "inline"}),
                json!({"source": "inline", "default": auth, "backends": {"one": {"type": "discovered"}}}),
                json!({"source": "discovered", "default": {"type": "discovered"}, "backends": {"one": auth}}),
                json!({}),
            ]),
        ),
        ("passthroughHeaders", one_of(vec![json!(["X-Tenant"]), json!([])])),
        ("config", config()),
        (
            "telemetryConfigRef",
            rarely(
                json!({"name": "absent"}),
                vec![json!({"name": "otel"}), json!({"name": "otel", "serviceName": "s"})],
            ),
        ),
        ("embeddingServerRef", rarely(json!({"name": "embed"}), vec![])),
        ("authServerConfig", auth_server()),
        ("serviceType", one_of(vec![json!("NodePort"), json!("ClusterIP"), json!("LoadBalancer")])),
        ("sessionAffinity", one_of(vec![json!("None"), json!("ClientIP")])),
        ("replicas", (0..4).prop_map(|replicas| json!(replicas)).boxed()),
        (
            "sessionStorage",
            one_of(vec![
                json!({"provider": "memory"}),
                json!({"provider": "redis", "address": "redis:6379", "db": 2, "keyPrefix": "p:", "passwordRef": {"name": "s", "key": "k"}}),
            ]),
        ),
        ("serviceAccount", one_of(vec![json!("existing")])),
        ("imagePullSecrets", one_of(vec![json!([{"name": "b"}, {"name": "a"}, {"name": "b"}]), json!([])])),
        (
            "podTemplateSpec",
            rarely(json!({"spec": {"containers": "bad"}}), vec![template.clone(), template, json!({})]),
        ),
    ]
}

fn config() -> BoxedStrategy<Value> {
    let workflow = json!({
        "name": "both", "description": "calls x", "timeout": "90s", "runAs": "workflow",
        "parameters": {"type": "object", "properties": {"q": {"type": "integer", "maximum": 1_000_000}}},
        "steps": [{"id": "a", "tool": "one.x", "arguments": {"q": "{{.params.q}}", "n": 0.5}, "timeout": "1m"}],
    });
    let limit = json!({"maxTokens": 5, "refillPeriod": "90s"});
    one_of(vec![
        json!({"aggregation": {"conflictResolution": "manual", "tools": [
            {"workload": "one", "toolConfigRef": {"name": "tools"}, "overrides": {"x": {"name": "<y>"}}},
        ]}}),
        json!({"aggregation": {"conflictResolution": "priority", "conflictResolutionConfig": {"priorityOrder": ["one"]}}}),
        json!({"allowRunAsWorkflow": true, "compositeTools": [workflow], "compositeToolRefs": [{"name": "shared"}]}),
        json!({"operational": {"logLevel": "debug", "timeouts": {"perWorkload": {"one": "90s"}}, "failureHandling": {"circuitBreaker": {"enabled": true, "timeout": "90s"}}}}),
        json!({"audit": {"enabled": true, "eventTypes": ["mcp_tool_call"]}, "metadata": {"a": "1", "b": "true"}}),
        json!({"optimizer": {"embeddingService": "http://embed.example", "hybridSearchSemanticRatio": "0.5"}}),
        json!({"codeMode": {"enabled": true, "toolCallTimeout": "90s"}}),
        json!({"rateLimiting": {"shared": limit, "tools": [{"name": "x", "shared": limit}]}}),
        json!({"passthroughHeaders": ["X-Team"], "unheard": {"of": 1}}),
    ])
}

fn auth_server() -> BoxedStrategy<Value> {
    let key = json!({"name": "s", "key": "k"});
    let provider = json!({"name": "corp", "type": "oidc", "oidcConfig": {"issuerUrl": "https://idp.example", "clientId": "c", "clientSecretRef": key}});
    one_of(vec![
        json!({"issuer": "https://as.example", "signingKeySecretRefs": [key, key], "upstreamProviders": [provider]}),
        json!({"issuer": "https://as.example", "hmacSecretRefs": [key], "upstreamProviders": [provider], "storage": {
            "type": "redis", "redis": {"addr": "redis:6379", "aclUserConfig": {"passwordSecretRef": key}, "tls": {"caCertSecretRef": key}},
        }}),
    ])
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
        spec.insert("groupRef".into(), json!({"name": "all"}));
        admissible(&mut spec);
        Value::Object(spec)
    })
}

/// What the API server's rules require, and which fields belong together.
fn admissible(spec: &mut Map<String, Value>) {
    spec.entry("incomingAuth").or_insert(json!({"type": "anonymous"}));
    let anonymous = spec["incomingAuth"]["type"] == "anonymous";
    if anonymous {
        spec.remove("authServerConfig");
    }
    if !spec.get("config").unwrap_or(&Value::Null)["rateLimiting"].is_null() {
        spec.insert("sessionStorage".into(), json!({"provider": "redis", "address": "redis:6379"}));
    }
}

async fn references(fixture: &Fixture) {
    let test = &fixture.test;
    secret(fixture, "s", &["k"]).await;
    certificates(fixture, "ca").await;
    let bundle = json!({"configMapRef": {"name": "ca", "key": "ca.crt"}});
    test.create_object(&MCPGroup::test("all")).await;
    let oidc = json!({"type": "inline", "inline": {
        "issuer": "https://as.example", "clientSecretRef": {"name": "s", "key": "k"}, "caBundleRef": bundle,
    }});
    test.create_object(&object::<MCPOIDCConfig>("idp", oidc)).await;
    test.create_object(&MCPToolConfig::test("tools").offering("x")).await;
    let inject = json!({"type": "headerInjection", "headerInjection": {"headerName": "X-Key", "valueSecretRef": {"name": "s", "key": "k"}}});
    test.create_object(&object::<MCPExternalAuthConfig>("inject", inject)).await;
    let authz = json!({"type": "cedarv1", "config": {"policies": ["permit(principal, action, resource);"], "entities_json": "[]"}});
    test.create_object(&object::<MCPAuthzConfig>("authz", authz)).await;
    let otel = json!({"openTelemetry": {
        "enabled": true, "endpoint": "https://otel.example:4318", "tracing": {"enabled": true}, "caBundleRef": bundle,
        "sensitiveHeaders": [{"name": "x-key", "secretKeyRef": {"name": "s", "key": "k"}}],
    }});
    test.create_object(&object::<MCPTelemetryConfig>("otel", otel)).await;
    let shared = json!({"name": "shared", "description": "d", "steps": [{"id": "a", "tool": "one.x"}]});
    test.create_object(&object::<VirtualMCPCompositeToolDefinition>("shared", shared)).await;
    test.create_object(&object::<EmbeddingServer>("embed", json!({}))).await;
    let mut one = MCPServer::test("one").in_group("all");
    one.spec.external_auth_config_ref = serde_json::from_value(json!({"name": "inject"})).unwrap();
    test.create_object(&one).await;
    let entry = json!({
        "remoteUrl": "https://ext.example/mcp", "transport": "sse", "groupRef": {"name": "all"}, "caBundleRef": bundle,
        "headerForward": {
            "addPlaintextHeaders": {"X-Team": "<a>"},
            "addHeadersFromSecret": [{"headerName": "X-Key", "valueSecretRef": {"name": "s", "key": "k"}}],
        },
    });
    test.create_object(&object::<MCPServerEntry>("ext", entry)).await;
}

/// The files of all servers, by their names.
async fn files(fixture: &Fixture) -> Vec<(String, String)> {
    let maps = fixture.test.api::<ConfigMap>().list(&kube::api::ListParams::default()).await.unwrap();
    let file = |map: ConfigMap| Some((map.metadata.name?, map.data?.remove(VMCP_CONFIG_FILE)?));
    let files: Vec<(String, String)> = maps.into_iter().filter_map(file).collect();
    assert!(files.len() > SPECS / 2, "{}", files.len());
    files
}

#[tokio::test]
async fn a_generated_virtual_server_that_is_valid_starts_and_once_settled_is_never_written_again() {
    let fixture = Fixture::new().await;
    references(&fixture).await;
    let mut runner = runner();
    let strategy = spec();
    for number in 0..SPECS {
        let spec = strategy.new_tree(&mut runner).unwrap().current();
        fixture.test.create_object(&object::<VirtualMCPServer>(&format!("v-{number}"), spec)).await;
    }
    let api = fixture.test.api::<VirtualMCPServer>();
    let all = async || api.list(&kube::api::ListParams::default()).await.unwrap().items;
    // Each has its own timeout: there are many, and they share the machine.
    fixture.until_idle().await;
    let statuses: Vec<_> = all().await.into_iter().filter_map(|server| server.status).collect();
    assert!(statuses.len() == SPECS && statuses.iter().all(|status| status.observed_generation == Some(1)));
    let statuses = statuses.into_iter();
    let failed = statuses.filter(|status| status.phase == Some(VirtualMCPServerPhase::Failed));
    let failed: Vec<String> = failed.filter_map(|status| status.message).collect();
    assert!(failed.len() < SPECS / 2, "most generated servers cannot run: {failed:#?}");
    assert!(
        !failed.iter().any(|message| message.contains("cannot apply")),
        "nothing is rejected: {failed:#?}"
    );

    for (name, file) in files(&fixture).await {
        let errors = Config::parse_checked(&file, skep_workflow::check_tools).err().unwrap_or_default();
        assert!(errors.is_empty(), "{name} would not start: {errors:?}\n{file}");
    }

    let fixture = fixture.restart().await;
    let recording = fixture.record();
    fixture.until_idle().await;
    let writes = recording.requests().await;
    let rewritten: Vec<String> =
        writes.iter().filter(|request| request.is_write()).map(ToString::to_string).collect();
    assert!(rewritten.is_empty(), "{rewritten:#?}");
    fixture.operator.stop().await;
}

#[test]
fn every_field_of_the_spec_is_generated() {
    let crds = skep_api::crd::crds().unwrap();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == "VirtualMCPServer").unwrap();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
    let properties =
        schema.pointer("/openAPIV3Schema/properties/spec/properties").unwrap().as_object().unwrap().clone();
    let generated: Vec<&str> = fields().into_iter().map(|(name, _)| name).chain(["groupRef"]).collect();
    let missing: Vec<&String> =
        properties.keys().filter(|name| !generated.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "add these to `fields` in this file: {missing:?}");
}
