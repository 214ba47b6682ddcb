//! The objects of a RunConfig, and that an API server accepts them.

use std::error::Error;

use serde_json::{Value, json};
use skep_config::{RunConfig, annotations};
use skep_proxy::runtime::kubernetes::{Kubernetes, Platform, RuntimeError, services, stateful_set};

use super::fixture::{Fixture, config};

fn template(config: &RunConfig, platform: Platform) -> Value {
    json!(stateful_set(config, platform).unwrap().spec.unwrap().template)
}

/// A RunConfig with this patch.
fn patched(patch: Value, changes: Value) -> RunConfig {
    let mut config = config(changes);
    config.k8s_pod_template_patch = patch.to_string();
    config
}

#[test]
fn a_server_without_a_patch_is_all_defaults() {
    let changes = json!({
        "transport": "stdio", "mcpserver_generation": 7, "cmd_args": ["-v"], "env_vars": {"B": "2", "A": "1"},
        "scaling_config": {"backend_replicas": 2},
    });
    let labels = json!({"app": "files", "toolhive": "true", "toolhive-name": "files"});
    let expected = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "files", "labels": labels},
        "spec": {
            "replicas": 2, "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "files"}},
            "serviceName": "files",
            "template": {
                "metadata": {"annotations": {annotations::MCPSERVER_GENERATION: "7"}, "labels": labels},
                "spec": {
                    "containers": [{
                        "name": "mcp", "image": "files:1", "args": ["-v"], "stdin": true, "tty": false,
                        "env": [
                            {"name": "A", "value": "1"},
                            {"name": "B", "value": "2"},
                            {"name": "MCP_TRANSPORT", "value": "stdio"},
                        ],
                        "securityContext": {
                            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                            "privileged": false, "readOnlyRootFilesystem": true, "runAsGroup": 1000,
                            "runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"},
                        },
                    }],
                    "restartPolicy": "Always",
                    "securityContext": {
                        "fsGroup": 1000, "runAsGroup": 1000, "runAsNonRoot": true, "runAsUser": 1000,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                },
            },
        },
    });
    let stdio = config(changes);
    similar_asserts::assert_eq!(json!(stateful_set(&stdio, Platform::Kubernetes).unwrap()), expected);
    assert_eq!(services(&stdio).unwrap(), []);
}

#[test]
fn a_patch_sets_other_fields_and_those_that_the_server_needs_override_it() {
    let patch = json!({
        "metadata": {"name": "ignored", "labels": {"app": "mine", "tier": "gold"}, "annotations": {"a": "b"}},
        "spec": {
            "restartPolicy": "OnFailure",
            "securityContext": {"runAsUser": 7},
            "containers": [
                {"name": "side", "image": "side:1", "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}]},
                {
                    "name": "mcp", "image": "mine:1", "command": ["run"], "args": ["-a"], "stdin": true, "tty": true,
                    "securityContext": {"readOnlyRootFilesystem": false, "capabilities": {"add": ["NET_BIND_SERVICE"]}},
                },
            ],
        },
    });
    let template = template(&patched(patch, json!({"cmd_args": ["-b"]})), Platform::Kubernetes);
    assert_eq!(
        template["metadata"],
        json!({
            "labels": {"app": "files", "tier": "gold", "toolhive": "true", "toolhive-name": "files"},
            "annotations": {"a": "b"},
        })
    );
    let spec = &template["spec"];
    assert_eq!(spec["restartPolicy"], "OnFailure");
    assert_eq!(spec["securityContext"]["runAsUser"], 7);
    assert_eq!(spec["securityContext"]["fsGroup"], 1000);
    assert_eq!(spec["containers"][0]["env"], json!([{"name": "X", "value": "2"}]));
    assert_eq!(spec["containers"][0].get("securityContext"), None);
    let mcp = &spec["containers"][1];
    assert_eq!(mcp["image"], "files:1");
    assert_eq!(mcp["command"], json!(["run"]));
    assert_eq!(mcp["args"], json!(["-a", "-b"]));
    assert_eq!((&mcp["stdin"], &mcp["tty"]), (&json!(false), &json!(false)));
    assert_eq!(mcp["securityContext"]["readOnlyRootFilesystem"], false);
    assert_eq!(mcp["securityContext"]["capabilities"], json!({"add": ["NET_BIND_SERVICE"]}));
    assert_eq!(mcp["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn without_a_container_of_its_name_in_the_patch_the_server_comes_last() {
    let patch = json!({"spec": {"containers": [{"name": "side", "image": "side:1"}]}});
    let template = template(&patched(patch, json!({})), Platform::Kubernetes);
    let names: Vec<&Value> = template["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|container| &container["name"])
        .collect();
    assert_eq!(names, ["side", "mcp"]);
}

#[test]
fn openshift_chooses_all_ids_itself() {
    let ids = json!({"runAsUser": 7, "runAsGroup": 7, "fsGroup": 7});
    let patch = json!({"spec": {
        "securityContext": ids,
        "containers": [{"name": "mcp", "securityContext": {"runAsUser": 7, "runAsGroup": 7}}],
    }});
    let spec = &template(&patched(patch, json!({})), Platform::OpenShift)["spec"];
    assert_eq!(
        spec["securityContext"],
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
    );
    assert_eq!(
        spec["containers"][0]["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "privileged": false,
            "readOnlyRootFilesystem": true, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
        })
    );
}

#[tokio::test]
async fn a_variable_of_the_run_config_overrides_the_patch_s() {
    let variables = json!([
        {"name": "TOKEN", "value": "first"},
        {"name": "KEPT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "MCP_PORT", "value": "1"},
        {"name": "TOKEN", "value": "second"},
    ]);
    let patch = json!({"spec": {"containers": [{"name": "mcp", "env": variables}]}});
    let fixture = Fixture::new().await;
    fixture.run(&patched(patch, json!({"env_vars": {"TOKEN": "ours"}}))).await;
    let live = json!(fixture.stateful_set().await.spec.unwrap().template.spec.unwrap().containers[0].env);
    assert_eq!(
        live,
        json!([
            {"name": "KEPT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "FASTMCP_PORT", "value": "8080"},
            {"name": "MCP_HOST"},
            {"name": "MCP_PORT", "value": "8080"},
            {"name": "MCP_TRANSPORT", "value": "streamable-http"},
            {"name": "TOKEN", "value": "ours"},
        ])
    );
}

#[tokio::test]
async fn a_port_that_the_patch_declares_is_not_duplicated() {
    let patch =
        json!({"spec": {"containers": [{"name": "mcp", "ports": [{"name": "web", "containerPort": 8080}]}]}});
    let fixture = Fixture::new().await;
    fixture.run(&patched(patch, json!({"transport": "sse", "publish": ["1:9090"]}))).await;
    let live = json!(fixture.stateful_set().await.spec.unwrap().template.spec.unwrap().containers[0].ports);
    assert_eq!(
        live,
        json!([
            {"name": "web", "containerPort": 8080, "protocol": "TCP"}, {"containerPort": 9090, "protocol": "TCP"},
        ])
    );
}

#[tokio::test]
async fn a_port_is_opened_on_nodes_if_it_is_published_there_and_only_then() {
    let fixture = Fixture::new().await;
    fixture.run(&config(json!({"target_port": 31111}))).await;
    assert_eq!(fixture.service("mcp-files").await.spec.unwrap().type_.unwrap(), "ClusterIP");
    // Services of other tests, on the same API server, get ports that it chooses: it reserves the lowest of the range for
    // explicit requests.
    fixture.run(&config(json!({"target_port": 31111, "publish": ["30042:9090"]}))).await;
    let backend = fixture.service("mcp-files").await.spec.unwrap();
    assert_eq!(backend.type_.unwrap(), "NodePort");
    let ports = backend.ports.unwrap();
    assert_eq!((ports[0].port, ports[0].node_port), (9090, Some(30042)));
    let headless = fixture.service("mcp-files-headless").await.spec.unwrap();
    assert_eq!(headless.type_.unwrap(), "ClusterIP");
    assert!(headless.ports.unwrap().iter().all(|port| port.node_port.is_none()));
}

#[tokio::test]
async fn the_services_are_owned_by_the_stateful_set() {
    for (platform, holds_back) in [(Platform::Kubernetes, true), (Platform::OpenShift, false)] {
        let fixture = Fixture::new().await;
        let cluster = Kubernetes::new(fixture.proxy.client(), fixture.test.name(), platform);
        let server = cluster.run(&config(json!({}))).await.unwrap();
        for name in ["mcp-files", "mcp-files-headless"] {
            let owners = fixture.service(name).await.metadata.owner_references;
            assert_eq!(
                json!(owners),
                json!([{
                    "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "files", "controller": true,
                    "blockOwnerDeletion": holds_back, "uid": server.stateful_set().metadata.uid,
                }])
            );
        }
        assert_eq!(server.stateful_set().metadata.owner_references, None);
    }
}

#[test]
fn an_error_names_the_field_and_shows_no_value() {
    let fault = |patch: &str| {
        let mut config = config(json!({}));
        config.k8s_pod_template_patch = patch.into();
        stateful_set(&config, Platform::Kubernetes).unwrap_err().to_string()
    };
    assert_eq!(fault("{\n{"), "k8s_pod_template_patch: not JSON (line 2, column 1)");
    assert_eq!(fault("[]"), "k8s_pod_template_patch: not a JSON object");
    let hidden = r#"{"spec": {"containers": [{"name": "mcp", "env": "hunter2"}]}}"#;
    assert_eq!(
        fault(hidden),
        "k8s_pod_template_patch: spec.containers[0].env is not of the type that a pod template has there"
    );
    let nameless = RunConfig::default();
    let error = stateful_set(&nameless, Platform::Kubernetes).unwrap_err();
    assert_eq!(error.to_string(), "container_name: the server has no name");
}

#[tokio::test]
async fn an_object_that_the_api_server_rejects_is_an_error_that_names_it() {
    let fixture = Fixture::new().await;
    let config = config(json!({"image": ""}));
    let recording = fixture.proxy.record();
    let error = fixture.kubernetes().run(&config).await.err().unwrap();
    assert!(matches!(error, RuntimeError::Request { .. }), "{error}");
    let expected = "cannot apply StatefulSet files: StatefulSet.apps \"files\" is invalid: \
                    spec.template.spec.containers[0].image: Required value";
    assert_eq!(error.to_string(), expected);
    assert!(
        error.source().is_none(),
        "the command line prints an error with its sources, and would repeat it"
    );
    assert_eq!(recording.writes().await, ["patch statefulsets files"]);
}
