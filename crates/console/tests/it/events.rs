//! Events and restarts: by the owners of what they are about, and for those who may read them.

use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{Event, Pod},
};

use super::*;

/// An owner reference of a controller.
fn owned_by(api_version: &str, kind: &str, name: &str, uid: Option<String>) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}])
}

/// A pod with these owners.
async fn pod(test: &Namespace, name: &str, owners: Value) -> Pod {
    let pod = json!({
        "metadata": {"name": name, "labels": {"toolhive": "true"}, "ownerReferences": owners},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    test.create_object(&serde_json::from_value(pod).unwrap()).await
}

/// The pod of a server, with the Deployment and the ReplicaSet that it has in a cluster.
pub(crate) async fn pod_of(test: &Namespace, server: &str) -> Pod {
    let owner = test.api::<MCPServer>().get(server).await.unwrap();
    let labels = json!({"toolhive": "true"});
    let spec = json!({
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    });
    let of_server = owned_by("toolhive.stacklok.dev/v1beta1", "MCPServer", server, owner.uid());
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": server, "labels": labels, "ownerReferences": of_server}, "spec": spec,
    }))
    .unwrap();
    let deployment = test.create_object(&deployment).await;
    let of_deployment = owned_by("apps/v1", "Deployment", server, deployment.uid());
    let set: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": format!("{server}-5d9c"), "labels": labels, "ownerReferences": of_deployment}, "spec": spec,
    }))
    .unwrap();
    let set = test.create_object(&set).await;
    pod(test, &format!("{server}-5d9c-x"), owned_by("apps/v1", "ReplicaSet", &set.name_any(), set.uid()))
        .await
}

/// An event about a pod.
pub(crate) async fn event(test: &Namespace, pod: &str, uid: &str, message: &str) {
    let event: Event = serde_json::from_value(json!({
        "metadata": {"generateName": "event-"}, "type": "Warning", "reason": "BackOff", "message": message,
        "involvedObject": {"kind": "Pod", "namespace": test.name(), "name": pod, "uid": uid},
        "lastTimestamp": "2030-01-02T03:04:05Z", "count": 7,
    }))
    .unwrap();
    test.api::<Event>().create(&PostParams::default(), &event).await.unwrap();
}

async fn detail(page: &Page, test: &Namespace, name: &str) -> Value {
    serde_json::from_str(&page.get(&format!("objects/MCPServer/{}/{name}", test.name())).await.1).unwrap()
}

/// The messages of the events of pods.
async fn messages(page: &Page, test: &Namespace, name: &str) -> Vec<String> {
    let detail = detail(page, test, name).await;
    let events = detail["events"].as_array().cloned().unwrap_or_default();
    let of_pods = events.iter().filter(|event| event["object"].as_str().unwrap().starts_with("Pod "));
    of_pods.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn events_are_shown_to_those_who_may_list_them_and_to_no_others() {
    let test = skep_testkit::namespace().await;
    server(&test, "web").await;
    let address = console(&test).await;
    let page = async |name: &str, more: Vec<PolicyRule>| {
        let rights = [vec![may_get(&["mcpservers"], &[])], more].concat();
        Page::signed_in(address, &token(&test, name, rights).await).await
    };
    let reader = page("reader", vec![may("list", "", "events")]).await;
    // They may get the server and nothing else, each event by its name, and all events of a group that has none.
    let others = [
        page("viewer", Vec::new()).await,
        page("getter", vec![may("get", "", "events")]).await,
        page("elsewhere", vec![may("list", "apps", "events")]).await,
    ];
    let pod = pod_of(&test, "web").await;
    event(&test, &pod.name_any(), &pod.uid().unwrap(), "secret-of-an-event").await;
    until("it is shown", async || messages(&reader, &test, "web").await == ["secret-of-an-event"]).await;
    assert_eq!(detail(&reader, &test, "web").await["seesEvents"], true);
    for other in &others {
        let shown = detail(other, &test, "web").await;
        assert!(!shown.to_string().contains("secret-of-an-event"), "{shown}");
        assert_eq!(shown["seesEvents"], false);
        // What happened to the object itself is in its status, which they may get.
        assert_eq!(shown["events"][0]["object"], "MCPServer web", "{shown}");
    }
}

#[tokio::test]
async fn events_of_other_pods_are_not_shown_however_they_are_named_or_forged() {
    let (test, evil) = (skep_testkit::namespace().await, skep_testkit::namespace().await);
    server(&test, "web").await;
    let address = console(&test).await;
    let rights = vec![may_get(&["mcpservers"], &[]), may("list", "", "events")];
    let page = Page::signed_in(address, &token(&test, "reader", rights).await).await;
    let own = pod_of(&test, "web").await;
    let own_uid = own.uid().unwrap();
    // A pod of a database that has nothing to do with the server, in a set that is no server either.
    let of_database = owned_by("apps/v1", "StatefulSet", "web-db", Some("0b6f".into()));
    let database = pod(&test, "web-db-0", of_database).await;
    event(&test, "web-db-0", &database.uid().unwrap(), "of a database").await;
    event(&test, "web-0", "no-such-uid", "of nothing").await;
    // One who may write events elsewhere names the server's pod in them.
    event(&evil, &own.name_any(), &own_uid, "forged elsewhere").await;
    event(&test, &own.name_any(), &own_uid, "own").await;
    until("its own is shown", async || !messages(&page, &test, "web").await.is_empty()).await;
    assert_eq!(messages(&page, &test, "web").await, ["own"]);
    // Its pod is deleted, and then an event about it comes.
    let pods: Api<Pod> = test.api();
    let now = kube::api::DeleteParams::default().grace_period(0);
    pods.delete(&own.name_any(), &now).await.unwrap();
    event(&test, &own.name_any(), &own_uid, "killed").await;
    until("it is shown", async || messages(&page, &test, "web").await.contains(&"killed".into())).await;
}

#[tokio::test]
async fn why_a_container_restarted_is_shown_to_those_who_may_get_the_pod() {
    let test = skep_testkit::namespace().await;
    server(&test, "web").await;
    let address = console(&test).await;
    let page = async |name: &str, more: Vec<PolicyRule>| {
        let rights = [vec![may_get(&["mcpservers"], &[])], more].concat();
        Page::signed_in(address, &token(&test, name, rights).await).await
    };
    let operator = page("operator", vec![may("get", "", "pods")]).await;
    let viewer = page("viewer", vec![may("list", "", "events")]).await;
    let pod = pod_of(&test, "web").await;
    let ended = json!({
        "exitCode": 137, "reason": "OOMKilled", "finishedAt": "2030-01-02T03:04:05Z", "message": "loading\nlast words\n",
    });
    let container = json!({
        "name": "c", "ready": true, "restartCount": 2, "image": "i", "imageID": "", "state": {},
        "lastState": {"terminated": ended},
    });
    let status = Patch::Merge(json!({"status": {"containerStatuses": [container]}}));
    let pods: Api<Pod> = test.api();
    pods.patch_status(&pod.name_any(), &PatchParams::default(), &status).await.unwrap();
    let sentence = format!(
        "Pod {}: the container c restarted 2 times, last at 2030-01-02T03:04:05Z: OOMKilled, exit code 137 (it used more \
         memory than its limit)",
        pod.name_any()
    );
    let expected = json!([{"sentence": sentence, "lastLine": "last words"}]);
    until("it is explained", async || detail(&operator, &test, "web").await["restarts"] == expected).await;
    assert_eq!(detail(&viewer, &test, "web").await["restarts"], json!([]));
}
