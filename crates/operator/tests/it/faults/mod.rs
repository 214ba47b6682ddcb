//! Faults: whatever fails in between, the final state is the same.

mod killed;
mod storm;
mod storms;

use crate::kinds::{EmbeddingServers, OidcConfigs, Registries, RemoteProxies, Servers, VirtualServers};
use skep_operator::resources::{Secrets, StatefulSets};
use std::{collections::BTreeMap, time::Duration};

use http::Request;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use skep_api::kinds::{MCPOIDCConfig, MCPServer};
use skep_converge::Kind;
use skep_operator::settings::Settings;
use skep_testkit::{
    ControlPlane, Namespace,
    fixtures::{TestOidcConfig, TestServer},
};
use skep_world::Watched;

use crate::fixture::{Fixture, children, conditions, without_checksums};

/// All objects of a namespace, without what differs between two equal runs.
async fn end_state(test: &Namespace) -> BTreeMap<String, Value> {
    let mut state = BTreeMap::new();
    let kinds: [Kind; 7] = [
        Servers::kind(),
        RemoteProxies::kind(),
        VirtualServers::kind(),
        EmbeddingServers::kind(),
        Registries::kind(),
        StatefulSets::kind(),
        Secrets::kind(),
    ];
    for kind in kinds.into_iter().chain(children()) {
        let path = kind.path(Some(test.name()));
        let request = Request::get(path).body(Vec::new()).unwrap();
        let list: Value = test.client().request(request).await.unwrap();
        for mut object in list["items"].as_array().unwrap().clone() {
            let metadata = object["metadata"].as_object_mut().unwrap();
            for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"] {
                metadata.remove(key);
            }
            for key in ["clusterIP", "clusterIPs"] {
                object["spec"].as_object_mut().map(|spec| spec.remove(key));
            }
            // A random value.
            if let Some(data) = object["data"].as_object_mut() {
                data.remove("hmac-secret");
            }
            for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
                condition.as_object_mut().unwrap().remove("lastTransitionTime");
            }
            let name = format!("{} {}", kind.kind, object["metadata"]["name"]).replace(test.name(), "NS");
            let text = object.to_string().replace(test.name(), "NS");
            state.insert(name, serde_json::from_str(&without_checksums(&text)).unwrap());
        }
    }
    state
}

#[tokio::test]
async fn restarts_of_the_control_plane_and_dropped_watches_are_survived() {
    let mut plane = ControlPlane::start().await;
    let fixture = Fixture::on(plane.namespace().await, Settings::default()).await;
    fixture.settled(&MCPServer::test("before")).await;

    plane.api_link().drop_connections();
    plane.kill_api_server();
    plane.kill_etcd();
    plane.start_etcd();
    plane.start_api_server().await;
    fixture.settled(&MCPServer::test("after")).await;

    plane.api_link().delay(Duration::from_millis(50));
    fixture.patch("before", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture.settle("before").await;
    let pods = fixture.pod_annotations("before").await;
    assert_eq!(pods["toolhive.stacklok.dev/mcpserver-generation"], "2");
    plane.api_link().delay(Duration::ZERO);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_malformed_object_does_not_affect_others() {
    let plane = ControlPlane::start().await;
    let test = plane.namespace().await;
    // Stored before a change of the schema, which had no constraints on the spec.
    store_malformed(&test).await;
    let fixture = Fixture::on(test, Settings::default()).await;
    fixture.settled(&MCPServer::test("good")).await;
    fixture.deployment("good").await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_configuration_that_a_malformed_object_uses_is_not_deleted() {
    let plane = ControlPlane::start().await;
    let test = plane.namespace().await;
    store_malformed(&test).await;
    test.create_object(&MCPOIDCConfig::test("company")).await;
    let fixture = Fixture::on(test, Settings::default()).await;
    let is_used = |object: &DynamicObject| {
        object.data["status"]["referencingWorkloads"] == json!([{"kind": "MCPServer", "name": "malformed"}])
    };
    fixture.until_object(OidcConfigs::kind(), "company", "in use", is_used).await;
    fixture.delete(OidcConfigs::kind(), "company").await;
    let is_held = |object: &DynamicObject| conditions(object).contains_key("DeletionBlocked");
    fixture.until_object(OidcConfigs::kind(), "company", "held", is_held).await;
    fixture.settle_any(OidcConfigs::kind(), "company").await;
    fixture.delete(Servers::kind(), "malformed").await;
    fixture.until_any(OidcConfigs::kind(), "company", "deleted", Value::is_null).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_malformed_object_can_be_deleted() {
    let plane = ControlPlane::start().await;
    let test = plane.namespace().await;
    store_malformed(&test).await;
    let fixture = Fixture::on(test, Settings::default()).await;
    fixture.delete(Servers::kind(), "malformed").await;
    fixture.until_any(Servers::kind(), "malformed", "deleted", Value::is_null).await;
    fixture.operator.stop().await;
}

async fn store_malformed(test: &Namespace) {
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/mcpservers.toolhive.stacklok.dev";
    let request = Request::get(crd).body(Vec::new()).unwrap();
    let strict: Value = test.client().request(request).await.unwrap();
    let mut lax = strict.clone();
    for version in lax["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"] =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        version.as_object_mut().unwrap().remove("additionalPrinterColumns");
    }
    let replace = async |definition: &Value| {
        let current: Value =
            test.client().request(Request::get(crd).body(Vec::new()).unwrap()).await.unwrap();
        let mut definition = definition.clone();
        definition["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
        let request = Request::put(crd).body(definition.to_string().into_bytes()).unwrap();
        test.client().request::<Value>(request).await.unwrap();
    };
    replace(&lax).await;
    let malformed = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPServer",
        "metadata": {"name": "malformed", "finalizers": ["mcpserver.toolhive.stacklok.dev/finalizer"]}, "spec": {"image": ["not", "a", "text"], "oidcConfigRef": {"name": "company", "audience": "a"}},
    });
    let stored = async {
        loop {
            let request = Request::post(Servers::kind().path(Some(test.name())));
            let request = request.body(malformed.to_string().into_bytes()).unwrap();
            // The API server takes a moment to use the new definition.
            if test.client().request::<DynamicObject>(request).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), stored).await.expect("it is stored");
    replace(&strict).await;
}
