//! Detection of the platform, with the permissions of a proxy.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, api::PostParams};
use serde_json::json;
use skep_proxy::runtime::kubernetes::Platform;
use skep_testkit::ControlPlane;
use tokio::time::{sleep, timeout};

use super::fixture::{Fixture, PATIENCE};

#[tokio::test]
async fn a_cluster_without_routes_is_not_openshift_unless_the_environment_sets_it() {
    let fixture = Fixture::new().await;
    let client = fixture.proxy.client();
    let recording = fixture.proxy.record();
    let env = BTreeMap::from([("OPERATOR_OPENSHIFT".to_owned(), "True".to_owned())]);
    assert_eq!(Platform::of(&client, &env).await.unwrap(), Platform::OpenShift);
    assert_eq!(recording.requests().await, []);
    assert_eq!(Platform::of(&client, &BTreeMap::new()).await.unwrap(), Platform::Kubernetes);
}

#[tokio::test]
async fn a_cluster_with_routes_is_an_openshift() {
    let plane = ControlPlane::start().await;
    let routes: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "routes.route.openshift.io"},
        "spec": {
            "group": "route.openshift.io", "scope": "Namespaced",
            "names": {"plural": "routes", "kind": "Route"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    }))
    .unwrap();
    Api::all(plane.admin().client()).create(&PostParams::default(), &routes).await.unwrap();
    let client = plane.namespace().await.user("proxy").client();
    let detected = async {
        while Platform::of(&client, &BTreeMap::new()).await.unwrap() != Platform::OpenShift {
            sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, detected).await.unwrap();
}
