//! Objects that are deleted.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use skep_converge::{Meta, Observed, prune};
use skep_world::{Reader, Watched};

use super::{Controller, Driver, Failure, Outcome};
use crate::{children, plan::Plan, watched::CustomResource};

impl<C: Controller> Driver<C> {
    /// Lets an object go, unless something holds it. Whatever that is wakes the object when it does not any more.
    pub(super) async fn finalize(
        &self,
        reader: &mut Reader,
        object: Arc<<C::Resource as CustomResource>::Object>,
        meta: &Meta,
        observed: &Observed,
        metadata: &ObjectMeta,
        plan: &mut Plan,
    ) -> Result<(), Failure> {
        let Some(finalizer) = C::FINALIZER.filter(|finalizer| finalizer.is_on(metadata)) else {
            return Ok(());
        };
        if C::MAY_BE_HELD {
            let mut inputs = self.controller.resolve(object.clone(), reader).await?;
            if self.controller.held(&inputs).is_none() {
                self.controller.look_again(reader).await?;
                inputs = self.controller.resolve(object, reader).await?;
            }
            if let Some(held) = self.controller.held(&inputs) {
                let outcome = Outcome::Blocked(held);
                self.tell(&inputs, &outcome, metadata, plan).await;
                return self.report(&inputs, &outcome, meta, observed, plan).await;
            }
        }
        let name = metadata.name.clone().unwrap_or_default();
        for (kind, name) in self.controller.leftovers(&name) {
            if let Some(child) = children::get(reader, kind, &name) {
                let namespace = &reader.target().namespace;
                plan.writes.extend(prune(&self.writer, kind, namespace, &name, &child.meta).await?);
            }
        }
        let removed = finalizer.remove(&self.writer, C::Resource::KIND, metadata).await?;
        plan.writes.extend(removed.planned());
        Ok(())
    }
}
