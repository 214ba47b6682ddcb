//! What admission rejects today may be accepted tomorrow, and no event reports it.

use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    apps::v1::Deployment,
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};
use skep_api::kinds::{MCPServer, MCPServerPhase};
use skep_testkit::{PATIENCE, fixtures::TestServer};

use crate::fixture::Fixture;

fn deployment(name: &str) -> Deployment {
    let deployment = json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    serde_json::from_value(deployment).unwrap()
}

/// A policy that rejects all Deployments of the namespace, once it is in force.
async fn reject_deployments(fixture: &Fixture) -> Api<ValidatingAdmissionPolicyBinding> {
    let namespace = fixture.test.name();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(fixture.test.client());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(fixture.test.client());
    let policy = json!({
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["deployments"],
            }]},
            "validations": [{"expression": "false", "message": "no deployments on Sundays"}],
        },
    });
    let binding = json!({
        "metadata": {"name": namespace},
        "spec": {
            "policyName": namespace, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
        },
    });
    policies.create(&PostParams::default(), &serde_json::from_value(policy).unwrap()).await.unwrap();
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let in_force = async {
        while fixture.test.api().create(&dry_run, &deployment("trial")).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, in_force).await.expect("the policy is in force");
    bindings
}

#[tokio::test]
async fn a_server_that_a_policy_rejects_is_applied_when_the_policy_is_deleted() {
    let fixture = Fixture::new().await;
    let bindings = reject_deployments(&fixture).await;
    fixture.test.create_object(&MCPServer::test("fetch")).await;
    let failed =
        fixture.until("fetch", "failed", |status| status.phase == Some(MCPServerPhase::Failed)).await;
    let message = failed.status.unwrap().message.unwrap();
    assert!(message.contains("no deployments on Sundays"), "{message}");

    bindings.delete(fixture.test.name(), &DeleteParams::default()).await.unwrap();
    let exists = |object: Option<&Deployment>| object.is_some();
    fixture.test.object::<Deployment>("fetch").until("applied", exists).await;
    fixture.until("fetch", "recovered", |status| status.phase != Some(MCPServerPhase::Failed)).await;

    let policies: Api<ValidatingAdmissionPolicy> = Api::all(fixture.test.client());
    policies.delete(fixture.test.name(), &DeleteParams::default()).await.unwrap();
    fixture.operator.stop().await;
}

/// A Deployment of someone else without our labels is not watched, so its deletion is not seen either.
#[tokio::test]
async fn a_server_whose_deployment_exists_already_is_applied_when_that_is_deleted() {
    let fixture = Fixture::new().await;
    let deployments = fixture.test.api::<Deployment>();
    deployments.create(&PostParams::default(), &deployment("fetch")).await.unwrap();
    fixture.test.create_object(&MCPServer::test("fetch")).await;
    fixture.until("fetch", "failed", |status| status.phase == Some(MCPServerPhase::Failed)).await;
    deployments.delete("fetch", &DeleteParams::default()).await.unwrap();
    let is_ours = |object: Option<&Deployment>| {
        object.is_some_and(|object| json!(object.spec)["selector"]["matchLabels"]["a"] == Value::Null)
    };
    fixture.test.object::<Deployment>("fetch").until("applied", is_ours).await;
    fixture.operator.stop().await;
}
