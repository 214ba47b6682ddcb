//! The values that the fields of specs are tried with.

use proptest::{
    prelude::*,
    sample::select,
    strategy::{BoxedStrategy, Strategy},
};
use serde_json::{Map, Value, json};

use super::pod_templates;
use crate::references::PERMIT;

/// For each field of a spec, the values that it is tried with.
pub(super) type Fields = Vec<(&'static str, BoxedStrategy<Value>)>;

/// A spec with the fields that it must have, and about half of the others.
pub(super) fn spec(required: Fields, optional: Fields) -> BoxedStrategy<Value> {
    let required =
        required.into_iter().map(|(name, values)| values.prop_map(move |value| (name, value)).boxed());
    let maybe = |values| proptest::option::of(values).prop_map(Option::unwrap_or_default);
    let optional =
        optional.into_iter().map(|(name, values)| maybe(values).prop_map(move |value| (name, value)).boxed());
    let fields: Vec<BoxedStrategy<(&'static str, Value)>> = required.chain(optional).collect();
    let spec = fields.prop_map(|fields| {
        let mut spec: Map<String, Value> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        spec.retain(|_, value| !value.is_null());
        admissible(&mut spec);
        Value::Object(spec)
    });
    spec.boxed()
}

/// What the API server's rules require.
fn admissible(spec: &mut Map<String, Value>) {
    if spec.contains_key("authzConfig") {
        spec.remove("authzConfigRef");
    }
    if spec.contains_key("rateLimiting") {
        spec.insert("sessionStorage".into(), json!({"provider": "redis", "address": "redis:6379"}));
    }
}

fn one_of(values: Vec<Value>) -> BoxedStrategy<Value> {
    select(values).boxed()
}

/// Values with which an object cannot run: rare, so that most can.
fn rarely(mut values: Vec<Value>) -> BoxedStrategy<Value> {
    values.resize(values.len() * 8, Value::Null);
    one_of(values)
}

/// Mostly one of the first, sometimes one of the others, with which an object cannot run.
fn mostly(good: Vec<Value>, bad: Vec<Value>) -> BoxedStrategy<Value> {
    prop_oneof![12 => one_of(good), 1 => one_of(bad)].boxed()
}

fn port() -> BoxedStrategy<Value> {
    (1..65536).prop_map(|port| json!(port)).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    one_of(vec![json!(true), json!(false)])
}

fn number_of_pods() -> BoxedStrategy<Value> {
    (0..4).prop_map(|replicas| json!(replicas)).boxed()
}

/// Quantities in all notations that the API server normalizes.
fn resources() -> BoxedStrategy<Value> {
    one_of(vec![
        json!({"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "100m"}}),
        json!({"limits": {"cpu": "1000m", "memory": "1000M"}, "requests": {"cpu": "0.25", "memory": "67108864"}}),
        json!({"limits": {"cpu": "2"}}),
        json!({"limits": {}}),
        json!({}),
    ])
}

/// The fields that both kinds have.
pub(super) fn shared() -> Fields {
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
    let password = json!({"name": "s", "key": "k"});
    let redis = json!({"provider": "redis", "address": "redis:6379", "db": 2, "keyPrefix": "p:", "passwordRef": password});
    let inline = json!({"policies": [PERMIT], "primaryUpstreamProvider": "company"});
    let inline = json!({"type": "inline", "inline": inline, "groupClaimName": "groups"});
    let policies = json!({"type": "configMap", "configMap": {"name": "policies"}, "roleClaimName": "roles"});
    let oidc =
        json!({"name": "oidc", "audience": "a", "scopes": ["x"], "resourceUrl": "https://mcp.example/mcp"});
    vec![
        ("proxyPort", port()),
        ("resources", resources()),
        ("serviceAccount", one_of(vec![json!("existing")])),
        ("resourceOverrides", one_of(vec![overrides, json!({}), json!({"proxyDeployment": {}})])),
        ("oidcConfigRef", mostly(vec![oidc], vec![json!({"name": "absent", "audience": "a"})])),
        ("authzConfig", one_of(vec![inline, policies])),
        ("authzConfigRef", one_of(vec![json!({"name": "authz"})])),
        ("audit", one_of(vec![json!({"enabled": true}), json!({})])),
        ("toolConfigRef", one_of(vec![json!({"name": "tools"})])),
        ("externalAuthConfigRef", one_of(vec![json!({"name": "exchange"})])),
        ("authServerRef", rarely(vec![json!({"name": "exchange"}), json!({"name": "absent"})])),
        (
            "telemetryConfigRef",
            one_of(vec![json!({"name": "otel"}), json!({"name": "otel", "serviceName": "s"})]),
        ),
        ("trustProxyHeaders", flag()),
        ("endpointPrefix", one_of(vec![json!("/p"), json!("")])),
        ("groupRef", one_of(vec![json!({"name": "group"}), json!({"name": "absent"})])),
        ("sessionAffinity", one_of(vec![json!("None"), json!("ClientIP")])),
        ("replicas", number_of_pods()),
        ("sessionStorage", one_of(vec![redis, json!({"provider": "memory"})])),
    ]
}

/// The fields that an MCPServer must have.
pub(super) fn servers_must_have() -> Fields {
    vec![("image", one_of(vec![json!("registry.example/mcp:1")]))]
}

/// The fields that MCPServers alone have.
pub(super) fn of_servers() -> Fields {
    // It is passed on to the proxy as a text, so the API server does not normalize it.
    let template = json!({"spec": {
        "containers": [{"name": "mcp", "resources": {"limits": {"cpu": "1.5"}}, "env": [{"name": "A", "value": ""}]}],
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }});
    let bad_template = json!({"spec": {"containers": "bad"}});
    let volume = json!([{"name": "v", "hostPath": "/a", "mountPath": "/b", "readOnly": true}]);
    let profile = json!({"type": "configmap", "name": "p", "key": "k"});
    let limit = json!({"maxTokens": 5, "refillPeriod": "1m30s"});
    let tools = json!({"shared": limit, "tools": [{"name": "t", "shared": limit}]});
    vec![
        ("transport", one_of(vec![json!("stdio"), json!("sse"), json!("streamable-http")])),
        ("proxyMode", one_of(vec![json!("sse"), json!("streamable-http")])),
        ("mcpPort", port()),
        ("args", one_of(vec![json!(["--x"]), json!(["", "<&>"])])),
        ("env", one_of(vec![json!([{"name": "A", "value": ""}]), json!([{"name": "B", "value": "<b>"}])])),
        ("volumes", one_of(vec![volume])),
        ("secrets", one_of(vec![json!([{"name": "s", "key": "k", "targetEnvName": "S"}])])),
        ("permissionProfile", one_of(vec![json!({"name": "none"}), json!({"name": "network"}), profile])),
        ("podTemplateSpec", mostly(vec![template, json!({})], vec![bad_template])),
        ("webhookConfigRef", one_of(vec![json!({"name": "hooks"})])),
        ("backendReplicas", number_of_pods()),
        ("rateLimiting", one_of(vec![json!({"shared": limit}), tools])),
    ]
}

/// The fields that an MCPRemoteProxy must have.
pub(super) fn remote_proxies_must_have() -> Fields {
    let good = vec![json!("https://mcp.example"), json!("http://tools.team.svc:8080/mcp?a=b")];
    let rejected =
        vec![json!("https://localhost/mcp"), json!("http://169.254.169.254"), json!("https://10.0.0.1")];
    vec![("remoteUrl", mostly(good, rejected))]
}

/// The fields that MCPRemoteProxies alone have.
pub(super) fn of_remote_proxies() -> Fields {
    let from_secret = json!({"headerName": "X-API-Key", "valueSecretRef": {"name": "s", "key": "k"}});
    let headers = json!({"addPlaintextHeaders": {"X-Team": "<sky>", "X-Empty": ""}, "addHeadersFromSecret": [from_secret]});
    let absent = json!({"headerName": "X-API-Key", "valueSecretRef": {"name": "absent", "key": "k"}});
    let rejected =
        vec![json!({"addPlaintextHeaders": {"Host": "x"}}), json!({"addHeadersFromSecret": [absent]})];
    vec![
        ("transport", one_of(vec![json!("sse"), json!("streamable-http")])),
        ("allowPrivateEndpoint", flag()),
        (
            "headerForward",
            mostly(vec![headers, json!({"addHeadersFromSecret": [from_secret]}), json!({})], rejected),
        ),
        ("podTemplateSpec", pod_templates::pod_template()),
    ]
}
