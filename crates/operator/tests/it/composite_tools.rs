//! A VirtualMCPCompositeToolDefinition from its creation to its deletion.

use crate::kinds::{CompositeTools, VirtualServers};
use serde_json::{Value, json};
use skep_testkit::json::condition;
use skep_world::Watched;

use crate::fixture::Fixture;

fn kind() -> skep_converge::Kind {
    CompositeTools::kind()
}

fn workflow() -> Value {
    json!({
        "name": "look",
        "description": "Looks outside.",
        "steps": [
            {"id": "now", "tool": "weather.now"},
            {"id": "post", "tool": "chat.post", "dependsOn": ["now"], "arguments": {"text": "{{.steps.now.output.sky}}"}},
        ],
    })
}

fn offering(definitions: &[&str]) -> Value {
    let refs: Vec<_> = definitions.iter().map(|name| json!({"name": name})).collect();
    json!({
        "groupRef": {"name": "g"}, "incomingAuth": {"type": "anonymous"},
        "config": {"compositeToolRefs": refs},
    })
}

#[tokio::test]
async fn a_workflow_is_validated_when_it_is_created_and_when_it_changes() {
    let fixture = Fixture::new().await;
    fixture.create(kind(), "look", workflow()).await;
    let object = fixture.settle_any(kind(), "look").await;
    assert_eq!(object.data["status"]["validationStatus"], "Valid");
    assert_eq!(condition(&object, "WorkflowValidated")["reason"], "ValidationSuccess");
    assert_eq!(condition(&object, "Ready")["reason"], "WorkflowReady");
    assert_eq!(object.metadata.finalizers, None);

    let mut steps = workflow()["steps"].clone();
    steps[0]["dependsOn"] = json!(["post"]);
    steps[1]["arguments"]["text"] = json!("{{.steps.then.output.sky}}");
    fixture.patch_any(kind(), "look", json!({"spec": {"steps": steps}})).await;
    let object = fixture.settle_any(kind(), "look").await;
    let errors = json!([
        "steps[0].dependsOn: now → post → now is a cycle, so none of these steps can ever start",
        "steps[1].arguments[text]: {{.steps.then.output.sky}}: there is no step \"then\"",
    ]);
    assert_eq!(object.data["status"]["validationStatus"], "Invalid");
    assert_eq!(object.data["status"]["validationErrors"], errors);
    assert_eq!(condition(&object, "WorkflowValidated")["reason"], "DependencyCycle");
    assert_eq!(condition(&object, "Ready")["status"], "False");
    fixture.patch_any(kind(), "look", json!({"metadata": {"labels": {"touched": "yes"}}})).await;
    fixture.settle_any(kind(), "look").await;

    fixture.patch_any(kind(), "look", json!({"spec": workflow()})).await;
    let object = fixture.settle_any(kind(), "look").await;
    assert_eq!(object.data["status"]["validationStatus"], "Valid");
    assert_eq!(object.data["status"]["validationErrors"], Value::Null);
    let reported = [
        ("WorkflowInvalid", format!("{}; and 1 more", errors[0].as_str().unwrap())),
        ("WorkflowValid", "the workflow is valid again".into()),
    ];
    assert_eq!(fixture.events().await, reported.map(|(reason, note)| (reason.to_owned(), note)));
    fixture.operator.stop().await;
}

#[tokio::test]
async fn it_lists_its_referrers_and_can_be_deleted_while_it_has_some() {
    let fixture = Fixture::new().await;
    fixture.create(kind(), "look", workflow()).await;
    for (name, definitions) in [("b", ["look"].as_slice()), ("a", &["other", "look"]), ("c", &["other"])] {
        fixture.create(VirtualServers::kind(), name, offering(definitions)).await;
    }
    let lists = |names: Value| move |object: &Value| object["status"]["referencingVirtualServers"] == names;
    fixture.until_any(kind(), "look", "listing both", lists(json!(["a", "b"]))).await;
    fixture.settle_any(kind(), "look").await;
    let recording = fixture.record();
    let other = json!({"spec": {"config": {"compositeToolRefs": [{"name": "other"}]}}});
    fixture.patch_any(VirtualServers::kind(), "a", other).await;
    fixture.until_any(kind(), "look", "listing one", lists(json!(["b"]))).await;
    fixture.settle_any(kind(), "look").await;
    assert_eq!(recording.count("patch", "virtualmcpcompositetooldefinitions", "status").await, 1);
    assert_eq!(recording.count("patch", "virtualmcpcompositetooldefinitions", "").await, 0);
    fixture.delete(kind(), "look").await;
    fixture.until_any(kind(), "look", "deleted", Value::is_null).await;
    fixture.operator.stop().await;
}
