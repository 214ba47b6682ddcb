//! Patches of a proxy's own pod, with everything that the API server defaults, rewrites or drops.

use proptest::{
    prop_oneof,
    sample::subsequence,
    strategy::{BoxedStrategy, Just, Strategy},
};
use serde_json::{Value, json};
use skep_strategic_merge::merge_pod_template;

/// A patch made of some of the pieces.
pub(super) fn pod_template() -> BoxedStrategy<Value> {
    let pieces = pieces();
    let all = pieces.len();
    let merged = subsequence(pieces, 1..=all).prop_map(|pieces| {
        pieces.iter().fold(json!({}), |template, piece| merge_pod_template(template, piece).unwrap())
    });
    let odd = Just(json!({}));
    let bad = Just(json!({"spec": {"containers": "bad"}}));
    prop_oneof![12 => merged, 1 => odd, 1 => bad].boxed()
}

fn pieces() -> Vec<Value> {
    let pod = |spec: Value| json!({"spec": spec});
    let proxy = |mut container: Value| {
        container["name"] = json!("toolhive");
        json!({"spec": {"containers": [container]}})
    };
    vec![
        json!({"metadata": {"annotations": {"vault": "no", "empty": ""}, "labels": {"tier": "edge"}}}),
        proxy(json!({"env": variables()})),
        proxy(
            json!({"envFrom": [{"configMapRef": {"name": "more"}}, {"prefix": "P_", "secretRef": {"name": "s", "optional": false}}]}),
        ),
        proxy(
            json!({"ports": [{"containerPort": 9090}, {"name": "dns", "containerPort": 53, "protocol": "UDP", "hostPort": 0}]}),
        ),
        proxy(
            json!({"resources": {"limits": {"cpu": 1.5, "memory": "0.5Gi"}, "requests": {"cpu": "1000m", "memory": "1e6"}}}),
        ),
        proxy(
            json!({"securityContext": {"privileged": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": false}}),
        ),
        proxy(
            json!({"stdin": false, "tty": false, "workingDir": "", "terminationMessagePolicy": "FallbackToLogsOnError"}),
        ),
        proxy(
            json!({"readinessProbe": {"initialDelaySeconds": 0, "httpGet": {"httpHeaders": [{"name": "X", "value": ""}]}}}),
        ),
        proxy(json!({"lifecycle": {"preStop": {"httpGet": {"port": 8080, "path": ""}}}})),
        pod(json!({"containers": [sidecar()]})),
        pod(
            json!({"initContainers": [{"name": "wait", "image": "busybox", "command": ["true"], "env": variables(), "restartPolicy": "Always"}]}),
        ),
        pod(json!({"volumes": volumes(), "containers": [{"name": "toolhive", "volumeMounts": mounts()}]})),
        pod(
            json!({"tolerations": [{"key": "k", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}]}),
        ),
        pod(json!({"affinity": affinity()})),
        pod(
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": ""}}}]}),
        ),
        pod(
            json!({"securityContext": {"fsGroup": 0, "sysctls": [{"name": "net.a", "value": "1"}], "supplementalGroups": []}}),
        ),
        pod(
            json!({"hostNetwork": false, "hostPID": false, "shareProcessNamespace": false, "automountServiceAccountToken": false}),
        ),
        pod(
            json!({"terminationGracePeriodSeconds": 0, "enableServiceLinks": true, "priorityClassName": "", "nodeSelector": {"disk": ""}}),
        ),
        pod(
            json!({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}], "dnsConfig": {"options": [{"name": "ndots", "value": "1"}, {"name": "rotate"}]}}),
        ),
        pod(
            json!({"readinessGates": [{"conditionType": "a.example/b"}], "runtimeClassName": "gvisor", "overhead": {"cpu": "0.25", "memory": "1024Ki"}}),
        ),
        pod(json!({"serviceAccount": "alias"})),
        pod(json!({"imagePullSecrets": [{"name": "three"}], "dnsPolicy": "Default"})),
    ]
}

fn variables() -> Value {
    json!([
        {"name": "EMPTY", "value": ""},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024Ki"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": false}}},
        {"name": "CONFIG", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    ])
}

fn sidecar() -> Value {
    json!({
        "name": "log", "image": "registry.example/log:1", "args": [],
        "env": variables(),
        "ports": [{"containerPort": 24224}],
        "resources": {"limits": {"cpu": 1, "ephemeral-storage": "1024Mi"}},
        "livenessProbe": {"tcpSocket": {"port": 24224}, "periodSeconds": 0, "timeoutSeconds": 1},
        "startupProbe": {"grpc": {"port": 24224}, "failureThreshold": 3},
    })
}

fn volumes() -> Value {
    let fields = json!([
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "toolhive", "resource": "limits.cpu"}, "mode": 0},
    ]);
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "0.5Gi"}}}});
    json!([
        {"name": "tmp", "emptyDir": {"sizeLimit": "0.5Gi"}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "about", "downwardAPI": {"items": fields}},
        {"name": "token", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "audience": "vault"}},
            {"downwardAPI": {"items": fields}},
            {"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}], "optional": false}},
            {"secret": {"name": "s"}},
        ]}},
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "secret", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p", "mode": 256}]}},
        {"name": "host", "hostPath": {"path": "/var/log", "type": ""}},
        {"name": "claimed", "ephemeral": {"volumeClaimTemplate": claim}},
        {"name": "csi", "csi": {"driver": "csi.example", "readOnly": false, "volumeAttributes": {"a": ""}}},
    ])
}

fn mounts() -> Value {
    json!([
        {"name": "tmp", "mountPath": "/tmp", "readOnly": false},
        {"name": "token", "mountPath": "/var/run/vault", "readOnly": true, "subPath": ""},
    ])
}

fn affinity() -> Value {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}});
    json!({
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
        ]}},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": term},
        ]},
    })
}
