//! What is said of a configuration.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::object::{HasSpec, HasStatus};
use serde_json::json;
use skep_api::{config_status::ConfigStatus, refs::WorkloadReference};
use skep_converge::Child;
use skep_world::Watched;

use super::{Config, Inputs};
use crate::{
    conditions::{Finding, conditions},
    reference::config_hash,
};

/// The type of the condition of a configuration that can be used.
pub(super) const VALID: &str = "Valid";
/// The type of the condition of a configuration that is in use and should go.
pub(super) const DELETION_BLOCKED: &str = "DeletionBlocked";

/// The whole status: there is no other writer.
pub(super) fn status<K: Config>(inputs: &Inputs<K>, now: &Time) -> Child {
    let before = inputs.object.status().cloned().unwrap_or_default();
    let metadata = inputs.metadata();
    let generation = metadata.generation.unwrap_or_default();
    let status = ConfigStatus {
        observed_generation: Some(generation),
        // Workloads go on with what was last valid, so its hash stays.
        config_hash: match inputs.check {
            Ok(()) => Some(config_hash(inputs.object.spec())),
            Err(_) => before.config_hash,
        },
        referencing_workloads: inputs.referrers.clone(),
        conditions: conditions(findings(inputs), &before.conditions, generation, now),
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Child::status(K::Resource::KIND, text(&metadata.namespace), text(&metadata.name), json!(status))
}

/// The conditions, before it is known when they came about.
pub(super) fn findings<K: Config>(inputs: &Inputs<K>) -> Vec<Finding> {
    let mut all = vec![match &inputs.check {
        Ok(()) => Finding::yes(VALID, K::VALID, "the spec is valid"),
        Err(message) => Finding::no(VALID, K::invalid(inputs.object.spec()), message),
    }];
    all.extend(K::remarks(inputs.object.spec()));
    if !inputs.missing.is_empty() {
        all.push(Finding::no("ReferencesResolved", "NotFound", inputs.missing.join("; ")));
    }
    let held = inputs.held_by().map(in_use);
    all.extend(held.map(|message| Finding::yes(DELETION_BLOCKED, "ReferencedByWorkloads", message)));
    all
}

/// Names that a message has room for. The status lists all.
const NAMED: usize = 10;

/// Why the object stays although it should go.
pub(super) fn in_use(referrers: &[WorkloadReference]) -> String {
    let named = referrers.iter().take(NAMED).map(|referrer| format!("{} {}", referrer.kind, referrer.name));
    let named = named.collect::<Vec<_>>().join(", ");
    match referrers.len().saturating_sub(NAMED) {
        0 => format!("still used by {named}: it goes when they do not refer to it any more"),
        more => {
            format!("still used by {named} and {more} more: it goes when they do not refer to it any more")
        }
    }
}
