//! All of ToolHive's examples in one cluster, under one operator.

use std::time::Duration;

use skep_operator::{permissions, run};
use skep_testkit::{ControlPlane, Namespace};
use tokio::sync::watch;

use super::golden;
use crate::fixture::options;

/// How long nothing may be written once everything is settled.
const QUIET: Duration = Duration::from_secs(60);

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn the_whole_corpus_in_one_cluster_is_written_once_and_then_left_alone() {
    let plane = ControlPlane::start().await;
    let mut namespaces: Vec<Namespace> = Vec::new();
    for folder in golden::folders() {
        let namespace = plane.namespace().await;
        golden::create_inputs(&namespace, &folder).await;
        namespaces.push(namespace);
    }
    let first = &namespaces[0];
    let user = first.user("operator");
    first.grant_everywhere(&user, permissions::rules()).await;
    let recording = user.record();
    let (stop, stopped) = watch::channel(false);
    let (config, options) = (user.config(), options(Vec::new(), golden::settings()));
    let operator = tokio::spawn(async move { run::run(config, options, stopped).await.expect("it runs") });

    let mut written = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = recording.writes().await.len();
        if now == written && now > 0 {
            break;
        }
        written = now;
    }
    let recording = user.record();
    tokio::time::sleep(QUIET).await;
    assert_eq!(recording.writes().await, [] as [&str; 0], "after {written} writes for all of them");
    stop.send_replace(true);
    operator.await.unwrap();
}
