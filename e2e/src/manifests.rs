//! What a user applies.

use serde_json::{Value, json};
use skep_operator::permissions;

/// Where the operator runs.
pub(crate) const SYSTEM: &str = "skep-system";
/// Where the servers run.
pub(crate) const USERS: &str = "default";
/// The image of the reference server.
pub(crate) const EVERYTHING: &str = "localhost/server-everything:e2e";

/// The operator and what it is allowed.
pub(crate) fn operator() -> Vec<Value> {
    let name = json!({"name": "skep"});
    let here = json!({"name": "skep", "namespace": SYSTEM});
    let who = json!([{"kind": "ServiceAccount", "name": "skep", "namespace": SYSTEM}]);
    let role = |kind| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "skep"});
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": name, "rules": permissions::rules()}),
        json!({
            "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": name,
            "roleRef": role("ClusterRole"), "subjects": who,
        }),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": here, "rules": permissions::election_rules()}),
        json!({
            "apiVersion": rbac, "kind": "RoleBinding", "metadata": here, "roleRef": role("Role"), "subjects": who,
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": here,
            "spec": {
                "selector": {"matchLabels": {"app": "skep"}},
                "template": {"metadata": {"labels": {"app": "skep"}}, "spec": operator_pod()},
            },
        }),
    ]
}

fn operator_pod() -> Value {
    json!({
        "serviceAccountName": "skep",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "operator",
            // The name that the operator gives to proxies unless it is told another.
            "image": skep_operator::settings::DEFAULT_PROXY_IMAGE,
            "args": ["operator", "--leader-elect"],
            "env": [
                {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "SKEP_QUICK_PROXIES", "value": "true"},
            ],
            "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}],
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 1},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
        }],
    })
}

/// A pod that does nothing.
pub(crate) fn empty_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "empty", "namespace": USERS},
        "spec": {"containers": [{"name": "empty", "image": "localhost/pause:e2e"}], "terminationGracePeriodSeconds": 0},
    })
}

/// The reference server behind a proxy. Its first argument says how it is spoken to.
pub(crate) fn server(name: &str, transport: &str) -> Value {
    let way = if transport == "streamable-http" { "streamableHttp" } else { transport };
    // As the first process of a container, it does not end when it is asked to: nobody waits for that.
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

/// A proxy before a server that somebody else runs.
pub(crate) fn remote(name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPRemoteProxy",
        "metadata": {"name": name, "namespace": USERS},
        "spec": {"remoteUrl": url, "allowPrivateEndpoint": true},
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

/// An autoscaler of a proxy. Nothing here measures load, so that it keeps to the least.
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
