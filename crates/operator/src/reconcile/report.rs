//! The status of an object, and events about it.

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use skep_api::conditions::Ready;
use skep_converge::{Applied, Child, Meta, Observed};
use tracing::debug;

use super::{Computed, Condition, Controller, Event, Outcome, Plan, ReconcileError, Reconciler};
use crate::resources::{Custom, kind_of};

impl<K: Controller> Reconciler<K> {
    /// Publishes events that are new, and writes the status if it changed.
    pub(super) async fn report(
        &self,
        computed: &Computed<K>,
        outcome: &Outcome,
        meta: &Meta,
        seen: &Observed,
        plan: &mut Plan,
    ) -> Result<(), ReconcileError> {
        let (mut status, conditions) = computed.status(outcome, &Time(Timestamp::now()));
        self.undeclared.strip(kind_of::<K>(), &mut status);
        plan.problem = outcome.message();
        let mut events = K::events(&computed.inputs, &computed.validation, outcome);
        events.extend(problem_event(computed, outcome, &conditions));
        plan.events.extend(self.events.publish(&reference::<K>(computed.object.meta()), events).await);
        let metadata = computed.object.meta();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let status = Child::status(kind_of::<K>(), text(&metadata.namespace), text(&metadata.name), status)
            .sparing(&K::reported_by_pods());
        match self.writer.apply_status(&status, meta, seen).await {
            Ok(done) => {
                self.record_write(done, plan);
                Ok(())
            }
            // It was deleted meanwhile.
            Err(error) if error.is_not_found() => {
                debug!(%error, "no status to write to");
                Ok(())
            }
            Err(error) => {
                if error.is_undeclared_field() {
                    self.undeclared.record_rejection();
                }
                Err(error.into())
            }
        }
    }

    /// Updates the cache with the response to a write to the object itself.
    pub(super) fn record_write(&self, done: Applied, plan: &mut Plan) {
        match done {
            Applied::Unchanged => {}
            Applied::Written(object) | Applied::TakenOver(object) => {
                self.world.record_write::<Custom<K>>(&object);
            }
            Applied::Planned(planned) => plan.writes.push(*planned),
        }
    }
}

/// The event about what keeps the object from being applied, unless the status reports it already.
fn problem_event<K: Controller>(
    computed: &Computed<K>,
    outcome: &Outcome,
    conditions: &[Condition],
) -> Option<Event> {
    let (event, reported_by) = match outcome {
        Outcome::Converged(_) => return None,
        Outcome::Blocked(problem) => {
            let others = computed.validation.problems.len().saturating_sub(1);
            (Event::about(problem, others), problem.reason.map_or(Ready::TYPE, |reason| reason.type_))
        }
        Outcome::Failed(error) => {
            (Event::new(K::failure(&computed.inputs, error), error.to_string()), Ready::TYPE)
        }
    };
    let of_type = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    let condition = of_type(reported_by).or_else(|| of_type(Ready::TYPE));
    if condition.is_some_and(|condition| condition.is_in(computed.object.conditions())) {
        return None;
    }
    Some(if K::HAS_PODS { event.keeping_pods() } else { event })
}

/// The object, as events refer to it.
fn reference<K: Controller>(metadata: &ObjectMeta) -> ObjectReference {
    let kind = kind_of::<K>();
    ObjectReference {
        api_version: Some(kind.api_version()),
        kind: Some(kind.kind.into()),
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
