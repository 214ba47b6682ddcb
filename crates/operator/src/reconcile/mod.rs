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
mod undeclared;
mod validation;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use skep_converge::{Applied, Error, Finalizer, Mode, Writer, annotate, prune};
use skep_world::{Reader, Target, Watched, World};
use tracing::warn;

use crate::{
    resources::{Custom, CustomObject, MANAGER_PREFIX, Pods, kind_of},
    settings::Settings,
};
pub(crate) use compute::Computed;
pub use condition::Condition;
pub use controller::{Actions, Controller};
pub use event::Event;
pub(crate) use event::EventPublisher;
pub use outcome::{BuildError, Outcome, ReconcileError};
pub use plan::{Plan, Subject, Verdict};
pub use problem::Problem;
pub(crate) use undeclared::undeclared;
pub use undeclared::{ByKind, UndeclaredField, UndeclaredFields};
pub use validation::Validation;

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
            writer: Writer::new(client, &manager, mode),
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
        reader.finish();
        result.map(|()| plan)
    }

    async fn reconcile_with(&self, reader: &mut Reader, plan: &mut Plan) -> Result<(), ReconcileError> {
        let name = reader.target().name.to_string();
        let Some(entry) = reader.get::<Custom<K>>(&name) else { return Ok(()) };
        let CustomObject { object, observed, .. } = entry.cached;
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                // It was stored before a change of the schema. Its next change triggers another reconciliation.
                warn!(kind = kind_of::<K>().kind, name, %error, "cannot parse the object");
                plan.subject = Subject::Unreadable(error.to_string());
                return Ok(());
            }
        };
        plan.subject = Subject::Present;
        let resource_version = Some(entry.meta.resource_version.clone());
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
        let mut computed = Computed::new(object, &self.settings, reader).await?;
        let outcome = match std::mem::replace(&mut computed.children, Ok(Vec::new())) {
            Ok(children) => match self.converge(reader, &metadata, children, plan).await {
                Ok(written) => Outcome::Converged(written),
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
        self.report(&computed, &outcome, &entry.meta, &observed, plan).await?;
        match outcome {
            Outcome::Converged(_) => self.act(reader, &metadata, K::actions(&computed.inputs), plan).await,
            Outcome::Blocked(_) => Ok(()),
            // The deletion of the other's object queues this one.
            Outcome::Failed(Error::Foreign { .. }) => Ok(()),
            // Also if the API server rejects it as invalid: an admission policy does so, and nothing reports its change.
            Outcome::Failed(error) => Err(error.into()),
        }
    }

    /// Runs the one-time actions.
    async fn act(
        &self,
        reader: &Reader,
        metadata: &ObjectMeta,
        actions: Actions,
        plan: &mut Plan,
    ) -> Result<(), ReconcileError> {
        for (pod, seen) in &actions.pods {
            plan.writes
                .extend(prune(&self.writer, Pods::kind(), &reader.target().namespace, pod, seen).await?);
        }
        if actions.annotations.is_empty() {
            return Ok(());
        }
        let annotated = annotate(&self.writer, kind_of::<K>(), metadata, &actions.annotations).await?;
        self.record_write(annotated, plan);
        Ok(())
    }
}

/// The field manager of a kind's controller: one for each, so that one never prunes what another owns.
pub fn field_manager<K: Controller>() -> String {
    format!("{MANAGER_PREFIX}{}", kind_of::<K>().kind.to_lowercase())
}
