//! Children become what they should be.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_converge::{Applied, Child, Error, prune};
use skep_world::Reader;
use tracing::info;

use super::{Controller, Driver};
use crate::{children, plan::Plan};

impl<C: Controller> Driver<C> {
    /// Writes the children that differ, and deletes those that are not wanted any more. Returns what was made or
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
                    children::learn(&self.world, child.kind, &object);
                    written.push(child.clone());
                }
                Applied::TakenOver(object) => {
                    info!(kind = child.kind.kind, %namespace, name = child.name, "taken over");
                    children::learn(&self.world, child.kind, &object);
                }
                Applied::Planned(planned) => {
                    if !planned.only_takes_over() {
                        written.push(child.clone());
                    }
                    plan.writes.push(*planned);
                }
            }
        }
        // Last: nothing that is wanted needs them any more.
        for (kind, owned) in children::owned_by(reader, uid) {
            let wanted = children.iter().any(|child| child.kind == kind && child.name == owned.name);
            if !wanted {
                let planned = prune(&self.writer, kind, &namespace, &owned.name, &owned.meta).await?;
                if planned.is_none() {
                    info!(kind = kind.kind, %namespace, name = owned.name, "not wanted any more");
                }
                plan.writes.extend(planned);
            }
        }
        Ok(written)
    }
}
