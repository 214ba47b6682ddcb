//! Objects of different kinds that have the same name, or children of the same name.

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Service},
};
use kube::{Resource, ResourceExt, api::DeleteParams};
use serde::de::DeserializeOwned;
use serde_json::json;
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_operator::resources::StatefulSets;
use skep_testkit::fixtures::{TestRemoteProxy, TestServer};
use skep_world::Watched;

use crate::{
    fixture::Fixture,
    kinds::{EmbeddingServers, RemoteProxies, Servers, names_of_children},
};

async fn uid<K>(fixture: &Fixture, name: &str) -> Option<String>
where
    K: Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    fixture.test.api::<K>().get_opt(name).await.unwrap().and_then(|object| object.uid())
}

/// The headless Service of a server's StatefulSet.
pub(crate) fn headless_service(server: &str) -> Service {
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": server, "uid": "of-the-set", "controller": true,
    });
    let service = json!({
        "metadata": {
            "name": format!("mcp-{server}-headless"), "labels": {"app": server, "toolhive": "true"}, "ownerReferences": [owner],
        },
        "spec": {"ports": [{"port": 80}], "selector": {"app": server}, "clusterIP": "None"},
    });
    serde_json::from_value(service).unwrap()
}

async fn delete_server(fixture: &Fixture, name: &str) {
    fixture.delete(Servers::kind(), name).await;
    fixture.until_any(Servers::kind(), name, "deleted", |object| object.is_null()).await;
    fixture.until_idle().await;
}

#[tokio::test]
async fn a_server_that_is_deleted_leaves_the_children_of_a_remote_proxy_of_its_name() {
    let fixture = Fixture::new().await;
    fixture.test.create_object(&MCPRemoteProxy::test("x")).await;
    fixture.settle_any(RemoteProxies::kind(), "x").await;
    let children =
        async || [uid::<Deployment>(&fixture, "x").await, uid::<ConfigMap>(&fixture, "x-runconfig").await];
    let before = children().await;
    assert!(before.iter().all(Option::is_some), "{before:?}");

    let server = fixture.settled(&MCPServer::test("x")).await;
    let message = server.status.unwrap().message.unwrap();
    assert!(message.contains("MCPRemoteProxy x"), "the status names the owner: {message}");
    delete_server(&fixture, "x").await;
    assert_eq!(children().await, before, "they are not even recreated");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_server_that_is_deleted_leaves_the_stateful_set_of_an_embedding_server_of_its_name() {
    let fixture = Fixture::new().await;
    fixture
        .create(EmbeddingServers::kind(), "x", json!({"model": "m", "image": "registry.example/tei:1"}))
        .await;
    fixture.until_idle().await;
    let before = uid::<StatefulSet>(&fixture, "x").await;
    assert!(before.is_some());
    fixture.settled(&MCPServer::test("x")).await;
    delete_server(&fixture, "x").await;
    assert_eq!(uid::<StatefulSet>(&fixture, "x").await, before);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_server_that_is_deleted_leaves_the_service_of_a_server_with_a_similar_name() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("y")).await;
    // As its proxy creates it, for the StatefulSet of the server.
    fixture.test.create_object(&headless_service("y")).await;
    for (service, similar) in [("mcp-y-proxy", "y-proxy"), ("mcp-y-headless", "y-headless")] {
        let before = uid::<Service>(&fixture, service).await;
        assert!(before.is_some());
        fixture.settled(&MCPServer::test(similar)).await;
        delete_server(&fixture, similar).await;
        assert_eq!(uid::<Service>(&fixture, service).await, before);
    }
    fixture.operator.stop().await;
}

/// A name proves nothing: these objects were made by hand, and have no owner.
#[tokio::test]
async fn a_server_that_is_deleted_leaves_objects_that_people_made() {
    let fixture = Fixture::new().await;
    let metadata = |name: &str| json!({"name": name, "labels": {"app": "someone-else"}});
    let services = ["mcp-x", "mcp-x-headless"];
    for name in services {
        let service = json!({"metadata": metadata(name), "spec": {"ports": [{"port": 80}]}});
        fixture.test.create_object::<Service>(&serde_json::from_value(service).unwrap()).await;
    }
    let before = [uid::<Service>(&fixture, services[0]).await, uid::<Service>(&fixture, services[1]).await];
    fixture.settled(&MCPServer::test("x")).await;
    delete_server(&fixture, "x").await;
    let after = [uid::<Service>(&fixture, services[0]).await, uid::<Service>(&fixture, services[1]).await];
    assert!(before.iter().all(Option::is_some));
    assert_eq!(after, before);
    fixture.operator.stop().await;
}

/// `kubectl delete --cascade=orphan`, and the object again: nothing is interrupted.
#[tokio::test]
async fn the_children_of_a_server_that_is_deleted_without_them_stay_and_are_adopted_by_the_next_of_its_name()
{
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("x")).await;
    let mut children = names_of_children(Servers::kind(), "x");
    children.retain(|(kind, name)| *kind != StatefulSets::kind() && !name.ends_with("-authz-inline"));
    let uids = async || {
        let mut uids = Vec::new();
        for (kind, name) in &children {
            uids.push((
                name.clone(),
                fixture.object(*kind, name).await.and_then(|object| object.metadata.uid),
            ));
        }
        uids
    };
    let before = uids().await;
    assert!(before.iter().all(|(_, uid)| uid.is_some()), "{before:?}");

    fixture.api(Servers::kind()).delete("x", &DeleteParams::orphan()).await.unwrap();
    let is_released = |object: &serde_json::Value| object["metadata"]["finalizers"] == json!(["orphan"]);
    fixture.until_any(Servers::kind(), "x", "released", is_released).await;
    assert_eq!(uids().await, before);
    // As the garbage collector does, which does not run here.
    for (kind, name) in &children {
        fixture.patch_any(*kind, name, json!({"metadata": {"ownerReferences": null}})).await;
    }
    fixture.patch("x", json!({"metadata": {"finalizers": null}})).await;
    fixture.until_any(Servers::kind(), "x", "deleted", |object| object.is_null()).await;

    let owner = fixture.settled(&MCPServer::test("x")).await.metadata.uid;
    assert_eq!(uids().await, before);
    for (kind, name) in &children {
        let metadata = fixture.object(*kind, name).await.unwrap().metadata;
        let owners: Vec<_> =
            metadata.owner_references.into_iter().flatten().map(|one| Some(one.uid)).collect();
        assert_eq!(owners, std::slice::from_ref(&owner), "{} {name}", kind.kind);
    }
    fixture.operator.stop().await;
}
