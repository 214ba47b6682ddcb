//! The same for the kinds without a proxy in front of one server.

use crate::kinds::{
    EmbeddingServers, Entries, Groups, OidcConfigs, Registries, TelemetryConfigs, VirtualServers,
};
use serde_json::{Value, json};
use skep_converge::Kind;
use skep_operator::resources::{
    ConfigMaps, Deployments, RoleBindings, Roles, ServiceAccounts, Services, StatefulSets,
};
use skep_world::Watched;

use super::{Place, restoring, try_children, try_status};
use crate::{
    fixture::Fixture,
    virtual_server::{certificates, secret},
};

/// The children of a VirtualMCPServer called front. The Secret for its sessions is not among them: it is created
/// once, and not owned afterwards.
fn of_a_virtual_server() -> [(Kind, &'static str); 6] {
    [
        (ServiceAccounts::kind(), "front-vmcp"),
        (Roles::kind(), "front-vmcp"),
        (RoleBindings::kind(), "front-vmcp"),
        (ConfigMaps::kind(), "front-vmcp-config"),
        (Services::kind(), "vmcp-front"),
        (Deployments::kind(), "front"),
    ]
}

/// The children of an EmbeddingServer called emb.
fn of_an_embedding_server() -> [(Kind, &'static str); 2] {
    [(StatefulSets::kind(), "emb"), (Services::kind(), "emb")]
}

/// The children of an MCPRegistry called reg.
fn of_a_registry() -> [(Kind, &'static str); 6] {
    [
        (ConfigMaps::kind(), "reg-registry-server-config"),
        (ServiceAccounts::kind(), "reg-registry-api"),
        (Roles::kind(), "reg-registry-api"),
        (RoleBindings::kind(), "reg-registry-api"),
        (Deployments::kind(), "reg-api"),
        (Services::kind(), "reg-api"),
    ]
}

const fn owner(manager: &'static str, kind: Kind, name: &'static str) -> Place<'static> {
    Place { manager, kind, name, subresource: None }
}

fn virtual_server() -> Place<'static> {
    owner("skep-virtualmcpserver", VirtualServers::kind(), "front")
}
fn embedding_server() -> Place<'static> {
    owner("skep-embeddingserver", EmbeddingServers::kind(), "emb")
}
fn registry() -> Place<'static> {
    owner("skep-mcpregistry", Registries::kind(), "reg")
}

/// Creates the object, waits until it has its children, and tests each drift of them.
async fn try_children_of(
    fixture: Fixture,
    owner: Place<'_>,
    spec: Value,
    children: &[(Kind, &str)],
) -> usize {
    fixture.create(owner.kind, owner.name, spec).await;
    let settled = fixture.settle_any(owner.kind, owner.name).await;
    assert_eq!(settled.data["status"]["phase"], "Pending", "{:#}", settled.data["status"]);
    let drifts = try_children(&fixture, owner.manager, children).await;
    fixture.operator.stop().await;
    drifts
}

/// A pod template with an example of everything that users add.
fn pod_template(container: &str) -> Value {
    json!({
        "metadata": {"annotations": {"mesh": "yes"}, "labels": {"tier": "front"}},
        "spec": {
            "containers": [
                {"name": container, "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]},
                {"name": "log", "image": "registry.example/log:1", "ports": [{"containerPort": 24224}],
                 "resources": {"limits": {"cpu": "0.5"}}, "securityContext": {"privileged": false}},
            ],
            "initContainers": [{"name": "wait", "image": "registry.example/wait:1", "command": ["true"]}],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}}],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3, "effect": "NoExecute"}],
        },
    })
}

/// With every kind of volume that the operator mounts.
#[tokio::test]
async fn each_field_of_a_virtual_servers_children_is_restored_alone_by_one_write() {
    let fixture = restoring().await;
    secret(&fixture, "s", &["k"]).await;
    certificates(&fixture, "ca").await;
    let bundle = json!({"configMapRef": {"name": "ca", "key": "ca.crt"}});
    let key = json!({"name": "s", "key": "k"});
    fixture.create(Groups::kind(), "all", json!({})).await;
    let oidc = json!({"issuer": "https://as.example", "clientSecretRef": key, "caBundleRef": bundle});
    fixture.create(OidcConfigs::kind(), "idp", json!({"type": "inline", "inline": oidc})).await;
    let otel = json!({
        "enabled": true, "endpoint": "https://otel.example", "tracing": {"enabled": true}, "caBundleRef": bundle,
    });
    fixture.create(TelemetryConfigs::kind(), "otel", json!({"openTelemetry": otel})).await;
    let entry = json!({
        "remoteUrl": "https://ext.example/mcp", "transport": "sse", "groupRef": {"name": "all"},
        "caBundleRef": bundle,
        "headerForward": {"addHeadersFromSecret": [{"headerName": "X-Key", "valueSecretRef": key}]},
    });
    fixture.create(Entries::kind(), "ext", entry).await;
    let steps = json!([{"id": "a", "tool": "ext.x"}]);
    let workflow = json!({"name": "both", "description": "d", "runAs": "workflow", "steps": steps});
    let spec = json!({
        "groupRef": {"name": "all"},
        "telemetryConfigRef": {"name": "otel"},
        "imagePullSecrets": [{"name": "pull"}],
        "replicas": 2,
        "sessionStorage": {"provider": "redis", "address": "redis:6379", "passwordRef": key},
        "config": {"operational": {"logLevel": "debug"}, "allowRunAsWorkflow": true, "compositeTools": [workflow]},
        "incomingAuth": {"type": "oidc", "oidcConfigRef": {
            "name": "idp", "audience": "https://mcp.example", "resourceUrl": "https://mcp.example",
        }},
        "authServerConfig": {
            "issuer": "https://as.example",
            "signingKeySecretRefs": [key],
            "hmacSecretRefs": [key],
            "upstreamProviders": [{"name": "corp", "type": "oidc", "oidcConfig": {
                "issuerUrl": "https://idp.example", "clientId": "c", "clientSecretRef": key,
            }}],
            "storage": {"type": "redis", "redis": {
                "sentinelConfig": {"masterName": "m", "sentinelAddrs": ["sentinel:26379"]},
                "aclUserConfig": {"passwordSecretRef": key},
                "tls": {"caCertSecretRef": key},
                "sentinelTls": {"caCertSecretRef": key},
            }},
        },
        "podTemplateSpec": pod_template("vmcp"),
    });
    let drifts = try_children_of(fixture, virtual_server(), spec, &of_a_virtual_server()).await;
    assert!(drifts > 200, "only {drifts} drifts could be made");
}

#[tokio::test]
async fn each_field_of_an_embedding_servers_children_is_restored_alone_by_one_write() {
    let fixture = restoring().await;
    secret(&fixture, "s", &["k"]).await;
    let metadata = |name: &str| json!({"annotations": {name: "1"}, "labels": {name: "2"}});
    let mut stateful_set = metadata("set");
    stateful_set["podTemplateMetadataOverrides"] = metadata("pods");
    let spec = json!({
        "args": ["--json-output"],
        "env": [{"name": "RUST_LOG", "value": "debug"}],
        "hfTokenSecretRef": {"name": "s", "key": "k"},
        "resources": {"limits": {"cpu": "0.5"}, "requests": {"memory": "64Mi"}},
        "modelCache": {"storageClassName": "fast"},
        "resourceOverrides": {
            "statefulSet": stateful_set, "service": metadata("service"), "persistentVolumeClaim": metadata("claim"),
        },
        "podTemplateSpec": pod_template("embedding"),
    });
    let drifts = try_children_of(fixture, embedding_server(), spec, &of_an_embedding_server()).await;
    assert!(drifts > 90, "only {drifts} drifts could be made");
}

#[tokio::test]
async fn each_field_of_a_registrys_children_is_restored_alone_by_one_write() {
    let fixture = restoring().await;
    secret(&fixture, "s", &["k"]).await;
    let spec = json!({
        "configYAML": "registryName: reg\n",
        "displayName": "A registry",
        "imagePullSecrets": [{"name": "pull"}],
        "pgpassSecretRef": {"name": "s", "key": "k"},
        "volumes": [{"name": "data", "configMap": {"name": "data", "items": [{"key": "a", "path": "b"}]}}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "podTemplateSpec": pod_template("registry-api"),
    });
    let drifts = try_children_of(fixture, registry(), spec, &of_a_registry()).await;
    assert!(drifts > 150, "only {drifts} drifts could be made");
}

#[tokio::test]
async fn each_field_of_their_status_is_restored_alone_by_one_write() {
    let fixture = restoring().await;
    // Each refers to missing objects, so that it has many conditions.
    let front = json!({
        "groupRef": {"name": "absent"}, "telemetryConfigRef": {"name": "absent"}, "replicas": 2,
        "incomingAuth": {"type": "oidc", "oidcConfigRef": {"name": "absent", "audience": "a"}},
        "config": {"compositeToolRefs": [{"name": "absent"}]},
    });
    let secret = json!({"name": "absent", "key": "k"});
    let template = json!({"spec": {"priorityClassName": "high"}});
    let emb = json!({"hfTokenSecretRef": secret, "podTemplateSpec": template});
    let reg = json!({"configYAML": "a: 1\n", "pgpassSecretRef": secret, "podTemplateSpec": template});
    for (owner, spec, least) in
        [(virtual_server(), front, 30), (embedding_server(), emb, 12), (registry(), reg, 12)]
    {
        fixture.create(owner.kind, owner.name, spec).await;
        fixture.settle_any(owner.kind, owner.name).await;
        let drifts = try_status(&fixture, owner).await;
        assert!(drifts > least, "{}: only {drifts} drifts could be made", owner.kind.kind);
    }
    fixture.operator.stop().await;
}
