//! The status of an object, and events about it.

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use serde_json::Value;
use skep_api::{
    conditions::{Contended, Ready},
    events::EventReason,
};
use skep_converge::{Applied, Child, Meta, Observed};
use tracing::debug;

use super::{
    Computed, Condition, Controller, Event, Outcome, Plan, ReconcileError, Reconciler,
    converge::contended_condition,
};
use crate::resources::{Custom, kind_of};

impl<K: Controller> Reconciler<K> {
    /// Publishes events that are new, and writes the status if it changed.
    pub(super) async fn report(
        &self,
        computed: &Computed<K>,
        outcome: &Outcome,
        of_children: Vec<Condition>,
        meta: &Meta,
        seen: &Observed,
        plan: &mut Plan,
    ) -> Result<(), ReconcileError> {
        let metadata = computed.object.meta();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let child = |status: Value| {
            Child::status(kind_of::<K>(), text(&metadata.namespace), text(&metadata.name), status)
                .sparing(&K::reported_by_pods())
        };
        let mut of_children = of_children;
        if let Some(contention) = self.writer.status_contention(&child(Value::Null), &meta.uid) {
            plan.again = Some(plan.again.map_or(contention.again, |again| again.min(contention.again)));
            if !of_children.iter().any(|condition| condition.type_ == Contended::TYPE) {
                of_children.extend(contended_condition(&[contention]));
            }
        }
        let (mut status, conditions) = computed.status(outcome, of_children, &Time(Timestamp::now()));
        self.undeclared.strip(kind_of::<K>(), &mut status);
        plan.problem = outcome.message();
        let mut events = K::events(&computed.inputs, &computed.validation, outcome);
        events.extend(problem_event(computed, outcome, &conditions));
        events.extend(contended_event(computed, &conditions));
        plan.events.extend(self.events.publish(&reference::<K>(computed.object.meta()), events).await);
        let status = child(status);
        match self.writer.apply_status(&status, meta, seen).await {
            Ok(done) => {
                plan.reported = matches!(done, Applied::Written(_));
                self.record_write(done, plan);
                Ok(())
            }
            // It was deleted meanwhile.
            Err(error) if error.is_not_found() => {
                debug!(%error, "no status to write to");
                Ok(())
            }
            Err(error) => {
                if error.is_stale() {
                    return Err(error.into());
                }
                if error.is_undeclared_field() {
                    self.undeclared.record_rejection();
                }
                let event = Event::new(EventReason::StatusNotWritten, error.to_string());
                plan.events
                    .extend(self.events.publish(&reference::<K>(computed.object.meta()), vec![event]).await);
                Err(ReconcileError::Status(error))
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
    let before = computed.object.conditions();
    let is_reported = condition.is_some_and(|condition| match outcome {
        // Each retry may fail with another text, for example with a time in it.
        Outcome::Failed(error) => {
            condition.earlier(before).is_some_and(|old| error.is_reported_by(&old.message))
        }
        _ => condition.is_in(before),
    });
    if is_reported {
        return None;
    }
    Some(if K::HAS_PODS { event.keeping_pods() } else { event })
}

/// The event about fields that another writer changes back, unless the status reports some already.
fn contended_event<K: Controller>(computed: &Computed<K>, conditions: &[Condition]) -> Option<Event> {
    let contended = conditions.iter().find(|condition| condition.type_ == Contended::TYPE)?;
    let is_known = computed.object.conditions().iter().any(|known| known.type_ == Contended::TYPE);
    (!is_known).then(|| Event::new(EventReason::Contended, contended.message.clone()))
}

/// The object, as events refer to it.
pub(super) fn reference<K: Controller>(metadata: &ObjectMeta) -> ObjectReference {
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
