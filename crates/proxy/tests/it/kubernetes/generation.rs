//! The generation of the MCPServer is frozen per pod, and a proxy of an older one undoes nothing.

use std::{collections::BTreeMap, fs};

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Service};
use serde_json::json;
use skep_config::{RunConfig, annotations, env};
use skep_proxy::{Overrides, load};

use super::fixture::{Fixture, config, image, is_held_back, of_generation};

/// The RunConfig of a pod that was created for this generation and image, whatever the file contains now.
fn in_pod(file: &std::path::Path, generation: i64, image: &str) -> RunConfig {
    let env = BTreeMap::from([(env::MCPSERVER_GENERATION.to_owned(), generation.to_string())]);
    let overrides = Overrides { image: image.into(), env, ..Overrides::default() };
    load(&[file], &overrides).unwrap()
}

#[tokio::test]
async fn an_old_proxy_that_restarts_during_a_rollout_does_not_undo_the_new_one() {
    let fixture = Fixture::new().await;
    // The ConfigMap is mounted live: both pods read the same file.
    let file = fixture.test.folder().join(format!("{}.json", fixture.test.name()));
    let write = |config: &RunConfig| fs::write(&file, config.render().unwrap()).unwrap();

    write(&of_generation(1));
    assert!(!is_held_back(&fixture.run(&in_pod(&file, 1, "files:1")).await));
    write(&of_generation(2));
    assert!(!is_held_back(&fixture.run(&in_pod(&file, 2, "files:2")).await));
    let rolled = fixture.stateful_set().await;
    assert_eq!(image(&rolled), "files:2");

    // The old pod's process restarts. Its file is of generation 2 by now; its image and its generation are still 1.
    let recording = fixture.proxy.record();
    let old = fixture.run(&in_pod(&file, 1, "files:1")).await;
    assert!(is_held_back(&old));
    assert_eq!(fixture.stateful_set().await, rolled);
    assert_eq!(recording.writes().await, [] as [&str; 0]);
    assert_eq!(old.stateful_set(), &rolled);
}

#[tokio::test]
async fn proxies_of_one_generation_overwrite_each_other_which_is_why_it_is_frozen() {
    let fixture = Fixture::new().await;
    for image in ["files:old", "files:new", "files:old"] {
        let server = fixture.run(&config(json!({"mcpserver_generation": 3, "image": image}))).await;
        assert!(!is_held_back(&server));
        assert_eq!(fixture.image().await, image);
    }
}

#[tokio::test]
async fn only_a_greater_generation_is_not_overwritten() {
    let generation = annotations::MCPSERVER_GENERATION;
    for (live, ours, applied) in [
        (Some("5"), 4, false),
        (Some("10"), 9, false),
        (Some("5"), 5, true),
        (Some("4"), 5, true),
        (None, 4, true),
        (Some("five"), 4, true),
        (Some(""), 4, true),
        (Some("5"), 0, true),
    ] {
        let fixture = Fixture::new().await;
        fixture.run(&config(json!({"image": "files:live"}))).await;
        let annotations = json!({generation: live});
        fixture
            .patch_as("test", json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}))
            .await;
        let server = fixture.run(&config(json!({"image": "files:ours", "mcpserver_generation": ours}))).await;
        assert_eq!(!is_held_back(&server), applied, "{ours} over {live:?}");
        let expected = if applied { "files:ours" } else { "files:live" };
        assert_eq!(fixture.image().await, expected, "{ours} over {live:?}");
    }
}

#[tokio::test]
async fn the_annotation_is_on_the_pod_template_and_only_the_proxy_sets_it() {
    let fixture = Fixture::new().await;
    let patch = json!({"metadata": {"annotations": {annotations::MCPSERVER_GENERATION: "99", "a": "b"}}});
    let marked = async |generation: i64| {
        let changes =
            json!({"mcpserver_generation": generation, "k8s_pod_template_patch": patch.to_string()});
        fixture.run(&config(changes)).await;
        let live = fixture.stateful_set().await;
        assert_eq!(live.metadata.annotations, None);
        live.spec.unwrap().template.metadata.unwrap().annotations.unwrap()
    };
    let expected = |mark: Option<&str>| {
        let mark = mark.map(|mark| (annotations::MCPSERVER_GENERATION.to_owned(), mark.to_owned()));
        mark.into_iter().chain([("a".to_owned(), "b".to_owned())]).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(marked(0).await, expected(None));
    assert_eq!(marked(7).await, expected(Some("7")));
}

#[tokio::test]
async fn a_proxy_that_is_held_back_changes_no_service() {
    let fixture = Fixture::new().await;
    fixture.run(&of_generation(2)).await;
    let before: Vec<Service> = fixture.test.api().list(&Default::default()).await.unwrap().items;
    let old = config(json!({"mcpserver_generation": 1, "target_port": 9999, "publish": ["1:7777"]}));
    assert!(is_held_back(&fixture.run(&old).await));
    let after: Vec<Service> = fixture.test.api().list(&Default::default()).await.unwrap().items;
    assert_eq!(after, before);
    assert_eq!(before.len(), 2);
}

#[tokio::test]
async fn applying_the_same_again_changes_nothing() {
    let fixture = Fixture::new().await;
    fixture.run(&of_generation(2)).await;
    let before: StatefulSet = fixture.stateful_set().await;
    let service = fixture.service("mcp-files").await;
    fixture.run(&of_generation(2)).await;
    assert_eq!(fixture.stateful_set().await, before);
    assert_eq!(fixture.service("mcp-files").await, service);
}
