//! OpenShift is detected by its API, unless the installation sets the platform.

use skep_operator::resources::Deployments;
use std::collections::BTreeMap;

use http::Request;
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_converge::Kind;
use skep_operator::{
    plan::plan,
    settings::{Platform, Settings},
};
use skep_testkit::{ControlPlane, Namespace, fixtures::TestServer, until};
use skep_world::Watched;

use crate::fixture::Fixture;

/// Has the API server serve what OpenShift serves.
async fn serve_routes(test: &Namespace) {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "routes.route.openshift.io"},
        "spec": {
            "group": "route.openshift.io", "scope": "Namespaced",
            "names": {"plural": "routes", "singular": "route", "kind": "Route", "listKind": "RouteList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let request = Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
    let request = request.body(definition.to_string().into_bytes()).unwrap();
    test.client().request::<Value>(request).await.unwrap();
    let is_served = async || test.client().list_api_group_resources("route.openshift.io/v1").await.is_ok();
    until("routes are served", is_served).await;
}

/// The user of the pods of a server's proxy.
async fn user_of_pods(fixture: &Fixture, name: &str) -> Option<i64> {
    let template = fixture.deployment(name).await.spec.unwrap().template;
    template.spec.unwrap().security_context.unwrap().run_as_user
}

#[tokio::test]
async fn user_ids_are_left_to_a_cluster_that_serves_routes() {
    let plane = ControlPlane::start().await;
    let fixture = Fixture::on(plane.namespace().await, Settings::default()).await;
    fixture.settled(&MCPServer::test("fetch")).await;
    assert_eq!(user_of_pods(&fixture, "fetch").await, Some(1000), "it is no OpenShift yet");

    serve_routes(&fixture.test).await;
    let fixture = fixture.stopped().await;
    let planned = planned(&fixture, Settings::default()).await;
    assert_eq!(planned, [Deployments::kind()], "a plan detects it as well");
    let reported = Settings { platform: Some(Platform::Kubernetes), ..Settings::default() };
    assert_eq!(
        self::planned(&fixture, reported).await,
        [] as [Kind; 0],
        "the setting overrides the detection"
    );

    let fixture = fixture.restart().await;
    fixture.until_any(Deployments::kind(), "fetch", "without a user", has_no_user).await;
    fixture.operator.stop().await;
}

fn has_no_user(deployment: &Value) -> bool {
    let pod = &deployment["spec"]["template"]["spec"];
    pod["securityContext"]["runAsUser"].is_null()
        && pod["containers"][0]["securityContext"]["runAsUser"].is_null()
}

/// The kinds of what would be written.
async fn planned(fixture: &Fixture, settings: Settings) -> Vec<Kind> {
    let plans = plan(fixture.user.config(), &[fixture.test.name().into()], settings, |_| true).await.unwrap();
    plans.objects.into_iter().flat_map(|(_, plan)| plan.unwrap().writes).map(|planned| planned.kind).collect()
}

#[test]
fn an_existing_variable_decides() {
    let reported = |value: &str| {
        Settings::from_env(&BTreeMap::from([("OPERATOR_OPENSHIFT".into(), value.into())])).platform
    };
    assert_eq!(Settings::from_env(&BTreeMap::new()).platform, None);
    assert_eq!(["true", "TRUE"].map(reported), [Some(Platform::OpenShift); 2]);
    assert_eq!(["false", "1", ""].map(reported), [Some(Platform::Kubernetes); 3]);
}
