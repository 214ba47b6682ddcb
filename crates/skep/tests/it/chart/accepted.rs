//! The objects of the chart are accepted by the API server.

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{CONSOLE, SNAPSHOTS, apply, objects, only};

#[tokio::test]
async fn every_object_is_accepted_and_no_field_is_unknown() {
    let test = skep_testkit::namespace().await;
    let here = ["skep-system", "team-a", "team-b", "5678"].map(|named| (named, test.name()));
    for snapshot in SNAPSHOTS.into_iter().chain([CONSOLE]) {
        for object in objects(snapshot, &here) {
            // A kind of the Prometheus operator, which this API server does not have.
            if object["kind"] != "ServiceMonitor" {
                apply(&test.client(), &object, PatchParams::apply("chart").dry_run()).await;
            }
        }
    }
}

/// A pod of the chart's Deployment, as its controller would create it.
fn pod(deployment: &Value) -> Pod {
    let mut spec = deployment["spec"]["template"]["spec"].clone();
    // Classes and accounts do not exist in the test's namespace.
    for other in ["priorityClassName", "serviceAccountName"] {
        spec.as_object_mut().unwrap().remove(other);
    }
    serde_json::from_value(json!({"metadata": {"name": "operator"}, "spec": spec})).unwrap()
}

#[tokio::test]
async fn its_pods_may_run_where_pod_security_is_restricted() {
    let test = skep_testkit::namespace().await;
    let restricted = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let namespaces: Api<Namespace> = Api::all(test.client());
    namespaces.patch(test.name(), &PatchParams::default(), &Patch::Merge(restricted)).await.unwrap();

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for snapshot in ["default", "autoscaled", "namespaced"] {
        let operator = pod(only(&objects(snapshot, &[]), "Deployment"));
        let response = test.api::<Pod>().create(&dry, &operator).await;
        assert!(response.is_ok(), "{snapshot}: {response:?}");
    }
    for deployment in objects(CONSOLE, &[]).iter().filter(|object| object["kind"] == "Deployment") {
        let response = test.api::<Pod>().create(&dry, &pod(deployment)).await;
        assert!(response.is_ok(), "{response:?}");
    }
    // The label of the namespace has an effect: a pod that is not restricted is rejected.
    let mut open = pod(only(&objects("default", &[]), "Deployment"));
    open.spec.as_mut().unwrap().containers[0].security_context = None;
    let error = test.api::<Pod>().create(&dry, &open).await.unwrap_err().to_string();
    assert!(error.contains("allowPrivilegeEscalation"), "{error}");
}
