//! Two replicas, one of which writes.

use std::time::{Duration, Instant};

use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::ServiceAccount},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use skep_api::kinds::MCPServer;
use skep_operator::{
    permissions,
    run::{self, Election, Options, RunError},
    settings::Settings,
};
use skep_testkit::{Namespace, User, fixtures::TestServer};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

type Running = JoinHandle<Result<(), RunError>>;

async fn replica(test: &Namespace, name: &str) -> (User, Running, watch::Sender<bool>) {
    let user = candidate(test, name).await;
    let (task, stop) = start(test, &user, user.config());
    (user, task, stop)
}

/// A user who may do what the operator does.
async fn candidate(test: &Namespace, name: &str) -> User {
    let user = test.user(name);
    let rules = permissions::rules().into_iter().chain(permissions::election_rules()).collect();
    test.grant(&user, rules).await;
    user
}

fn start(test: &Namespace, user: &User, config: kube::Config) -> (Running, watch::Sender<bool>) {
    let (stop, stopped) = watch::channel(false);
    let options = Options {
        namespaces: vec![test.name().into()],
        workers: 2,
        election: Some(Election {
            namespace: test.name().into(),
            lease: "operator".into(),
            identity: user.name().into(),
        }),
        metrics: ([127, 0, 0, 1], 0).into(),
        health: ([127, 0, 0, 1], 0).into(),
        migrate: false,
        unready_after: Options::UNREADY_AFTER,
        observe: false,
        settings: Settings::default(),
    };
    (tokio::spawn(run::run(config, options, stopped)), stop)
}

async fn ended(task: Running) -> Result<(), RunError> {
    timeout(Duration::from_secs(30), task).await.expect("it stops").expect("it does not panic")
}

async fn change(test: &Namespace, name: &str) {
    let patch = Patch::Merge(json!({"spec": {"image": "registry.example/mcp:2"}}));
    test.api::<MCPServer>().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn until_applied(test: &Namespace, name: &str, generation: i64) {
    let observed = |server: Option<&MCPServer>| {
        server.and_then(|server| server.status.as_ref()?.observed_generation) == Some(generation)
    };
    test.object(name).until("reconciled", observed).await;
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
    change(&test, "one").await;
    until_applied(&test, "one", 2).await;
    assert_eq!(children_written(&first_writes).await.len(), before, "a dead leader writes no more");
    let mut written = children_written(&second_writes).await;
    written.sort();
    let expected = ["patch configmaps one-runconfig", "patch deployments one", "patch mcpservers/status one"];
    assert_eq!(written, expected, "what changed, once");

    stop.send_replace(true);
    ended(second_task).await.unwrap();
}

#[tokio::test]
async fn a_released_lease_is_acquired_before_it_would_have_expired() {
    let test = skep_testkit::namespace().await;
    let (first, first_task, first_stop) = replica(&test, "first").await;
    test.create_object(&MCPServer::test("one")).await;
    until_applied(&test, "one", 1).await;
    let (_, second_task, second_stop) = replica(&test, "second").await;
    // Long enough to see another leader, but not for that one to renew its lease.
    tokio::time::sleep(Duration::from_secs(1)).await;

    first_stop.send_replace(true);
    ended(first_task).await.unwrap();
    let first_writes = first.record();
    let given_back = Instant::now();
    test.create_object(&MCPServer::test("two")).await;
    until_applied(&test, "two", 1).await;
    let waited = given_back.elapsed();
    assert!(waited < Duration::from_secs(8), "a lease is for 15 s, and {waited:?} were waited");

    assert_eq!(first_writes.writes().await, [] as [&str; 0], "one that was stopped writes no more");

    second_stop.send_replace(true);
    ended(second_task).await.unwrap();
}

#[tokio::test]
async fn the_lease_is_released_after_the_last_write_of_a_reconciliation() {
    let test = skep_testkit::namespace().await;
    let user = candidate(&test, "only").await;
    let (config, link) = user.linked_config().await;
    let (task, stop) = start(&test, &user, config);
    test.create_object(&MCPServer::test("one")).await;
    until_applied(&test, "one", 1).await;

    // A reconciliation makes many requests one after the other, a release makes two.
    link.delay(Duration::from_millis(100));
    let recording = user.record();
    test.create_object(&MCPServer::test("two")).await;
    test.object::<ServiceAccount>("two-proxy-runner").until("created", |account| account.is_some()).await;
    stop.send_replace(true);
    ended(task).await.unwrap();

    let requests = recording.requests().await;
    let writes: Vec<(String, Value)> = requests
        .iter()
        .filter(|request| request.is_write() && request.resource != "events")
        .map(|write| (write.to_string(), write.body.as_ref().unwrap()["spec"]["holderIdentity"].clone()))
        .filter(|(_, holder)| *holder != user.name())
        .collect();
    let last =
        [("patch mcpservers/status two".into(), Value::Null), ("patch leases operator".into(), json!(""))];
    assert!(writes.ends_with(&last), "the reconciliation in progress ends first: {writes:#?}");
}

/// Replicas never compare the times in a lease with their own clock.
#[tokio::test]
async fn the_lease_of_a_holder_whose_clock_is_wrong_is_acquired_when_it_is_silent_and_not_before() {
    const DURATION: Duration = Duration::from_secs(6);
    let test = skep_testkit::namespace().await;
    let leases = test.api::<Lease>();
    let lease = |renewed: Timestamp| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "operator"},
            "spec": {
                "holderIdentity": "other", "leaseDurationSeconds": DURATION.as_secs(), "renewTime": MicroTime(renewed),
            },
        })
    };
    let renew = async |renewed: Timestamp| {
        let patch = Patch::Apply(lease(renewed));
        leases.patch("operator", &PatchParams::apply("other").force(), &patch).await.unwrap();
    };
    let hour = Duration::from_secs(3600);
    renew(Timestamp::now() - hour).await;
    let (user, task, stop) = replica(&test, "only").await;
    let writes = user.record();
    test.create_object(&MCPServer::test("one")).await;

    let start = Instant::now();
    while start.elapsed() < DURATION + Duration::from_secs(4) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        renew(Timestamp::now() - hour).await;
    }
    assert_eq!(writes.writes().await, [] as [&str; 0], "a holder that renews an expired lease is alive");

    // Its last sign of life: by its clock, the lease ends in an hour.
    renew(Timestamp::now() + hour).await;
    until_applied(&test, "one", 1).await;
    stop.send_replace(true);
    ended(task).await.unwrap();
}

#[tokio::test]
async fn a_leader_that_cannot_reach_the_api_server_writes_nothing_when_it_can_again() {
    let test = skep_testkit::namespace().await;
    let first = candidate(&test, "first").await;
    let (config, link) = first.linked_config().await;
    let (first_task, _first_stop) = start(&test, &first, config);
    test.create_object(&MCPServer::test("one")).await;
    until_applied(&test, "one", 1).await;
    let (_, second_task, second_stop) = replica(&test, "second").await;

    link.cut();
    let first_writes = first.record();
    let cut = Instant::now();
    // There is something to write when the link is restored.
    change(&test, "one").await;
    let lost = ended(first_task).await.unwrap_err();
    assert!(matches!(lost, RunError::Election(_)), "{lost}");
    let waited = cut.elapsed();
    assert!(waited < Duration::from_secs(15), "the lease is for 15 s, and it ended after {waited:?}");
    link.restore();
    until_applied(&test, "one", 2).await;
    test.create_object(&MCPServer::test("two")).await;
    until_applied(&test, "two", 1).await;
    assert_eq!(first_writes.writes().await, [] as [&str; 0], "nothing is written without the lease");

    second_stop.send_replace(true);
    ended(second_task).await.unwrap();
}

/// Someone annotates the lease again and again: the leader renews it all the same.
#[tokio::test]
async fn a_lease_that_others_annotate_is_not_lost() {
    let test = skep_testkit::namespace().await;
    let (_, leader, stop) = replica(&test, "leader").await;
    let lease = test.object::<Lease>("operator");
    lease.until("held", |lease| lease.is_some()).await;
    let renewed = async || lease.get().await.spec.unwrap().renew_time;
    let mut renewals = 0;
    let mut last = renewed().await;
    for number in 0.. {
        lease.patch(&json!({"metadata": {"annotations": {"number": number.to_string()}}})).await;
        let now = renewed().await;
        if now != last {
            (last, renewals) = (now, renewals + 1);
        }
        assert!(!leader.is_finished(), "after {renewals} renewals");
        if renewals == 3 {
            break;
        }
    }
    stop.send_replace(true);
    ended(leader).await.unwrap();
}
