//! An operator for several namespaces that lacks permissions in one of them.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_operator::{permissions, settings::Settings};
use skep_testkit::{Handle, Namespace, fixtures::TestServer};

use crate::fixture::Operator;

fn has_status(server: Option<&MCPServer>) -> bool {
    server.is_some_and(|server| server.status.is_some())
}

async fn until_reconciled(test: &Namespace) {
    Handle::new(test.api::<MCPServer>(), "fetch").until("reconciled", has_status).await;
}

#[tokio::test]
async fn a_namespace_that_may_not_be_listed_delays_no_other_and_nothing_in_it_is_touched() {
    let (one, two) = (skep_testkit::namespace().await, skep_testkit::namespace().await);
    for test in [&one, &two] {
        test.create_object(&MCPServer::test("fetch")).await;
    }
    let user = one.user("operator");
    one.grant(&user, permissions::rules()).await;
    // All but ConfigMaps: it sees the server, and cannot know what exists.
    let names_config_maps =
        |rule: &PolicyRule| rule.resources.iter().flatten().any(|resource| resource == "configmaps");
    let rules: Vec<PolicyRule> = permissions::rules();
    let partial = rules.into_iter().filter(|rule| !names_config_maps(rule)).collect();
    two.grant(&user, partial).await;

    let recording = user.record();
    let operator = Operator::start(&[&one, &two], user.config(), Settings::default());
    until_reconciled(&one).await;
    let writes = async || {
        let requests = recording.requests().await;
        requests.into_iter().filter(|request| request.is_write() && request.namespace == two.name()).count()
    };
    assert_eq!(writes().await, 0);

    let granted = Patch::Merge(json!({"rules": permissions::rules()}));
    two.api::<Role>().patch(user.name(), &PatchParams::default(), &granted).await.unwrap();
    until_reconciled(&two).await;
    operator.stop().await;
}
