//! Every field of a spec has an effect: another value leads to other children or another message. There is no cluster
//! here.

mod virtual_servers;

use crate::kinds::{EmbeddingServers, Registries, RemoteProxies, Servers, VirtualServers};
use serde_json::{Value, json};
use skep_converge::Kind;
use skep_operator::{render::render, settings::Settings};
use skep_testkit::json::with_fields;
use skep_world::Watched;

use crate::references::{PERMIT, references};
use virtual_servers::{overwritten, virtual_servers};

/// Fields without an effect on the children, and why. A `[]` is any element, a `{}` any entry.
const OF_A_PROXY: [(&str, &str); 3] = [
    ("authServerRef.kind", "there is one kind that it can be"),
    (
        "authzConfig.inline.primaryUpstreamProvider",
        "only a VirtualMCPServer reads it; a condition reports it",
    ),
    ("groupRef.name", "membership shows in the status, and in what serves the group"),
];
/// The same, of a VirtualMCPServer.
const OF_A_VIRTUAL_SERVER: [(&str, &str); 1] =
    [("incomingAuth.authzConfig.type", "the API server accepts only the type of the field that is set")];

/// The specs in which the fields of both kinds are tried: one with every field that can be combined, to which a
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
        with_fields(everything, own),
        with_fields(json!({"authzConfig": {"type": "configMap", "configMap": config_map}}), required),
        with_fields(json!({"authzConfigRef": {"name": "authz"}}), required),
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

fn embedding_servers() -> Vec<Value> {
    let metadata = json!({"annotations": {"a": "1"}, "labels": {"b": "2"}});
    let pods = json!({"podTemplateMetadataOverrides": metadata});
    vec![json!({
        "model": "BAAI/bge-small-en-v1.5",
        "image": "registry.example/tei:1",
        "imagePullPolicy": "Always",
        "port": 8081,
        "replicas": 2,
        "args": ["--json-output"],
        "env": [{"name": "RUST_LOG", "value": "debug"}],
        "hfTokenSecretRef": {"name": "s", "key": "k"},
        "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "0.1", "memory": "64Mi"}},
        "modelCache": {"enabled": true, "storageClassName": "fast", "size": "20Gi", "accessMode": "ReadWriteMany"},
        "podTemplateSpec": {"spec": {"nodeSelector": {"disk": "ssd"}}},
        "resourceOverrides": {
            "statefulSet": with_fields(pods, &metadata), "service": metadata, "persistentVolumeClaim": metadata,
        },
    })]
}

fn registries() -> Vec<Value> {
    vec![json!({
        "configYAML": "a: 1\n",
        "displayName": "A registry",
        "imagePullSecrets": [{"name": "pull"}],
        "pgpassSecretRef": {"name": "s", "key": "k", "optional": false},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "podTemplateSpec": {"spec": {"nodeSelector": {"disk": "ssd"}}},
    })]
}

/// The result for an object: its children, or why it has none.
type Outcome = Result<Vec<Value>, String>;

/// The result for an object with this spec. None if the spec cannot be parsed.
async fn outcome(kind: Kind, spec: &Value) -> Option<Outcome> {
    let metadata = json!({"name": "tried", "namespace": "ns", "uid": "1", "generation": 1});
    let tried =
        json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
    let others = references().into_iter().map(|(_, mut object)| {
        object["metadata"]["namespace"] = json!("ns");
        object
    });
    // One that is ready.
    let embedding = EmbeddingServers::kind();
    let embedding = json!({
        "apiVersion": embedding.api_version(), "kind": embedding.kind, "metadata": {"name": "embed", "namespace": "ns"},
        "spec": {}, "status": {"phase": "Ready", "readyReplicas": 1},
    });
    let objects = others.chain([embedding, tried]).map(|object| serde_json::from_value(object).unwrap());
    let rendered = render(objects.collect(), Settings::default()).await.ok()?.into_iter();
    let mut workloads = rendered.filter(|rendered| rendered.owner == format!("{} tried", kind.kind));
    let rendered = workloads.next()?;
    let children =
        rendered.children.map(|children| children.iter().map(|child| child.body().clone()).collect());
    Some(children.map_err(|problems| problems[0].to_string()))
}

/// The paths of the fields that hold a value, with what they may hold.
fn leaves(schema: &Value, path: &str, fields: &mut Vec<(String, Value)>) {
    let mut inner = Vec::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        inner.push((if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, schema));
    }
    inner.extend(schema.get("items").map(|schema| (format!("{path}[]"), schema)));
    inner.extend(schema.get("additionalProperties").map(|schema| (format!("{path}{{}}"), schema)));
    if inner.is_empty() {
        fields.push((path.into(), schema.clone()));
    }
    for (path, schema) in inner {
        leaves(schema, &path, fields);
    }
}

/// The first value at such a path, in whichever element has one.
fn at<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    let Some((step, rest)) = path.split_first() else { return Some(value) };
    match *step {
        "[]" => value.as_array_mut()?.iter_mut().find_map(|item| at(item, rest)),
        "{}" => value.as_object_mut()?.values_mut().find_map(|item| at(item, rest)),
        name => at(value.get_mut(name)?, rest),
    }
}

/// Another value that a field may hold.
fn other(schema: &Value, value: &Value) -> Option<Value> {
    if let Some(values) = schema["enum"].as_array() {
        let other = values.iter().find(|other| *other != value).cloned();
        // The only other value is none.
        return Some(other.unwrap_or_default());
    }
    Some(match value {
        // A value with a leading digit may be a number of seconds.
        Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()) => json!(format!("1{text}")),
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
async fn has_effect(kind: Kind, specs: &[(&Value, Outcome)], path: &str, schema: &Value) -> bool {
    let mut tried = false;
    for (spec, before) in specs {
        let mut changed = (*spec).clone();
        let steps = path.replace("[]", ".[]").replace("{}", ".{}");
        let steps: Vec<&str> = steps.split('.').collect();
        let Some(value) = at(&mut changed, &steps) else { continue };
        tried = true;
        let Some(other) = other(schema, value) else { continue };
        *value = other;
        let after =
            outcome(kind, &changed).await.unwrap_or_else(|| panic!("{path}: {changed} cannot be read"));
        if after != *before {
            return true;
        }
    }
    assert!(tried, "{} {path} is in no spec of this file: add it to one", kind.kind);
    false
}

/// Checks that each of the kind's fields makes a difference in one of the specs, except for those that are known to make none.
async fn every_field_has_an_effect(kind: Kind, specs: &[Value], without: &[(&str, &str)]) {
    let mut tried = Vec::new();
    for spec in specs {
        let outcome = outcome(kind, spec).await.unwrap_or_else(|| panic!("{spec} cannot be read"));
        assert!(outcome.is_ok(), "{spec}: {outcome:?}");
        tried.push((spec, outcome));
    }
    let crds = skep_api::crd::crds().unwrap();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == kind.kind).unwrap();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap();
    let mut fields = Vec::new();
    leaves(schema.pointer("/openAPIV3Schema/properties/spec").unwrap(), "", &mut fields);
    if kind == VirtualServers::kind() {
        let overwritten = overwritten();
        fields.retain(|(path, _)| !overwritten.iter().any(|(part, _)| is_within(path, part)));
    }
    assert!(!fields.is_empty());
    let mut unread = Vec::new();
    for (path, schema) in &fields {
        if !has_effect(kind, &tried, path, schema).await {
            unread.push(path.as_str());
        }
    }
    let without: Vec<&str> = without.iter().map(|(path, _)| *path).collect();
    assert_eq!(unread, without, "fields of {} without effect", kind.kind);
}

fn is_within(path: &str, part: &str) -> bool {
    path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
}

#[tokio::test]
async fn every_field_of_a_proxy_has_an_effect() {
    every_field_has_an_effect(Servers::kind(), &servers(), &OF_A_PROXY).await;
    every_field_has_an_effect(RemoteProxies::kind(), &remote_proxies(), &OF_A_PROXY).await;
}

#[tokio::test]
async fn every_field_of_a_virtual_server_has_an_effect() {
    every_field_has_an_effect(VirtualServers::kind(), &virtual_servers(), &OF_A_VIRTUAL_SERVER).await;
}

#[tokio::test]
async fn config_fields_that_the_operator_sets_ignore_the_users_values() {
    for spec in virtual_servers() {
        let good = outcome(VirtualServers::kind(), &spec).await;
        for (part, reported) in overwritten() {
            let mut spec = spec.clone();
            let name = part.strip_prefix("config.").unwrap();
            spec["config"][name] = reported;
            assert!(good.is_some() && outcome(VirtualServers::kind(), &spec).await == good, "{part}");
        }
    }
}

#[tokio::test]
async fn every_field_of_an_embedding_server_has_an_effect() {
    every_field_has_an_effect(EmbeddingServers::kind(), &embedding_servers(), &[]).await;
}

#[tokio::test]
async fn every_field_of_a_registry_has_an_effect() {
    every_field_has_an_effect(Registries::kind(), &registries(), &[]).await;
}
