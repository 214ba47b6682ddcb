//! An API server that rejects writes for a while.

use crate::kinds::{RemoteProxies, Servers};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use serde_json::json;
use skep_api::kinds::{MCPRemoteProxy, MCPServer};
use skep_converge::Kind;
use skep_operator::{permissions, settings::Settings};
use skep_testkit::fixtures::{TestRemoteProxy, TestServer};
use skep_world::Watched;

use super::{
    end_state,
    storm::{Storm, Write},
};
use crate::fixture::{Fixture, conditions};

fn objects() -> [(Kind, &'static str); 2] {
    [(Servers::kind(), "fetch"), (RemoteProxies::kind(), "elsewhere")]
}

/// An operator in a storm.
async fn in_storm(rule: impl Fn(&Write) -> Option<StatusCode> + Send + Sync + 'static) -> (Fixture, Storm) {
    let test = skep_testkit::namespace().await;
    let user = test.user("operator");
    test.grant(&user, permissions::rules()).await;
    let storm = Storm::start(&user, rule).await;
    let config = storm.config();
    (Fixture::of(test, user, config, Settings::default()), storm)
}

async fn create(fixture: &Fixture) {
    fixture.test.create_object(&MCPServer::test("fetch").with_rate_limit(5)).await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
}

async fn settle(fixture: &Fixture) {
    for (kind, name) in objects() {
        fixture.settle_any(kind, name).await;
    }
}

/// The accepted writes, and how often each.
fn let_through(storm: &Storm, namespace: &str) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for write in storm.writes().into_iter().filter(|write| write.rejected.is_none()) {
        *counted.entry(write.path.replace(namespace, "NS")).or_default() += 1;
    }
    counted
}

/// The end state and the writes of an operator without a storm.
async fn calm() -> (BTreeMap<String, serde_json::Value>, BTreeMap<String, usize>) {
    let (fixture, storm) = in_storm(|_| None).await;
    create(&fixture).await;
    settle(&fixture).await;
    let calm = (end_state(&fixture.test).await, let_through(&storm, fixture.test.name()));
    fixture.operator.stop().await;
    calm
}

#[tokio::test]
async fn sporadically_rejected_writes_are_retried_and_no_other_is_repeated() {
    let (good, writes) = calm().await;
    let storms = [StatusCode::CONFLICT, StatusCode::TOO_MANY_REQUESTS].map(async |code| {
        let every_other =
            move |write: &Write| (write.number.is_multiple_of(2) && write.number < 24).then_some(code);
        let (fixture, storm) = in_storm(every_other).await;
        create(&fixture).await;
        settle(&fixture).await;
        similar_asserts::assert_eq!(end_state(&fixture.test).await, good, "after {code}");
        similar_asserts::assert_eq!(let_through(&storm, fixture.test.name()), writes, "with {code}");
        let rejected = storm.writes().iter().filter(|write| write.rejected.is_some()).count();
        assert_eq!(rejected, 12, "{code}");
        fixture.operator.stop().await;
    });
    futures::future::join_all(storms).await;
}

#[tokio::test]
async fn a_status_is_written_after_a_conflict() {
    let armed = Arc::new(AtomicBool::new(false));
    let once = armed.clone();
    let (fixture, storm) = in_storm(move |write| {
        let hit = write.path.ends_with("/status") && once.swap(false, Ordering::Relaxed);
        hit.then_some(StatusCode::CONFLICT)
    })
    .await;
    fixture.test.create_object(&MCPRemoteProxy::test("elsewhere")).await;
    fixture.settle_any(RemoteProxies::kind(), "elsewhere").await;
    // Shows in the status alone, so nothing else causes another reconciliation.
    armed.store(true, Ordering::Relaxed);
    fixture
        .patch_any(RemoteProxies::kind(), "elsewhere", json!({"spec": {"groupRef": {"name": "absent"}}}))
        .await;
    let proxy = fixture.settle_any(RemoteProxies::kind(), "elsewhere").await;
    assert_eq!(conditions(&proxy)["GroupRefValidated"].1, "GroupRefNotFound");
    assert_eq!(storm.writes().iter().filter(|write| write.rejected.is_some()).count(), 1);
    fixture.operator.stop().await;
}

#[tokio::test]
async fn rejected_writes_are_retried_with_back_off() {
    const STORM: Duration = Duration::from_secs(3);
    let (good, _) = calm().await;
    let storms = [(StatusCode::CONFLICT, 6), (StatusCode::TOO_MANY_REQUESTS, 4)].map(async |(code, most)| {
        let (fixture, storm) = in_storm(move |write| (write.at < STORM).then_some(code)).await;
        create(&fixture).await;
        tokio::time::sleep(STORM).await;
        settle(&fixture).await;
        similar_asserts::assert_eq!(end_state(&fixture.test).await, good, "after {code}");
        let rejected: Vec<Write> =
            storm.writes().into_iter().filter(|write| write.rejected.is_some()).collect();
        assert!(rejected.len() <= most * objects().len(), "{code}: {rejected:#?}");
        fixture.operator.stop().await;
    });
    futures::future::join_all(storms).await;
}

#[tokio::test]
async fn a_rejected_write_honours_retry_after_and_does_not_delay_others() {
    let stuck = |write: &Write| {
        let rejected = write.path.contains("stuck") && write.at < Duration::from_secs(4);
        rejected.then_some(StatusCode::TOO_MANY_REQUESTS)
    };
    let (fixture, storm) = in_storm(stuck).await;
    fixture.test.create_object(&MCPServer::test("stuck")).await;
    fixture.until_object(Servers::kind(), "stuck", "there", |_| !storm.writes().is_empty()).await;
    create(&fixture).await;
    for (kind, name) in objects() {
        let reported = |object: &kube::core::DynamicObject| object.data["status"]["phase"] == "Pending";
        fixture.until_object(kind, name, "reported on", reported).await;
    }
    let others_done = storm.writes().last().unwrap().at;
    assert!(others_done < Duration::from_secs(4), "the others were held up: {others_done:?}");
    fixture.settle("stuck").await;
    fixture.deployment("stuck").await;
    let writes = storm.writes();
    for rejected in writes.iter().filter(|write| write.rejected.is_some()) {
        let mut again = writes[rejected.number + 1..].iter().filter(|write| write.path == rejected.path);
        let after = again.next().unwrap().at - rejected.at;
        assert!(after >= Duration::from_secs(1), "{} came again after {after:?}", rejected.path);
    }
    fixture.operator.stop().await;
}
