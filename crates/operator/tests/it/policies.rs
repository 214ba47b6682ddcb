//! Invalid policies, inline and in other objects.

use crate::kinds::{AuthzConfigs, Groups, VirtualServers};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::kinds::{MCPAuthzConfig, MCPOIDCConfig, MCPServer, MCPServerPhase};
use skep_testkit::fixtures::{TestOidcConfig, TestServer};
use skep_world::Watched;

use crate::fixture::{Fixture, condition};

const GOOD: &str = "permit(principal, action, resource);";
const WRONG: &str = "permit(principal, action, resource)\nwhen { resource.name = \"search\" };";
const PLACE: &str =
    "line 2, column 8, at `resource.name = \"search\" };`: '=' is not a valid operator in Cedar";

async fn message(fixture: &Fixture, spec: Value) -> String {
    fixture.patch("fetch", json!({ "spec": spec })).await;
    let status = fixture.settle("fetch").await.status.unwrap();
    assert_eq!(status.phase, Some(MCPServerPhase::Failed));
    status.message.unwrap()
}

#[tokio::test]
async fn a_policy_error_is_reported_with_its_position_and_existing_pods_keep_running() {
    let fixture = Fixture::new().await;
    fixture.settled(&MCPServer::test("fetch")).await;
    let before = fixture.deployment("fetch").await.metadata.resource_version;

    let inline = json!({"type": "inline", "inline": {"policies": [GOOD, WRONG]}});
    let inline = message(&fixture, json!({"authzConfig": inline})).await;
    assert!(inline.starts_with(&format!("authzConfig.inline.policies[1]: {PLACE}")), "{inline}");

    let document = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [WRONG]}});
    let map = json!({"metadata": {"name": "rules"}, "data": {"authz.json": document.to_string()}});
    fixture.test.create_object(&serde_json::from_value::<ConfigMap>(map).unwrap()).await;
    let mapped = json!({"type": "configMap", "configMap": {"name": "rules"}, "inline": null});
    let mapped = message(&fixture, json!({"authzConfig": mapped})).await;
    let place = "authzConfig.configMap: ConfigMap \"rules\", key \"authz.json\": cedar.policies[0]: ";
    assert!(mapped.starts_with(&format!("{place}{PLACE}")), "{mapped}");

    let shared = json!({
        "apiVersion": "toolhive.stacklok.dev/v1beta1", "kind": "MCPAuthzConfig", "metadata": {"name": "shared"},
        "spec": {"type": "cedarv1", "config": {"policies": [GOOD, GOOD, WRONG]}},
    });
    fixture.test.create_object(&serde_json::from_value::<MCPAuthzConfig>(shared).unwrap()).await;
    let spec = json!({"authzConfig": null, "authzConfigRef": {"name": "shared"}});
    let shared = message(&fixture, spec).await;
    assert!(shared.contains(&format!("config.policies[2]: {PLACE}")), "{shared}");
    let server = fixture.settle("fetch").await;
    let authz = condition(&server, "AuthzConfigRefValidated").unwrap();
    assert_eq!(authz, ("False".into(), "AuthzConfigRefNotValid".into()));
    assert_eq!(fixture.deployment("fetch").await.metadata.resource_version, before);

    let fixed = json!({"spec": {"config": {"policies": [GOOD]}}});
    let configs = fixture.test.api::<MCPAuthzConfig>();
    configs.patch("shared", &PatchParams::default(), &Patch::Merge(fixed)).await.unwrap();
    let pending = |status: &skep_api::kinds::MCPServerStatus| status.phase != Some(MCPServerPhase::Failed);
    let server = fixture.until("fetch", "not failed", pending).await;
    assert_eq!(condition(&server, "AuthzConfigRefValidated").unwrap().0, "True");
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_policy_that_would_overflow_the_stack_blocks_its_own_server_and_nothing_else() {
    let fixture = Fixture::new().await;
    let deep = format!(
        "permit(principal, action, resource) when {{ {}true{} }};",
        "(".repeat(20_000),
        ")".repeat(20_000)
    );
    let mut server = MCPServer::test("deep");
    let authz = json!({"type": "inline", "inline": {"policies": [deep]}});
    server.spec.authz_config = serde_json::from_value(authz).unwrap();
    let message = fixture.settled(&server).await.status.unwrap().message.unwrap();
    assert!(message.starts_with("authzConfig.inline.policies[0]: it nests deeper than "), "{message}");
    fixture.settled(&MCPServer::test("fetch")).await;
    fixture.deployment("fetch").await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_policy_without_effect_is_reported_on_its_object_until_it_is_fixed() {
    let fixture = Fixture::new().await;
    let inert = r#"permit(principal == User::"ann", action, resource);"#;
    let warned = |server: &MCPServer| {
        let status = server.status.as_ref().unwrap();
        assert_ne!(status.phase, Some(MCPServerPhase::Failed));
        status.conditions.iter().find(|condition| condition.type_ == "PolicyWarning").cloned()
    };
    let reported = "the principal is never a User: use Client";
    let mut server = MCPServer::test("fetch");
    let authz = json!({"type": "inline", "inline": {"policies": [GOOD, inert]}});
    server.spec.authz_config = serde_json::from_value(authz).unwrap();
    let warning = warned(&fixture.settled(&server).await).unwrap();
    assert_eq!((warning.status.as_str(), warning.reason.as_str()), ("True", "PolicyWithoutEffect"));
    assert_eq!(warning.message, format!("authzConfig.inline.policies[1]: {reported}"));

    let document = json!({"version": "1.0", "type": "cedarv1", "cedar": {"policies": [GOOD, inert]}});
    let map = json!({"metadata": {"name": "rules"}, "data": {"authz.json": document.to_string()}});
    fixture.test.create_object(&serde_json::from_value::<ConfigMap>(map).unwrap()).await;
    let mapped = json!({"type": "configMap", "configMap": {"name": "rules"}, "inline": null});
    fixture.patch("fetch", json!({"spec": {"authzConfig": mapped}})).await;
    let warning = warned(&fixture.settle("fetch").await).unwrap();
    assert_eq!(warning.message, format!("authzConfig.configMap: ConfigMap rules, policies[1]: {reported}"));

    let spec = json!({"type": "cedarv1", "config": {"policies": [GOOD, inert]}});
    fixture.create(AuthzConfigs::kind(), "shared", spec).await;
    let shared = json!({"authzConfig": null, "authzConfigRef": {"name": "shared"}});
    fixture.patch("fetch", json!({ "spec": shared })).await;
    assert_eq!(warned(&fixture.settle("fetch").await), None, "it is reported on the MCPAuthzConfig");
    let warning = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let mut warnings = conditions.filter(|condition| condition["type"] == "PolicyWarning");
        warnings.next().map(|condition| condition["message"].as_str().unwrap().to_owned())
    };
    let message = format!("config.policies[1]: {reported}");
    let has_warning = |object: &Value| warning(object).as_ref() == Some(&message);
    fixture.until_any(AuthzConfigs::kind(), "shared", "warned of", has_warning).await;

    let fixed = json!({"spec": {"config": {"policies": [GOOD]}}});
    fixture.patch_any(AuthzConfigs::kind(), "shared", fixed).await;
    let fine = |object: &Value| {
        warning(object).is_none()
            && object["status"]["observedGeneration"] == object["metadata"]["generation"]
    };
    fixture.until_any(AuthzConfigs::kind(), "shared", "free of warnings", fine).await;
    fixture.operator.stop().await;
}

#[tokio::test]
async fn a_policy_without_effect_is_reported_on_a_virtual_server_too() {
    let fixture = Fixture::new().await;
    fixture.create(Groups::kind(), "all", json!({})).await;
    fixture.test.create_object(&MCPOIDCConfig::test("company")).await;
    let inert = r#"permit(principal == User::"ann", action, resource);"#;
    let authz = json!({"type": "inline", "inline": {"policies": [GOOD, inert]}});
    let auth = json!({
        "type": "oidc", "oidcConfigRef": {"name": "company", "audience": "a"}, "authzConfig": authz,
    });
    let spec = json!({"groupRef": {"name": "all"}, "incomingAuth": auth});
    fixture.create(VirtualServers::kind(), "tools", spec).await;
    let server = fixture.settle_any(VirtualServers::kind(), "tools").await;
    let conditions = server.data["status"]["conditions"].as_array().unwrap();
    let warning = conditions.iter().find(|condition| condition["type"] == "PolicyWarning").unwrap();
    let message = "incomingAuth.authzConfig.inline.policies[1]: the principal is never a User: use Client";
    assert_eq!((&warning["status"], &warning["message"]), (&json!("True"), &json!(message)));

    let fixed = json!({"spec": {"incomingAuth": {"authzConfig": {"inline": {"policies": [GOOD]}}}}});
    fixture.patch_any(VirtualServers::kind(), "tools", fixed).await;
    let server = fixture.settle_any(VirtualServers::kind(), "tools").await;
    assert!(!crate::fixture::conditions(&server).contains_key("PolicyWarning"), "{server:#?}");
    fixture.operator.stop().await;
}

/// A proxy reads keys in any case, and ends at its start where one is there twice.
#[tokio::test]
async fn a_document_with_a_key_in_two_cases_is_rejected_with_its_place() {
    let fixture = Fixture::new().await;
    let twice = json!({"policies": [GOOD], "Policies": [GOOD]});
    let spec = json!({"type": "cedarv1", "config": twice});
    fixture.create(AuthzConfigs::kind(), "shared", spec).await;
    let shared = fixture.settle_any(AuthzConfigs::kind(), "shared").await;
    let valid = &shared.data["status"]["conditions"][0];
    assert_eq!((&valid["type"], &valid["status"]), (&json!("Valid"), &json!("False")), "{valid:#}");
    assert!(valid["message"].as_str().unwrap().contains("config: duplicate field `policies`"), "{valid:#}");

    fixture.settled(&MCPServer::test("fetch")).await;
    let document = json!({"version": "1.0", "type": "cedarv1", "cedar": twice});
    let map = json!({"metadata": {"name": "rules"}, "data": {"authz.json": document.to_string()}});
    fixture.test.create_object(&serde_json::from_value::<ConfigMap>(map).unwrap()).await;
    let mapped = json!({"type": "configMap", "configMap": {"name": "rules"}});
    let mapped = message(&fixture, json!({"authzConfig": mapped})).await;
    let expected =
        "authzConfig.configMap: ConfigMap \"rules\", key \"authz.json\": cedar: duplicate field `policies`";
    assert!(mapped.starts_with(expected), "{mapped}");
    fixture.operator.stop().await;
}
