//! Writes the children that differ from the desired state.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_api::conditions::Contended;
use skep_converge::{Applied, Child, Contention, Error, prune};
use skep_world::Reader;
use tracing::info;

use super::{
    Condition, Controller, Plan, Reconciler,
    rollout::{Rollouts, pending},
};
use crate::resources::children;

/// The condition of an object of whose children another writer changes fields back.
pub(super) fn contended_condition(contended: &[Contention]) -> Option<Condition> {
    let messages: Vec<&str> = contended.iter().map(|contention| contention.message.as_str()).collect();
    let message = format!("{}; they are restored less and less often", messages.join("; "));
    (!messages.is_empty()).then(|| Condition::new(Contended::ChangedBack, message))
}

/// Whether some of these were applied for an object that was then deleted without its children.
fn is_orphaned(reader: &mut Reader, children: &[Child]) -> bool {
    children
        .iter()
        .filter_map(|child| children::get(reader, child.kind, &child.name))
        .any(|live| live.observed.owner.is_none() && live.observed.owned.is_some())
}

impl<K: Controller> Reconciler<K> {
    /// Writes the children that differ, and deletes those that are no longer desired. Pods of another operator are replaced
    /// only if `rollouts` are allowed. Returns what was created or changed, and conditions that the object gets.
    pub(super) async fn converge(
        &self,
        reader: &mut Reader,
        owner: &ObjectMeta,
        children: Vec<Child>,
        rollouts: Rollouts,
        plan: &mut Plan,
    ) -> Result<(Vec<Child>, Vec<Condition>), Error> {
        let uid = owner.uid.as_deref().unwrap_or_default();
        let namespace = reader.target().namespace.clone();
        let mut written = Vec::new();
        let held = self.held(reader, owner, &children, rollouts).await?;
        let mut conditions: Vec<Condition> = pending(&held).into_iter().collect();
        let mut contended = Vec::new();
        for child in &children {
            let mut live = children::get(reader, child.kind, &child.name);
            if let Some(live) = live.as_mut().filter(|live| live.observed.is_of_others()) {
                // By its labels: its proxy made it, or it was restored from a backup, without its controller.
                let is_labelled = live.server.as_deref() == owner.name.as_deref();
                live.observed.handed_over = is_labelled || child.is_bare() && is_orphaned(reader, &children);
            }
            let known = live.as_ref().map(|live| (&live.meta, &live.observed));
            let is_held = (child.runs_pods() || child.configures_pods())
                && live.as_ref().is_some_and(|live| live.observed.takeover);
            if is_held && !held.is_empty() {
                continue;
            }
            let applied = self.writer.apply(child, known, uid).await?;
            contended.extend(self.writer.contention(child, uid));
            match applied {
                Applied::Unchanged => {}
                Applied::Written(object) => {
                    info!(kind = child.kind.kind, %namespace, name = child.name, "written");
                    children::record_write(&self.world, child.kind, &object);
                    written.push(child.clone());
                }
                Applied::TakenOver(object) => {
                    info!(kind = child.kind.kind, %namespace, name = child.name, "taken over");
                    children::record_write(&self.world, child.kind, &object);
                }
                Applied::Planned(planned) => {
                    if !planned.only_takes_over() {
                        written.push(child.clone());
                    }
                    plan.writes.push(*planned);
                }
            }
        }
        conditions.extend(contended_condition(&contended));
        plan.again = contended.iter().map(|contention| contention.again).min();
        if !held.is_empty() {
            // The pods that keep running may need what is no longer desired.
            plan.held = held;
            return Ok((written, conditions));
        }
        // Last, when no desired child needs them any more, and no pod of an older template.
        let names = K::names(owner.name.as_deref().unwrap_or_default());
        debug_assert!(
            children.iter().all(|child| names.contains(&(child.kind, child.name.clone()))),
            "a child is not among {names:?}"
        );
        let all = children::owned_by(reader, uid, &names);
        if all.iter().any(|(kind, owned)| kind.runs_pods() && owned.is_rolling) {
            return Ok((written, conditions));
        }
        for (kind, owned) in all {
            let desired = children.iter().any(|child| child.kind == kind && child.name == owned.name);
            if !desired {
                let planned = prune(&self.writer, kind, &namespace, &owned.name, &owned.meta).await?;
                if planned.is_none() {
                    info!(kind = kind.kind, %namespace, name = owned.name, "pruned");
                }
                plan.writes.extend(planned);
            }
        }
        Ok((written, conditions))
    }
}
