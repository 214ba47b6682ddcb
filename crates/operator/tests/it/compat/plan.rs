//! A plan for a cluster of ToolHive's operator predicts what then happens.

use skep_operator::resources::{Deployments, Secrets, StatefulSets};
use std::{collections::BTreeMap, path::Path};

use serde_json::Value;
use skep_converge::{Kind, Write};
use skep_operator::{reconcile::Verdict, settings::Settings};
use skep_world::Watched;

use super::{
    golden,
    takeover::{left_by_toolhive, taken_over},
};
use crate::{
    fixture::{Fixture, children},
    kinds::all_kinds,
    plan::plans,
};

/// The pod templates of a namespace, by kind and name.
async fn templates(fixture: &Fixture) -> BTreeMap<String, Value> {
    let mut templates = BTreeMap::new();
    for kind in [Deployments::kind(), StatefulSets::kind()] {
        for mut object in fixture.objects(kind).await {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            templates.insert(format!("{} {name}", kind.kind), object["spec"]["template"].take());
        }
    }
    templates
}

#[tokio::test]
#[ignore = "reads the folder that SKEP_COMPAT names"]
async fn the_plan_of_a_takeover_predicts_its_result() {
    let kinds: Vec<Kind> =
        all_kinds().into_iter().chain(children()).chain([StatefulSets::kind(), Secrets::kind()]).collect();
    let rolled = golden::each(async |folder| rolled(&folder, &kinds).await).await.concat();
    assert_eq!(rolled.len(), 3, "docs/compatibility.md lists what rolls once: {rolled:#?}");
}

/// As an administrator who lets the operator replace pods.
fn settings() -> Settings {
    Settings { takeover_rollouts: true, ..golden::settings() }
}

/// The pods that are replaced in one folder, which are those that were planned to be.
async fn rolled(folder: &Path, kinds: &[Kind]) -> Vec<String> {
    let what = folder.display();
    let (fixture, names, _) = left_by_toolhive(folder, settings()).await;
    let plans = plans(&fixture, kinds, settings()).await;
    assert_eq!(plans.len(), names.len(), "{what}");
    for (object, plan) in &plans {
        assert_ne!(plan.verdict(), Verdict::Unreadable, "{what}: {object}");
        let writes =
            plan.writes.iter().filter(|planned| matches!(planned.write, Write::Create | Write::Delete));
        assert_eq!(writes.map(ToString::to_string).collect::<Vec<_>>(), [] as [&str; 0], "{what}: {object}");
        for planned in plan.writes.iter().filter(|planned| planned.write == Write::Apply) {
            assert_eq!(planned.from, ["thv-operator"], "{what}: {planned}");
        }
    }
    let would_roll: Vec<String> = plans
        .values()
        .flat_map(|plan| plan.writes.iter().filter(|planned| planned.rolls_pods()))
        .map(|planned| format!("{} {}", planned.kind.kind, planned.name))
        .collect();
    let before = templates(&fixture).await;
    let fixture = fixture.restart().await;
    for (kind, name) in &names {
        taken_over(&fixture, *kind, name).await;
    }
    let after = templates(&fixture).await;
    let did_roll: Vec<String> = before
        .iter()
        .filter(|(name, template)| after[*name] != **template)
        .map(|(name, _)| name.clone())
        .collect();
    assert_eq!(would_roll, did_roll, "{what}");
    fixture.operator.stop().await;
    let folder = folder.file_name().unwrap().to_string_lossy();
    did_roll.iter().map(|name| format!("{folder}: {name}")).collect()
}
