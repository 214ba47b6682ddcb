//! The status of a configuration.

use skep_api::{
    conditions::{DeletionBlocked, ReferencesResolved},
    config_status::ConfigStatus,
    refs::WorkloadReference,
};

use super::{Config, Inputs};
use crate::{
    reconcile::{Condition, Validation},
    resources::{config_hash, listed},
};

/// The whole status: it has no other writer.
pub(super) fn status<K: Config>(inputs: &Inputs<K>, validation: &Validation) -> ConfigStatus {
    ConfigStatus {
        // Workloads keep the last valid configuration, so its hash stays.
        config_hash: match validation.problems.as_slice() {
            [] => Some(config_hash(inputs.object.spec())),
            _ => inputs.object.status().and_then(|status| status.config_hash.clone()),
        },
        referencing_workloads: listed(&inputs.referrers),
        ..ConfigStatus::default()
    }
}

pub(super) fn references_resolved<K: Config>(inputs: &Inputs<K>) -> Option<Condition> {
    let message = skep_config::field::joined(&inputs.missing);
    (!message.is_empty()).then(|| Condition::new(ReferencesResolved::NotFound, message))
}

pub(super) fn deletion_blocked<K: Config>(inputs: &Inputs<K>) -> Option<Condition> {
    let message = inputs.blockers().map(in_use)?;
    Some(Condition::new(DeletionBlocked::ReferencedByWorkloads, message))
}

/// How many workloads the message names. The status lists more.
const MAX_NAMED: usize = 10;

/// Why the deletion of the object waits.
pub(super) fn in_use(referrers: &[WorkloadReference]) -> String {
    let named =
        referrers.iter().take(MAX_NAMED).map(|referrer| format!("{} {}", referrer.kind, referrer.name));
    let mut named = named.collect::<Vec<_>>().join(", ");
    if let more @ 1.. = referrers.len().saturating_sub(MAX_NAMED) {
        named = format!("{named} and {more} more");
    }
    format!("in use by {named}: it is deleted when they no longer refer to it")
}
