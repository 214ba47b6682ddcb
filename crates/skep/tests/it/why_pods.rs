//! `skep explain --why-pods`, on a real API server. There is no controller of Deployments: the test creates its ReplicaSets.

use std::process::{Command, Output};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Event, Pod},
};
use kube::{
    Resource, ResourceExt,
    api::{Api, Patch, PatchParams},
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPServer};
use skep_testkit::Namespace;

fn skep(test: &Namespace, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_skep"))
        .env_clear()
        .env("KUBECONFIG", test.admin("kubectl").kubeconfig_file())
        .args(args)
        .output()
        .unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

async fn apply<K>(test: &Namespace, manager: &str, name: &str, spec: Value)
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let object = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name}, "spec": spec,
    });
    let params = PatchParams::apply(manager).force();
    test.api::<K>().patch(name, &params, &Patch::Apply(object)).await.unwrap();
}

fn template(annotations: &Value, image: &str, secret: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "fetch"}, "annotations": annotations},
        "spec": {"containers": [
            {"name": "toolhive", "image": image, "env": [{"name": "TOKEN", "value": secret}]},
        ]},
    })
}

/// A ReplicaSet, as the controller creates one for each template.
async fn revision(test: &Namespace, deployment: &Deployment, number: u32, template: Value) -> ReplicaSet {
    let set: ReplicaSet = serde_json::from_value(json!({
        "metadata": {
            "name": format!("fetch-{number}"),
            "annotations": {"deployment.kubernetes.io/revision": number.to_string()},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "fetch", "uid": deployment.uid()}],
        },
        "spec": {"selector": {"matchLabels": {"app": "fetch"}}, "template": template},
    }))
    .unwrap();
    test.create_object(&set).await;
    test.api::<ReplicaSet>().get(&format!("fetch-{number}")).await.unwrap()
}

/// A pod whose container was killed, and an event about it.
async fn killed_pod(test: &Namespace, set: &ReplicaSet) {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "fetch-4-x",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "fetch-4", "uid": set.uid()}],
        },
        "spec": {"containers": [{"name": "toolhive", "image": "p:2"}]},
    }))
    .unwrap();
    test.create_object(&pod).await;
    let pods: Api<Pod> = test.api();
    let ended = json!({"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2030-01-02T03:04:05Z"});
    let container = json!({
        "name": "toolhive", "ready": true, "restartCount": 2, "image": "x", "imageID": "",
        "state": {}, "lastState": {"terminated": ended},
    });
    let status = Patch::Merge(json!({"status": {"containerStatuses": [container]}}));
    let pod = pods.patch_status("fetch-4-x", &PatchParams::default(), &status).await.unwrap();
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "fetch-4-x.1"}, "type": "Warning", "reason": "BackOff", "message": "back-off\u{1b}[31m",
        "involvedObject": {"kind": "Pod", "namespace": test.name(), "name": "fetch-4-x", "uid": pod.uid()},
        "lastTimestamp": "2030-01-02T03:05:05Z",
    }))
    .unwrap();
    test.create_object(&event).await;
}

#[tokio::test]
async fn each_revision_is_explained_by_what_changed_and_who_wrote_it() {
    let test = skep_testkit::namespace().await;
    let oidc = |audience: &str| json!({"type": "inline", "inline": {"issuer": "https://login.example", "clientId": audience}});
    apply::<MCPOIDCConfig>(&test, "carol", "login", oidc("a")).await;
    let reference = json!({"name": "login", "audience": "mcp"});
    apply::<MCPServer>(&test, "alice", "fetch", json!({"image": "fetch:1", "oidcConfigRef": reference}))
        .await;
    let generation = "toolhive.stacklok.dev/mcpserver-generation";
    let checksum = "toolhive.stacklok.dev/runconfig-checksum";
    let first = template(&json!({generation: "1", checksum: "a"}), "p:1", "secret-1");
    let spec = json!({"selector": {"matchLabels": {"app": "fetch"}}, "template": first});
    apply::<Deployment>(&test, "skep-mcpserver", "fetch", spec).await;
    let deployment = test.api::<Deployment>().get("fetch").await.unwrap();
    revision(&test, &deployment, 1, first).await;
    // A user changes the spec.
    apply::<MCPServer>(&test, "bob", "fetch", json!({"image": "fetch:2"})).await;
    let second = template(&json!({generation: "2", checksum: "b"}), "p:1", "secret-2");
    revision(&test, &deployment, 2, second).await;
    // Another changes what it refers to.
    apply::<MCPOIDCConfig>(&test, "carol", "login", oidc("b")).await;
    let third = template(&json!({generation: "2", checksum: "c"}), "p:1", "secret-2");
    revision(&test, &deployment, 3, third).await;
    // The operator has another version, and a person restarts the pods.
    let restarted =
        json!({generation: "2", checksum: "c", "kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:00Z"});
    let last = revision(&test, &deployment, 4, template(&restarted, "p:2", "secret-2")).await;
    killed_pod(&test, &last).await;

    let args = ["explain", "--why-pods", "fetch", "-n", test.name(), "-o", "json"];
    let (code, text, error) = skep(&test, &args);
    assert_eq!(code, Some(0), "{error}");
    let json: Value = serde_json::from_str(&text).unwrap();
    let revisions = json["workloads"][0]["revisions"].as_array().unwrap();
    let numbers: Vec<_> = revisions.iter().map(|revision| &revision["revision"]).collect();
    assert_eq!(numbers, [4, 3, 2, 1], "{text}");
    let reasons = |place: usize| {
        let causes = revisions[place]["causes"].as_array().unwrap().iter();
        causes.map(|cause| cause["reason"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let writer = |place: usize, manager: &str| {
        let causes = revisions[place]["causes"].as_array().unwrap().iter();
        let mut writers = causes.flat_map(|cause| cause["writers"].as_array().unwrap());
        writers.find(|writer| writer["manager"] == manager).cloned()
    };
    assert_eq!(
        reasons(0),
        ["kubectl rollout restart at 2030-01-01T00:00:00Z", "the image changed: p:1 to p:2"]
    );
    assert_eq!(reasons(1), ["the configuration of the proxy changed"]);
    let carol = writer(1, "carol").unwrap();
    assert_eq!(carol["object"], "MCPOIDCConfig login");
    assert!(carol["fields"].as_array().unwrap().contains(&json!("spec.inline.clientId")), "{carol}");
    assert_eq!(reasons(2)[0], "the spec of the MCPServer changed: generation 1 to 2");
    assert_eq!(writer(2, "bob").unwrap()["fields"], json!(["spec.image"]));
    assert_eq!(reasons(3), ["the Deployment was created"]);
    assert_eq!((&revisions[0]["isCurrent"], &revisions[1]["isCurrent"]), (&json!(true), &json!(false)));
    assert_eq!(
        json["restarts"][0],
        json!({
            "pod": "fetch-4-x", "container": "toolhive", "count": 2, "reason": "OOMKilled", "exitCode": 137,
            "time": "2030-01-02T03:04:05Z", "message": "",
        })
    );
    assert!(!text.contains("secret-"), "{text}");

    let (code, text, _) = skep(&test, &["kubectl", "-n", test.name(), "explain", "fetch", "--why-pods"]);
    assert_eq!(code, Some(0));
    for line in [
        "  revision 4, current, ",
        "    the spec of the MCPServer changed: generation 1 to 2\n",
        "      spec.containers[toolhive].env[TOKEN].value: (not shown) -> (not shown)\n",
        "Pod fetch-4-x: the container toolhive restarted 2 times, last at 2030-01-02T03:04:05Z: OOMKilled, exit code 137 (it used more memory than its limit)\n",
        "2030-01-02T03:05:05Z Pod fetch-4-x: BackOff: back-off\u{fffd}[31m\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[tokio::test]
async fn a_server_without_pods_and_one_that_does_not_exist_are_not_confused() {
    let test = skep_testkit::namespace().await;
    apply::<MCPServer>(&test, "alice", "fetch", json!({"image": "fetch:1"})).await;
    let (code, text, _) = skep(&test, &["explain", "--why-pods", "fetch", "-n", test.name()]);
    let expected = format!("MCPServer {}/fetch\nit has no pods, and none are known\n", test.name());
    assert_eq!((code, text), (Some(0), expected));
    let (code, _, error) = skep(&test, &["explain", "--why-pods", "other", "-n", test.name()]);
    assert!(code == Some(1) && error.contains("there is no MCP server other"), "{error}");
    let (code, _, error) = skep(&test, &["explain", "--why-pods", "fetch", "--tool", "echo"]);
    assert!(code == Some(2) && error.contains("cannot be used with"), "{error}");
}
