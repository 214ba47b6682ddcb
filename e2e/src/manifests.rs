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

/// A server that has no pods, as what it refers to is missing.
pub(crate) fn server_without_pods(name: &str) -> Value {
    let mut server = server(name, "streamable-http");
    server["spec"]["oidcConfigRef"] = json!({"name": "absent", "audience": "many"});
    server
}

/// A server that is unusual in this respect: see `odd-server.mjs`.
pub(crate) fn odd_server(kind: &str, transport: &str) -> Value {
    let program = include_str!("../odd-server.mjs");
    let mut server = server(&format!("odd-{kind}"), transport);
    // Node.js runs a module that is its argument.
    let arguments = ["--input-type=module", "--eval", program, "--", kind];
    server["spec"]["args"] = json!(arguments);
    server["spec"]["podTemplateSpec"]["spec"]["containers"] =
        json!([{"name": "mcp", "command": ["/usr/bin/node"]}]);
    server
}

/// A proxy in front of a remote server.
pub(crate) fn remote(name: &str, url: &str) -> Value {
    json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPRemoteProxy",
        "metadata": {"name": name, "namespace": USERS},
        "spec": {"remoteUrl": url, "allowPrivateEndpoint": true},
    })
}

/// A remote server without a proxy, with a header from a Secret.
pub(crate) fn entry(name: &str, url: &str, secret: &str) -> Value {
    let header = json!({"headerName": "X-Key", "valueSecretRef": {"name": secret, "key": "key"}});
    let spec = json!({
        "remoteUrl": url, "allowPrivateEndpoint": true, "transport": "streamable-http",
        "headerForward": {"addHeadersFromSecret": [header]},
    });
    object("MCPServerEntry", name, &spec)
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

/// dex, an identity provider, whose tokens are valid for seconds, with one client and one user, Ann.
pub(crate) fn dex(issuer: &str, redirect_uri: &str) -> Vec<Value> {
    // A hash of the password `any`.
    let hash = "$2b$10$abcdefghijklmnopqrstuuT1PPBw0YhHakFQ4r5M75JM1AR6OFCXi";
    let config = json!({
        "issuer": issuer, "storage": {"type": "memory"}, "web": {"http": "0.0.0.0:5556"},
        "oauth2": {"skipApprovalScreen": true}, "expiry": {"idTokens": "5s"}, "enablePasswordDB": true,
        "staticPasswords": [{"email": "ann", "hash": hash, "username": "Ann", "userID": "1"}],
        "staticClients": [{"id": "us", "name": "skep", "public": true, "redirectURIs": [redirect_uri]}],
    });
    let container = json!({
        "name": "dex", "image": "localhost/dex:e2e", "args": ["serve", "/config/dex.yaml"],
        "ports": [{"containerPort": 5556}], "volumeMounts": [{"name": "config", "mountPath": "/config"}],
        "readinessProbe": {"tcpSocket": {"port": 5556}, "periodSeconds": 1},
    });
    let pod = json!({
        "containers": [container], "volumes": [{"name": "config", "configMap": {"name": "dex"}}],
        "terminationGracePeriodSeconds": 0,
    });
    let ports = json!({"selector": {"app": "dex"}, "ports": [{"port": 5556}]});
    vec![
        labelled("ConfigMap", "dex", json!({"data": {"dex.yaml": config.to_string()}})),
        labelled("Pod", "dex", json!({"spec": pod})),
        labelled("Service", "dex", json!({"spec": ports})),
    ]
}

/// A Secret that belongs to dex.
pub(crate) fn secret(name: &str, data: &Value) -> Value {
    labelled("Secret", name, json!({"stringData": data}))
}

/// An object of the core API with the label of dex.
fn labelled(kind: &str, name: &str, mut object: Value) -> Value {
    object["apiVersion"] = "v1".into();
    object["kind"] = kind.into();
    object["metadata"] = json!({"name": name, "namespace": USERS, "labels": {"app": "dex"}});
    object
}

/// A server whose users log in: its proxy is an authorization server as well, which stores its data in Redis.
pub(crate) fn server_with_login(name: &str, origin: &str, dex: &str, redis: &str) -> Vec<Value> {
    let mut server = server(name, "streamable-http");
    let resource = format!("{origin}/mcp");
    server["spec"]["authServerRef"] = json!({"kind": "MCPExternalAuthConfig", "name": name});
    server["spec"]["oidcConfigRef"] = json!({"name": name, "audience": resource, "resourceUrl": resource});
    let own_tokens = json!({"type": "inline", "inline": {"issuer": origin, "insecureAllowHTTP": true}});
    let key = |key: &str| json!({"name": "login", "key": key});
    let upstream = json!({
        "authorizationEndpoint": format!("{dex}/auth"), "tokenEndpoint": format!("{dex}/token"),
        "userInfo": {"endpointUrl": format!("{dex}/userinfo")}, "clientId": "us",
        "redirectUri": format!("{origin}/oauth/callback"), "scopes": ["openid", "profile", "offline_access"],
        "insecureAllowHTTP": true, "allowPrivateIPs": true,
    });
    let storage = json!({"type": "redis", "redis": {
        "addr": redis, "encryptionKeySecretRef": key("encryption"),
        "aclUserConfig": {"usernameSecretRef": key("user"), "passwordSecretRef": key("password")},
    }});
    let login = json!({"type": "embeddedAuthServer", "embeddedAuthServer": {
        "issuer": origin, "insecureAllowHTTP": true, "storage": storage,
        "signingKeySecretRefs": [key("signing")], "hmacSecretRefs": [key("hmac")],
        "upstreamProviders": [{"name": "dex", "type": "oauth2", "oauth2Config": upstream}],
    }});
    vec![server, object("MCPOIDCConfig", name, &own_tokens), object("MCPExternalAuthConfig", name, &login)]
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
