//! Takeovers that would replace running pods wait for the administrator: the installation of the operator replaces no pod.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};
use skep_api::conditions::RolloutPending;
use skep_config::annotations::ALLOW_ROLLOUT;
use skep_converge::{Child, Error, Planned};
use skep_world::Reader;

use super::{Computed, Condition, Controller, Outcome, Reconciler};
use crate::resources::children;

/// How many differences a condition lists.
const LISTED: usize = 3;

/// Whether running pods of another operator may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rollouts {
    /// Always: the administrator allows it.
    Allowed,
    /// Now: the user has changed the spec or a configuration that it refers to, or requested a restart.
    Requested,
    /// With the next change of the spec.
    Held,
}

impl<K: Controller> Reconciler<K> {
    /// Whether running pods of the object that another operator created may be replaced.
    pub(super) fn rollouts(&self, computed: &Computed<K>) -> Rollouts {
        let object = &computed.object;
        let metadata = object.meta();
        let is_allowed = metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(ALLOW_ROLLOUT))
            .is_some_and(|value| value == "true");
        if self.settings.takeover_rollouts || is_allowed {
            return Rollouts::Allowed;
        }
        let is_new = object.observed_generation() < metadata.generation;
        let has_condition = |reason: RolloutPending| {
            let expected = Condition::new(reason, "");
            object.conditions().iter().any(|one| one.type_ == expected.type_ && one.reason == expected.reason)
        };
        // A changed spec that could not be applied at once.
        let was_new = has_condition(RolloutPending::SpecChanged);
        let has_changed = object.observed_generation().is_some() && is_new || was_new;
        // While the pods wait, the hashes in the status are those of the configurations at that time.
        let is_reconfigured = || {
            let (now, _) = <K as Controller>::status(
                &computed.inputs,
                &computed.validation,
                &Outcome::Converged(Vec::new()),
            );
            has_condition(RolloutPending::WaitsForRollout)
                && hashes(&json!(now)) != hashes(&json!(object.status()))
        };
        if has_changed || is_reconfigured() || !K::actions(&computed.inputs).annotations.is_empty() {
            Rollouts::Requested
        } else {
            Rollouts::Held
        }
    }

    /// What another operator's pods would be replaced for, if that must wait.
    pub(super) async fn held(
        &self,
        reader: &mut Reader,
        owner: &ObjectMeta,
        children: &[Child],
        rollouts: Rollouts,
    ) -> Result<Vec<Planned>, Error> {
        let mut held = Vec::new();
        if rollouts != Rollouts::Held {
            return Ok(held);
        }
        for child in children.iter().filter(|child| child.runs_pods()) {
            let Some(live) = children::get(reader, child.kind, &child.name) else { continue };
            let uid = owner.uid.as_deref().unwrap_or_default();
            held.extend(self.writer.rollout_of_takeover(child, (&live.meta, &live.observed), uid).await?);
        }
        Ok(held)
    }

    /// The condition of an object whose changed spec cannot be applied, so that it is applied later without a further
    /// change.
    pub(super) fn postponed(
        &self,
        reader: &mut Reader,
        owner: &ObjectMeta,
        rollouts: Rollouts,
    ) -> Option<Condition> {
        let uid = owner.uid.as_deref().unwrap_or_default();
        let is_pending = K::HAS_PODS && rollouts == Rollouts::Requested && {
            let names = K::names(owner.name.as_deref().unwrap_or_default());
            let mut owned = children::owned_by(reader, uid, &names).into_iter();
            owned.any(|(kind, child)| kind.runs_pods() && child.observed.takeover)
        };
        let message = "the pods are replaced as soon as the changed spec can be applied";
        is_pending.then(|| Condition::new(RolloutPending::SpecChanged, message))
    }
}

/// The hashes of configurations in a status.
fn hashes(status: &Value) -> Map<String, Value> {
    let fields = status.as_object().into_iter().flatten();
    let hashes = fields.filter(|(name, hash)| name.ends_with("ConfigHash") && !hash.is_null());
    hashes.map(|(name, hash)| (name.clone(), hash.clone())).collect()
}

/// The condition of an object whose pods are not replaced yet.
pub(super) fn pending(held: &[Planned]) -> Option<Condition> {
    let first = held.first()?;
    let differences: Vec<String> = first.changes.iter().take(LISTED).map(ToString::to_string).collect();
    let more = if first.changes.len() > LISTED { ", …" } else { "" };
    let message = format!(
        "{} {} of another operator is left as it is, because a change would replace its pods ({}{more}). It is applied with the \
         next change of the spec, or at once with the annotation {ALLOW_ROLLOUT}=true",
        first.kind.kind,
        first.name,
        differences.join(", "),
    );
    Some(Condition::new(RolloutPending::WaitsForRollout, message))
}
