//! People are told what became of an object: by its status, and by events.

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use skep_converge::{Applied, Meta, Observed};
use skep_world::Watched;
use tracing::debug;

use super::{Controller, Driver, Failure, Outcome};
use crate::plan::Plan;

impl<C: Controller> Driver<C> {
    /// Publishes what is new, and takes down what is only planned to be.
    pub(super) async fn tell(
        &self,
        inputs: &C::Inputs,
        outcome: &Outcome,
        metadata: &ObjectMeta,
        plan: &mut Plan,
    ) {
        plan.problem = outcome.problem();
        let notices = self.controller.notices(inputs, outcome);
        plan.notices.extend(self.notices.publish(&reference::<C>(metadata), notices).await);
    }

    /// Writes the status, if it is another.
    pub(super) async fn report(
        &self,
        inputs: &C::Inputs,
        outcome: &Outcome,
        meta: &Meta,
        seen: &Observed,
        plan: &mut Plan,
    ) -> Result<(), Failure> {
        let status = self.controller.status(inputs, outcome, &Time(Timestamp::now()));
        match self.writer.apply_status(&status, meta, seen).await {
            Ok(done) => {
                self.learn(done, plan);
                Ok(())
            }
            // It was deleted meanwhile, and has no status any more.
            Err(error) if error.is_gone() => {
                debug!(%error, "no status to write to");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Takes in what became of a write to the object itself.
    pub(super) fn learn(&self, done: Applied, plan: &mut Plan) {
        match done {
            Applied::Unchanged => {}
            Applied::Written(object) | Applied::TakenOver(object) => {
                self.world.learn::<C::Resource>(&object);
            }
            Applied::Planned(planned) => plan.writes.push(*planned),
        }
    }
}

/// The object, as events name it.
fn reference<C: Controller>(metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(C::Resource::KIND.api_version()),
        kind: Some(C::Resource::KIND.kind.into()),
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
