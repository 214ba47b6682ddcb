//! The one way in which every kind is worked on: resolve, compute, converge, report.

mod controller;
mod converge;
mod finalize;
mod outcome;
mod report;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use skep_converge::{Applied, Error, Finalizer, Mode, Writer, annotate, prune};
use skep_world::{Reader, Target, Watched, World};
use tracing::warn;

use crate::{
    notice::Notices,
    plan::{Found, Plan},
    watched::{Custom, CustomResource, Pods},
};
pub use controller::{Acts, Controller};
pub use outcome::{Blocked, Failure, Outcome};

/// Works on objects of one kind.
pub struct Driver<C> {
    controller: C,
    writer: Writer,
    notices: Notices,
    world: Arc<World>,
}

impl<C: Controller> Driver<C> {
    /// A driver that writes with the client, or plans to.
    pub fn new(controller: C, client: Client, world: Arc<World>, mode: Mode) -> Self {
        let notices = Notices::new(client.clone(), C::MANAGER, mode);
        Self { controller, writer: Writer::new(client, C::MANAGER, mode), notices, world }
    }

    /// Works on one object. What is not done, because it is only to be planned, is returned. An error is one to try
    /// again.
    pub async fn reconcile(&self, target: &Arc<Target>) -> Result<Plan, Failure> {
        let mut reader = self.world.reader(target.clone());
        let mut plan = Plan::default();
        let result = self.work(&mut reader, &mut plan).await;
        reader.finish();
        result.map(|()| plan)
    }

    async fn work(&self, reader: &mut Reader, plan: &mut Plan) -> Result<(), Failure> {
        let name = reader.target().name.to_string();
        let Some(entry) = reader.get::<C::Resource>(&name) else { return Ok(()) };
        let Custom { object, observed } = entry.kept;
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                // It was stored before a change of the schema. It waits for somebody to mend it.
                warn!(kind = C::Resource::KIND.kind, name, %error, "the object cannot be read");
                plan.found = Found::Unreadable(error);
                return Ok(());
            }
        };
        plan.found = Found::Object;
        let resource_version = Some(entry.meta.resource_version.clone());
        let metadata = ObjectMeta { resource_version, ..C::Resource::metadata(&object).clone() };
        if metadata.deletion_timestamp.is_some() {
            return self.finalize(reader, object, &entry.meta, &observed, &metadata, plan).await;
        }
        let missing = |finalizer: &Finalizer| C::ADDS_FINALIZER && !finalizer.is_on(&metadata);
        if let Some(finalizer) = C::FINALIZER.filter(missing) {
            match finalizer.add(&self.writer, C::Resource::KIND, &metadata).await? {
                Applied::Planned(planned) => plan.writes.push(*planned),
                // The answer is news to the world, so the object is worked on again, as it is now.
                done => {
                    self.learn(done, plan);
                    return Ok(());
                }
            }
        }
        let inputs = self.controller.resolve(object, reader).await?;
        let outcome = match self.controller.desired(&inputs) {
            Ok(children) => match self.converge(reader, &metadata, children, plan).await {
                Ok(written) => Outcome::Converged(written),
                // Somebody else wrote meanwhile, which is nothing to tell anybody.
                Err(error) if error.is_stale() => return Err(error.into()),
                // Whoever plans may be allowed less than whoever will write.
                Err(error) if self.writer.mode() == Mode::Plan && error.is_forbidden() => {
                    return Err(error.into());
                }
                Err(error) => Outcome::Failed(error),
            },
            Err(blocked) => Outcome::Blocked(blocked),
        };
        self.tell(&inputs, &outcome, &metadata, plan).await;
        self.report(&inputs, &outcome, &entry.meta, &observed, plan).await?;
        match outcome {
            Outcome::Converged(_) => self.act(reader, &metadata, self.controller.acts(&inputs), plan).await,
            Outcome::Blocked(_) => Ok(()),
            // Only another spec will help, and that wakes the object by itself.
            Outcome::Failed(error) if error.is_invalid() || matches!(error, Error::Foreign { .. }) => Ok(()),
            Outcome::Failed(error) => Err(error.into()),
        }
    }

    /// Does what is to be done once.
    async fn act(
        &self,
        reader: &Reader,
        metadata: &ObjectMeta,
        acts: Acts,
        plan: &mut Plan,
    ) -> Result<(), Failure> {
        for (pod, seen) in &acts.pods {
            plan.writes.extend(prune(&self.writer, Pods::KIND, &reader.target().namespace, pod, seen).await?);
        }
        if acts.annotations.is_empty() {
            return Ok(());
        }
        let annotated = annotate(&self.writer, C::Resource::KIND, metadata, &acts.annotations).await?;
        self.learn(annotated, plan);
        Ok(())
    }
}
