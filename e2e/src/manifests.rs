//! The manifests that a user applies.

use serde_json::{Value, json};

/// Where the operator runs.
pub(crate) const SYSTEM: &str = "skep-system";
/// Where the servers run.
pub(crate) const USERS: &str = "default";
/// The image of the reference server.
pub(crate) const EVERYTHING: &str = "localhost/server-everything:e2e";

/// A pod that does nothing.
pub(crate) fn empty_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "empty", "namespace": USERS},
        "spec": {"containers": [{"name": "empty", "image": "localhost/pause:e2e"}], "terminationGracePeriodSeconds": 0},
    })
}

/// The reference server behind a proxy. Its first argument is the transport.
pub(crate) fn server(name: &str, transport: &str) -> Value {
    let way = if transport == "streamable-http" { "streamableHttp" } else { transport };
    // As the first process of a container, it ignores SIGTERM, so the grace period is short.
    let pod = json!({"spec": {"terminationGracePeriodSeconds": 1}});
    let mut spec =
        json!({"image": EVERYTHING, "transport": transport, "args": [way], "podTemplateSpec": pod});
    if transport != "stdio" {
        spec["mcpPort"] = 3001.into();
        spec["env"] = json!([{"name": "PORT", "value": "3001"}]);
    }
    json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "metadata": {"name": name, "namespace": USERS}, "spec": spec,
    })
}

/// A proxy in front of a remote server.
pub(crate) fn remote(name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPRemoteProxy",
        "metadata": {"name": name, "namespace": USERS},
        "spec": {"remoteUrl": url, "allowPrivateEndpoint": true},
    })
}

/// A group of servers.
pub(crate) fn group(name: &str) -> Value {
    object("MCPGroup", name, &json!({}))
}

/// The object as a member of a group.
pub(crate) fn member(mut object: Value, group: &str) -> Value {
    object["spec"]["groupRef"] = json!({"name": group});
    object
}

/// A virtual server in front of a group, which notices soon what happens to its backends.
pub(crate) fn virtual_server(name: &str, group: &str) -> Value {
    let handling = json!({
        "healthCheckInterval": "5s", "healthCheckTimeout": "4s", "unhealthyThreshold": 2, "statusReportingInterval": "1s",
    });
    let aggregation =
        json!({"conflictResolution": "prefix", "conflictResolutionConfig": {"prefixFormat": "{workload}_"}});
    let spec = json!({
        "groupRef": {"name": group}, "incomingAuth": {"type": "anonymous"},
        "config": {"aggregation": aggregation, "operational": {"failureHandling": handling}},
    });
    object("VirtualMCPServer", name, &spec)
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": kind,
        "metadata": {"name": name, "namespace": USERS}, "spec": spec,
    })
}

/// The tokens of the cluster's own service accounts.
pub(crate) fn service_accounts(name: &str) -> Value {
    json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPOIDCConfig",
        "metadata": {"name": name, "namespace": USERS},
        "spec": {"type": "kubernetesServiceAccount", "kubernetesServiceAccount": {}},
    })
}

/// An autoscaler of a proxy. Nothing here measures load, so it sets the minimum.
pub(crate) fn autoscaler(name: &str, least: i32) -> Value {
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": USERS},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least, "maxReplicas": least + 1,
        },
    })
}

/// Objects as one file.
pub(crate) fn file(objects: &[Value]) -> String {
    objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}
