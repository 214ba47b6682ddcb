//! No field of a spec is there for nothing: set to another value, each gives other children or another message. There is
//! no cluster here.

use serde_json::{Value, json};
use skep_converge::Kind;
use skep_operator::{
    render::render,
    settings::Settings,
    watched::{RemoteProxies, Servers},
};
use skep_world::Watched;

use crate::references::{PERMIT, references};

/// Fields that change nothing of the children, and why. A `[]` is any element, a `{}` any entry.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    ("authServerRef.kind", "there is one kind that it can be"),
    ("authzConfig.inline.primaryUpstreamProvider", "only a VirtualMCPServer reads it; a condition says so"),
    ("groupRef.name", "membership shows in the status, and in what serves the group"),
];

/// The specs in which the fields of both kinds are tried: one that has all that can stand beside each other, to which a
/// kind adds its own, and others, to which it adds what it must have.
fn specs(own: &Value, required: &Value) -> Vec<Value> {
    let metadata = json!({"annotations": {"a": "1"}, "labels": {"b": "2"}});
    let everything = json!({
        "proxyPort": 8081,
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "0.1", "memory": "64Mi"}},
        "serviceAccount": "existing",
        "podTemplateSpec": {"spec": {"nodeSelector": {"disk": "ssd"}}},
        "resourceOverrides": {
            "proxyDeployment": {
                "annotations": {"c": "3"}, "labels": {"d": "4"}, "podTemplateMetadataOverrides": metadata,
                "env": [{"name": "LOG_LEVEL", "value": "debug"}], "imagePullSecrets": [{"name": "pull"}],
            },
            "proxyService": metadata,
        },
        "oidcConfigRef": {
            "name": "oidc", "audience": "https://mcp.example", "resourceUrl": "https://mcp.example", "scopes": ["openid"],
        },
        "authzConfig": {
            "type": "inline",
            "inline": {"policies": [PERMIT], "entitiesJson": "[]", "primaryUpstreamProvider": "company"},
            "groupClaimName": "groups", "roleClaimName": "roles", "groupEntityType": "Team",
        },
        "audit": {"enabled": true},
        "toolConfigRef": {"name": "tools"},
        "externalAuthConfigRef": {"name": "exchange"},
        "authServerRef": {"kind": "MCPExternalAuthConfig", "name": "login"},
        "telemetryConfigRef": {"name": "otel", "serviceName": "tools"},
        "trustProxyHeaders": true,
        "endpointPrefix": "/tools",
        "groupRef": {"name": "group"},
        "sessionAffinity": "None",
        "replicas": 2,
        "sessionStorage": {
            "provider": "redis", "address": "redis:6379", "db": 1, "keyPrefix": "p:", "passwordRef": {"name": "s", "key": "k"},
        },
    });
    let config_map = json!({"name": "policies", "key": "authz.json"});
    vec![
        with(everything, own),
        with(json!({"authzConfig": {"type": "configMap", "configMap": config_map}}), required),
        with(json!({"authzConfigRef": {"name": "authz"}}), required),
    ]
}

fn servers() -> Vec<Value> {
    let limit = json!({"maxTokens": 5, "refillPeriod": "1m"});
    let own = json!({
        "image": "registry.example/mcp:1",
        "transport": "streamable-http",
        "mcpPort": 9000,
        "args": ["--verbose"],
        "env": [{"name": "UNITS", "value": "metric"}],
        "volumes": [{"name": "cache", "hostPath": "/var/cache", "mountPath": "/cache", "readOnly": true}],
        "secrets": [{"name": "api", "key": "token", "targetEnvName": "TOKEN"}],
        "permissionProfile": {"type": "configmap", "name": "profiles", "key": "tools.json"},
        "webhookConfigRef": {"name": "hooks"},
        "backendReplicas": 1,
        "rateLimiting": {
            "shared": limit, "perUser": limit, "tools": [{"name": "find", "shared": limit, "perUser": limit}],
        },
    });
    let mut all = specs(&own, &json!({"image": "registry.example/mcp:1"}));
    all.push(json!({"image": "registry.example/mcp:1", "transport": "stdio", "proxyMode": "sse"}));
    all
}

fn remote_proxies() -> Vec<Value> {
    let secret = json!({"headerName": "X-API-Key", "valueSecretRef": {"name": "s", "key": "k"}});
    let own = json!({
        "remoteUrl": "https://remote.example/mcp",
        "transport": "sse",
        "headerForward": {"addPlaintextHeaders": {"X-Team": "sky"}, "addHeadersFromSecret": [secret]},
    });
    let mut all = specs(&own, &json!({"remoteUrl": "https://remote.example"}));
    all.push(json!({"remoteUrl": "https://10.0.0.1", "allowPrivateEndpoint": true}));
    all
}

fn with(mut spec: Value, more: &Value) -> Value {
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// What becomes of an object with this spec: its children, or why it has none. Nothing if the spec cannot be read.
async fn outcome(kind: Kind, spec: &Value) -> Option<Result<Vec<Value>, String>> {
    let metadata = json!({"name": "tried", "namespace": "ns", "uid": "1", "generation": 1});
    let tried =
        json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
    let others = references().into_iter().map(|(_, mut object)| {
        object["metadata"]["namespace"] = json!("ns");
        object
    });
    let objects = others.chain([tried]).map(|object| serde_json::from_value(object).unwrap());
    let rendered = render(objects.collect(), Settings::default()).await.ok()?.into_iter();
    let mut workloads = rendered.filter(|rendered| rendered.owner.starts_with(&format!("{} ", kind.kind)));
    let rendered = workloads.next()?;
    let children =
        rendered.children.map(|children| children.iter().map(|child| child.body().clone()).collect());
    Some(children.map_err(|blocked| blocked.message))
}

/// The paths of the fields that hold a value, with what they may hold.
fn leaves(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    let mut inner = Vec::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        inner.push((if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, schema));
    }
    inner.extend(schema.get("items").map(|schema| (format!("{path}[]"), schema)));
    inner.extend(schema.get("additionalProperties").map(|schema| (format!("{path}{{}}"), schema)));
    if inner.is_empty() {
        found.push((path.into(), schema.clone()));
    }
    for (path, schema) in inner {
        leaves(schema, &path, found);
    }
}

/// The first value at such a path.
fn at<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut place = value;
    for step in path.replace("[]", ".[]").replace("{}", ".{}").split('.') {
        place = match step {
            "[]" => place.get_mut(0)?,
            "{}" => place.as_object_mut()?.values_mut().next()?,
            name => place.get_mut(name)?,
        };
    }
    Some(place)
}

/// Another value that a field may hold.
fn other(schema: &Value, value: &Value) -> Option<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().find(|other| *other != value).cloned();
    }
    Some(match value {
        Value::String(text) => json!(format!("{text}2")),
        Value::Number(number) => json!(number.as_i64()? + 1),
        Value::Bool(flag) => json!(!flag),
        Value::Object(map) => {
            let mut map = map.clone();
            map.insert("metadata".into(), json!({"labels": {"another": "one"}}));
            Value::Object(map)
        }
        _ => return None,
    })
}

/// Whether another value at the path makes a difference to one of the objects.
async fn has_effect(kind: Kind, specs: &[Value], path: &str, schema: &Value) -> bool {
    let mut tried = false;
    for spec in specs {
        let mut changed = spec.clone();
        let Some(value) = at(&mut changed, path) else { continue };
        tried = true;
        let Some(other) = other(schema, value) else { continue };
        *value = other;
        let after =
            outcome(kind, &changed).await.unwrap_or_else(|| panic!("{path}: {changed} cannot be read"));
        if Some(after) != outcome(kind, spec).await {
            return true;
        }
    }
    assert!(tried, "{} {path} is in no spec of this file: add it to one", kind.kind);
    false
}

#[tokio::test]
async fn every_field_of_a_spec_is_read_by_somebody() {
    let crds = skep_api::crd::crds().unwrap();
    for (kind, specs) in [(Servers::KIND, servers()), (RemoteProxies::KIND, remote_proxies())] {
        for spec in &specs {
            let outcome = outcome(kind, spec).await.unwrap_or_else(|| panic!("{spec} cannot be read"));
            assert!(outcome.is_ok(), "{spec}: {outcome:?}");
        }
        let crd = crds.iter().find(|crd| crd.spec.names.kind == kind.kind).unwrap();
        let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
        let mut fields = Vec::new();
        leaves(schema.pointer("/openAPIV3Schema/properties/spec").unwrap(), "", &mut fields);
        assert!(fields.len() > 50, "only {} fields", fields.len());
        let mut unread = Vec::new();
        for (path, schema) in &fields {
            if !has_effect(kind, &specs, path, schema).await {
                unread.push(path.as_str());
            }
        }
        assert_eq!(unread, WITHOUT_EFFECT.map(|(path, _)| path), "fields of {} without effect", kind.kind);
    }
}
