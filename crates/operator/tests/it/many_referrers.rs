//! Hundreds of workloads on one configuration: what a change costs. The benchmark of the operator has more of them.

use crate::kinds::{OidcConfigs, RemoteProxies};
use skep_operator::resources::ConfigMaps;
use std::sync::Arc;

use serde_json::{Value, json};
use skep_testkit::audit::Request;
use skep_world::Watched;
use tokio::task::JoinSet;

use crate::fixture::Fixture;

const WORKLOADS: usize = 300;
/// How many of them are created at the same time.
const MAKERS: usize = 8;

#[tokio::test]
async fn a_change_costs_each_workload_only_its_own_writes_and_the_configuration_one() {
    // They exist before the operator starts: with each further one, it would list all of them again.
    let fixture = Fixture::new().await.stopped().await;
    let oidc = json!({"type": "inline", "inline": {"issuer": "https://login.example"}});
    fixture.create(OidcConfigs::kind(), "company", oidc).await;
    let spec = json!({
        "remoteUrl": "https://mcp.example/mcp", "serviceAccount": "proxy",
        "oidcConfigRef": {"name": "company", "audience": "a"},
    });
    let fixture = Arc::new(fixture);
    let mut makers = JoinSet::new();
    for maker in 0..MAKERS {
        let (fixture, spec) = (fixture.clone(), spec.clone());
        makers.spawn(async move {
            for number in (maker..WORKLOADS).step_by(MAKERS) {
                fixture.create(RemoteProxies::kind(), &format!("w-{number}"), spec.clone()).await;
            }
        });
    }
    makers.join_all().await;
    let fixture = Arc::into_inner(fixture).unwrap().restart().await;
    let listed = |count: usize| {
        move |object: &Value| {
            object["status"]["referencingWorkloads"].as_array().is_some_and(|all| all.len() == count)
        }
    };
    fixture.until_idle().await;
    assert!(fixture.objects(OidcConfigs::kind()).await.iter().all(listed(WORKLOADS)));
    let proxies = fixture.objects(RemoteProxies::kind()).await;
    assert!(proxies.iter().all(|object| object["status"]["observedGeneration"] == 1));

    let recording = fixture.record();
    fixture.patch_any(OidcConfigs::kind(), "company", json!({"spec": {"inline": {"clientId": "x"}}})).await;
    fixture.until_idle().await;
    let is_changed = |object: &Value| {
        let text = object["data"]["runconfig.json"].as_str();
        text.is_none_or(|text| text.contains("\"ClientID\": \"x\""))
    };
    assert!(fixture.objects(ConfigMaps::kind()).await.iter().all(is_changed));
    let cost = async |verb: &str, resource: &str, subresource: &str| {
        recording.count(verb, resource, subresource).await
    };
    assert_eq!(cost("patch", "configmaps", "").await, WORKLOADS, "one RunConfig for each");
    assert_eq!(cost("patch", "deployments", "").await, WORKLOADS, "whose checksum rolls its pods");
    assert_eq!(
        cost("patch", "mcpremoteproxies", "status").await,
        WORKLOADS,
        "and one status with the new hash"
    );
    assert_eq!(cost("patch", "mcpoidcconfigs", "status").await, 1);
    let requests = recording.requests().await;
    // A watch ends after some minutes and is started again, which a busy machine may see.
    let is_read = |request: &&Request| !request.is_write() && request.verb != "watch";
    let reads: Vec<String> = requests.iter().filter(is_read).map(ToString::to_string).collect();
    assert_eq!(reads, [] as [&str; 0], "nothing is looked up in the cluster for it");

    let recording = fixture.record();
    let before = fixture.operator.reconciled();
    fixture.delete(RemoteProxies::kind(), "w-7").await;
    fixture.until_any(OidcConfigs::kind(), "company", "without one", listed(WORKLOADS - 1)).await;
    fixture.create(RemoteProxies::kind(), "w-7", spec).await;
    fixture.until_any(OidcConfigs::kind(), "company", "with it again", listed(WORKLOADS)).await;
    fixture.settle_any(OidcConfigs::kind(), "company").await;
    assert_eq!(
        recording.count("patch", "mcpoidcconfigs", "status").await,
        2,
        "one for each that is added or removed"
    );
    fixture.until_idle().await;
    let reconciled = fixture.operator.reconciled() - before;
    assert!(
        reconciled <= WORKLOADS as u64 / 10,
        "the list concerns no workload: {reconciled} reconciliations"
    );
    fixture.operator.stop().await;
}
