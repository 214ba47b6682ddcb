//! The generation is frozen per pod: the operator's side.

use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_testkit::fixtures::TestServer;

use crate::fixture::Fixture;

const GENERATION: &str = "toolhive.stacklok.dev/mcpserver-generation";

#[tokio::test]
async fn the_pods_carry_the_generation_and_the_proxy_reads_it_from_its_own_pod() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    assert_eq!(fixture.pod_annotations("fetch").await[GENERATION], "1");
    let template = fixture.deployment("fetch").await.spec.unwrap().template;
    let env = template.spec.unwrap().containers[0].env.clone().unwrap();
    let variable = env.iter().find(|variable| variable.name == "THV_MCPSERVER_GENERATION").unwrap();
    assert_eq!(
        json!(variable.value_from),
        json!({"fieldRef": {"apiVersion": "v1", "fieldPath": format!("metadata.annotations['{GENERATION}']")}})
    );
    fixture.operator.stop().await;
}

#[tokio::test]
async fn only_a_spec_change_updates_the_annotation_of_the_deployment() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.patch("fetch", json!({"spec": {"image": "registry.example/mcp:2"}})).await;
    fixture.settle("fetch").await;
    assert_eq!(fixture.pod_annotations("fetch").await[GENERATION], "2");

    let before = fixture.deployment("fetch").await.metadata.resource_version;
    fixture.patch("fetch", json!({"metadata": {"annotations": {"note": "nothing of the spec"}}})).await;
    fixture.settle("fetch").await;
    assert_eq!(fixture.deployment("fetch").await.metadata.resource_version, before);
    fixture.operator.stop().await;
}
