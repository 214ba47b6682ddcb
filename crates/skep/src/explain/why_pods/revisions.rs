//! The revisions of a workload, and what each has changed.

use serde::Serialize;
use serde_json::Value;

use super::{
    causes::{Cause, causes},
    changes::{Change, changes},
    facts::{Facts, Template, WorkloadFacts},
};

/// A revision: a pod template, which replaced the pods of the one before.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Revision {
    pub(super) revision: i64,
    pub(super) created: String,
    /// Whether the pods are of this one.
    pub(super) is_current: bool,
    pub(super) causes: Vec<Cause>,
    pub(super) changes: Vec<Change>,
}

/// All that are known, newest first.
pub(super) fn revisions(workload: &WorkloadFacts, facts: &Facts) -> Vec<Revision> {
    let with_predecessor = workload.templates.iter().enumerate().map(|(index, template)| {
        let before = index.checked_sub(1).and_then(|place| workload.templates.get(place));
        revision(before, template, workload, facts)
    });
    let mut all: Vec<Revision> = with_predecessor.collect();
    all.reverse();
    all
}

fn revision(
    before: Option<&Template>,
    template: &Template,
    workload: &WorkloadFacts,
    facts: &Facts,
) -> Revision {
    let changed =
        before.map(|before| changes(&comparable(&before.template), &comparable(&template.template)));
    Revision {
        revision: template.revision,
        created: template.created.clone(),
        is_current: template.is_current,
        causes: causes(before, template, changed.as_deref(), workload, facts),
        changes: changed.unwrap_or_default(),
    }
}

/// The template without what controllers add.
fn comparable(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove("pod-template-hash");
    }
    template
}
