//! Two replicas, one of which writes.

use std::time::{Duration, Instant};

use serde_json::json;
use skep_api::kinds::MCPServer;
use skep_operator::{
    permissions,
    run::{self, Election, Options},
    settings::Settings,
};
use skep_testkit::{Namespace, User, fixtures::TestServer};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

async fn replica(test: &Namespace, name: &str) -> (User, JoinHandle<()>, watch::Sender<bool>) {
    let user = test.user(name);
    let rules = permissions::rules().into_iter().chain(permissions::election_rules()).collect();
    test.grant(&user, rules).await;
    let (stop, stopped) = watch::channel(false);
    let options = Options {
        namespaces: vec![test.name().into()],
        workers: 2,
        election: Some(Election {
            namespace: test.name().into(),
            lease: "operator".into(),
            identity: name.into(),
        }),
        metrics: ([127, 0, 0, 1], 0).into(),
        health: ([127, 0, 0, 1], 0).into(),
        migrate: false,
        observe: false,
        settings: Settings::default(),
    };
    let config = user.config();
    let task = tokio::spawn(async move { run::run(config, options, stopped).await.expect("it runs") });
    (user, task, stop)
}

async fn until_applied(test: &Namespace, name: &str, generation: i64) {
    let observed = |server: Option<&MCPServer>| {
        server.and_then(|server| server.status.as_ref()?.observed_generation) == Some(generation)
    };
    test.object(name).until("reconciled", observed).await;
        unready_after: Options::UNREADY_AFTER,
}

/// The children that a user has written, without leases and events.
async fn children_written(recording: &skep_testkit::audit::Recording) -> Vec<String> {
    let writes = recording.writes().await.into_iter();
    writes.filter(|write| !write.contains("leases") && !write.contains("events")).collect()
}

#[tokio::test]
async fn when_the_leader_is_killed_the_standby_takes_over_and_no_child_is_written_twice() {
    let test = skep_testkit::namespace().await;
    let (first, first_task, _stop) = replica(&test, "first").await;
    let first_writes = first.record();
    test.create_object(&MCPServer::test("one")).await;
    until_applied(&test, "one", 1).await;

    let (second, second_task, stop) = replica(&test, "second").await;
    let second_writes = second.record();
    test.create_object(&MCPServer::test("two")).await;
    until_applied(&test, "two", 1).await;
    assert_eq!(children_written(&second_writes).await, [] as [&str; 0], "one leads, the other only looks on");

    // Like a crash: the lease is not released.
    first_task.abort();
    first_task.await.unwrap_err();
    let before = children_written(&first_writes).await.len();
    let patch = json!({"spec": {"image": "registry.example/mcp:2"}});
    let patch = kube::api::Patch::Merge(patch);
    test.api::<MCPServer>().patch("one", &kube::api::PatchParams::default(), &patch).await.unwrap();
    until_applied(&test, "one", 2).await;
    assert_eq!(children_written(&first_writes).await.len(), before, "a dead leader writes no more");
    let mut written = children_written(&second_writes).await;
    written.sort();
    let expected = ["patch configmaps one-runconfig", "patch deployments one", "patch mcpservers/status one"];
    assert_eq!(written, expected, "what changed, once");

    stop.send_replace(true);
    timeout(Duration::from_secs(30), second_task).await.expect("it stops").expect("it does not panic");
}

#[tokio::test]
async fn a_released_lease_is_acquired_before_it_would_have_expired() {
    let test = skep_testkit::namespace().await;
    let (_, first_task, first_stop) = replica(&test, "first").await;
    test.create_object(&MCPServer::test("one")).await;
    until_applied(&test, "one", 1).await;
    let (_, second_task, second_stop) = replica(&test, "second").await;
    // Long enough to see another leader, but not for that one to renew its lease.
    tokio::time::sleep(Duration::from_secs(1)).await;

    first_stop.send_replace(true);
    timeout(Duration::from_secs(30), first_task).await.expect("it stops").expect("it does not panic");
    let given_back = Instant::now();
    test.create_object(&MCPServer::test("two")).await;
    until_applied(&test, "two", 1).await;
    let waited = given_back.elapsed();
    assert!(waited < Duration::from_secs(8), "a lease is for 15 s, and {waited:?} were waited");

    second_stop.send_replace(true);
    timeout(Duration::from_secs(30), second_task).await.expect("it stops").expect("it does not panic");
}
