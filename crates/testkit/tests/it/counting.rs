//! Requests are counted by user, verb, resource and subresource.

use k8s_openapi::{
    api::{core::v1::ConfigMap, rbac::v1::PolicyRule},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_testkit::fixtures::TestServer;

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let list = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(list(groups)),
        resources: Some(list(resources)),
        verbs: list(verbs),
        ..PolicyRule::default()
    }
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn every_request_of_a_user_is_counted_and_no_one_elses() {
    let test = skep_testkit::namespace().await;
    let worker = test.user("worker");
    test.grant(&worker, vec![rule(&[""], &["configmaps"], &["create", "list", "patch"])]).await;
    let recording = worker.record();
    let api: Api<ConfigMap> = Api::namespaced(worker.client(), test.name());

    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    test.create_object(&config_map("of-another-user")).await;
    api.list(&ListParams::default()).await.unwrap();
    api.patch("one", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "b"}}))).await.unwrap();

    assert_eq!(recording.writes().await, ["create configmaps one", "patch configmaps one"]);
    assert_eq!(recording.count("list", "configmaps", "").await, 1);
    assert_eq!(recording.count("get", "configmaps", "").await, 0);
    let requests = recording.requests().await;
    assert_eq!(requests.len(), 3);
    assert_eq!(
        requests[2].body,
        Some(json!({"data": {"a": "b"}})),
        "a patch is recorded as it was on the wire"
    );
}

#[tokio::test]
async fn a_window_without_writes_has_no_writes() {
    let test = skep_testkit::namespace().await;
    let worker = test.admin("worker");
    let api: Api<ConfigMap> = Api::namespaced(worker.client(), test.name());
    api.create(&PostParams::default(), &config_map("before")).await.unwrap();
    let recording = worker.record();
    for _ in 0..20 {
        api.list(&ListParams::default()).await.unwrap();
    }
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    assert_eq!(recording.count("list", "configmaps", "").await, 20);
}

/// Also on a busy machine, on which a thread of the API server may wait while others run: that a response has ended, or that the effect of
/// a write is seen before its response, is enough for the request to be counted.
#[tokio::test]
async fn a_request_is_counted_as_soon_as_it_can_be_noticed() {
    let test = skep_testkit::namespace().await;
    let worker = test.admin("worker");
    let recording = worker.record();
    let (api, admin) = (Api::<ConfigMap>::namespaced(worker.client(), test.name()), test.api::<ConfigMap>());
    let crds: Api<CustomResourceDefinition> = Api::all(worker.client());
    for number in 1..=20 {
        let name = format!("config-{number}");
        let config_map = config_map(&name);
        let create = tokio::spawn({
            let api = api.clone();
            async move { api.create(&PostParams::default(), &config_map).await }
        });
        while admin.get_opt(&name).await.unwrap().is_none() {}
        assert_eq!(recording.count("create", "configmaps", "").await, number);
        create.await.unwrap().unwrap();
        // The largest response that there is.
        crds.list(&ListParams::default()).await.unwrap();
        assert_eq!(recording.count("list", "customresourcedefinitions", "").await, number);
    }
}

#[tokio::test]
async fn a_subresource_is_counted_apart_from_its_object() {
    let test = skep_testkit::namespace().await;
    let worker = test.admin("worker");
    let api: Api<MCPServer> = Api::namespaced(worker.client(), test.name());
    let recording = worker.record();
    api.create(&PostParams::default(), &MCPServer::test("fetch")).await.unwrap();
    let status = Patch::Merge(json!({"status": {"message": "hello"}}));
    api.patch_status("fetch", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(recording.writes().await, ["create mcpservers fetch", "patch mcpservers/status fetch"]);
    assert_eq!(recording.count("patch", "mcpservers", "").await, 0);
}

#[tokio::test]
async fn a_user_may_do_only_what_it_was_granted() {
    let test = skep_testkit::namespace().await;
    let reader = test.user("reader");
    test.grant_everywhere(&reader, vec![rule(&[""], &["configmaps"], &["list"])]).await;
    let api: Api<ConfigMap> = Api::namespaced(reader.client(), test.name());
    api.list(&ListParams::default()).await.unwrap();
    let error = api.create(&PostParams::default(), &config_map("one")).await.unwrap_err();
    assert!(error.to_string().contains("cannot create resource \"configmaps\""), "{error}");
}
