//! Writes the children that differ from the desired state.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_converge::{Applied, Child, Error, prune};
use skep_world::Reader;
use tracing::info;

use super::{Controller, Plan, Reconciler};
use crate::resources::children;

impl<K: Controller> Reconciler<K> {
    /// Writes the children that differ, and deletes those that are no longer desired. Returns what was created or
    /// changed.
    pub(super) async fn converge(
        &self,
        reader: &mut Reader,
        owner: &ObjectMeta,
        children: Vec<Child>,
        plan: &mut Plan,
    ) -> Result<Vec<Child>, Error> {
        let uid = owner.uid.as_deref().unwrap_or_default();
        let namespace = reader.target().namespace.clone();
        let mut written = Vec::new();
        for child in &children {
            let live = children::get(reader, child.kind, &child.name);
            let known = live.as_ref().map(|live| (&live.meta, &live.observed));
            match self.writer.apply(child, known, uid).await? {
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
        // Last, when no desired child needs them any more.
        for (kind, owned) in children::owned_by(reader, uid) {
            let desired = children.iter().any(|child| child.kind == kind && child.name == owned.name);
            if !desired {
                let planned = prune(&self.writer, kind, &namespace, &owned.name, &owned.meta).await?;
                if planned.is_none() {
                    info!(kind = kind.kind, %namespace, name = owned.name, "pruned");
                }
                plan.writes.extend(planned);
            }
        }
        Ok(written)
    }
}
