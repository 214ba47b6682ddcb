//! How an object of any kind is reconciled: resolve, validate, compute the children, converge, report.

mod compute;
mod condition;
mod controller;
mod converge;
mod event;
mod finalize;
mod outcome;
mod plan;
mod problem;
mod report;
mod rollout;
mod undeclared;
mod validation;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use skep_api::events::EventReason;
use skep_converge::{Applied, Finalizer, Meta, Mode, Writer, annotate, annotate_pods, prune};
use skep_world::{Reader, Target, Watched, World};
use tracing::warn;

use crate::{
    resources::{Custom, CustomObject, Pods, children, field_manager, kind_of},
    settings::Settings,
};
pub(crate) use compute::Computed;
pub use condition::Condition;
pub use controller::{Actions, Controller, Desired, Resolve, Validate};
pub use event::Event;
pub(crate) use event::EventPublisher;
pub use outcome::{BuildError, Outcome, ReconcileError};
pub use plan::{Plan, Subject, Verdict};
pub use problem::Problem;
use report::reference;
pub(crate) use undeclared::undeclared;
pub use undeclared::{ByKind, UndeclaredField, UndeclaredFields};
pub use validation::{Validated, Validation};

/// Reconciles objects of one kind.
pub struct Reconciler<K> {
    writer: Writer,
    events: EventPublisher,
    world: Arc<World>,
    settings: Arc<Settings>,
    undeclared: Arc<UndeclaredFields>,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: Controller> Reconciler<K> {
    /// A reconciler that writes with the client, or only plans to.
    pub fn new(
        client: Client,
        world: Arc<World>,
        settings: Arc<Settings>,
        undeclared: Arc<UndeclaredFields>,
        mode: Mode,
    ) -> Self {
        let manager = field_manager::<K>();
        Self {
            events: EventPublisher::new(client.clone(), &manager, mode),
            writer: Writer::new(client, &manager, mode, settings.restores),
            world,
            settings,
            undeclared,
            kind: std::marker::PhantomData,
        }
    }

    /// Queues all objects of the kind.
    pub fn requeue(&self) {
        self.world.requeue::<Custom<K>>();
    }

    /// Reconciles one object. In plan mode, what would be written is returned. An error is to be retried.
    pub async fn reconcile(&self, target: &Arc<Target>) -> Result<Plan, ReconcileError> {
        let mut reader = self.world.reader(target.clone());
        let mut plan = Plan::default();
        let result = self.reconcile_with(&mut reader, &mut plan).await;
        match plan.subject {
            Subject::Absent if result.is_ok() => reader.discard(),
            _ => reader.finish(),
        }
        result.map(|()| plan)
    }

    async fn reconcile_with(&self, reader: &mut Reader, plan: &mut Plan) -> Result<(), ReconcileError> {
        let name = reader.target().name.to_string();
        let Some(entry) = reader.get::<Custom<K>>(&name) else { return Ok(()) };
        let object = entry.cached.with_status();
        let CustomObject { unreadable, observed, .. } = entry.cached;
        let resource_version = Some(entry.meta.resource_version.clone());
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                if let Some(metadata) = unreadable.filter(|metadata| metadata.deletion_timestamp.is_some()) {
                    let metadata = ObjectMeta { resource_version, ..ObjectMeta::clone(&metadata) };
                    return self.finalize_unreadable(reader, &metadata, plan).await;
                }
                // It was stored before a change of the schema. Its next change triggers another reconciliation.
                warn!(kind = kind_of::<K>().kind, name, %error, "cannot parse the object");
                plan.subject = Subject::Unreadable(error.to_string());
                return Ok(());
            }
        };
        plan.subject = Subject::Present;
        let metadata = ObjectMeta { resource_version, ..object.meta().clone() };
        if metadata.deletion_timestamp.is_some() {
            return self.finalize(reader, object, &entry.meta, &observed, &metadata, plan).await;
        }
        let missing = |finalizer: &Finalizer| K::ADDS_FINALIZER && !finalizer.is_on(&metadata);
        if let Some(finalizer) = K::FINALIZER.filter(missing) {
            match finalizer.add(&self.writer, kind_of::<K>(), &metadata).await? {
                Applied::Planned(planned) => plan.writes.push(*planned),
                // The response updates the cache, which queues the object again.
                done => {
                    self.record_write(done, plan);
                    return Ok(());
                }
            }
        }
        let mut computed = match Computed::new(object, &self.settings, reader).await {
            Ok(computed) => computed,
            Err(error) => {
                let event = Event::new(EventReason::ReadFailed, error.to_string());
                plan.events.extend(self.events.publish(&reference::<K>(&metadata), vec![event]).await);
                return Err(error.into());
            }
        };
        let rollouts = self.rollouts(&computed);
        let mut conditions = Vec::new();
        let outcome = match std::mem::replace(&mut computed.children, Ok(Vec::new())) {
            Ok(children) => match self.converge(reader, &metadata, children, rollouts, plan).await {
                Ok((written, of_children)) => {
                    conditions = of_children;
                    Outcome::Converged(written)
                }
                // A concurrent write is not worth reporting.
                Err(error) if error.is_stale() => return Err(error.into()),
                // The user who plans may have fewer permissions than the operator.
                Err(error) if self.writer.mode() == Mode::Plan && error.is_forbidden() => {
                    return Err(error.into());
                }
                Err(error) => Outcome::Failed(error),
            },
            Err(problem) => Outcome::Blocked(problem),
        };
        if !matches!(outcome, Outcome::Converged(_)) {
            conditions.extend(self.postponed(reader, &metadata, rollouts));
        }
        self.report(&computed, &outcome, conditions, &entry.meta, &observed, plan).await?;
        match outcome {
            Outcome::Converged(_) => {
                let actions = Actions { rollout: None, ..K::actions(&computed.inputs) };
                self.act(reader, &metadata, actions, plan).await
            }
            // What runs can be restarted, whether or not the new spec can be applied.
            Outcome::Blocked(_) => self.act(reader, &metadata, K::actions(&computed.inputs), plan).await,
            // Its deletion queues this one, if it has the labels by which it is watched.
            Outcome::Failed(error)
                if error.in_the_way().is_some_and(|(kind, name)| children::is_known(reader, kind, name)) =>
            {
                Ok(())
            }
            // Also if the API server rejects it as invalid: an admission policy does so, and nothing reports its change.
            Outcome::Failed(error) => Err(error.into()),
        }
    }

    /// Runs the one-time actions. The object is marked before pods are deleted: after a conflict, a retry must not delete their
    /// successors.
    async fn act(
        &self,
        reader: &Reader,
        metadata: &ObjectMeta,
        actions: Actions,
        plan: &mut Plan,
    ) -> Result<(), ReconcileError> {
        let namespace = &reader.target().namespace;
        if let Some((kind, name, (key, value))) = &actions.rollout {
            match annotate_pods(&self.writer, *kind, namespace, name, key, value).await? {
                Applied::Planned(planned) => plan.writes.push(*planned),
                Applied::Written(object) | Applied::TakenOver(object) => {
                    children::record_write(&self.world, *kind, &object);
                }
                Applied::Unchanged => {}
            }
        }
        if !actions.annotations.is_empty() {
            let annotated = annotate(&self.writer, kind_of::<K>(), metadata, &actions.annotations).await?;
            self.record_write(annotated, plan);
        }
        for (pod, seen) in &actions.pods {
            // In any state: the kubelet reports one all the time.
            let seen = Meta { resource_version: String::new(), ..seen.clone() };
            plan.writes.extend(prune(&self.writer, Pods::kind(), namespace, pod, &seen).await?);
        }
        Ok(())
    }
}
