//! The one way in which every kind is worked on: resolve, compute, converge, report.

use std::{collections::BTreeMap, fmt::Display, future::Future, sync::Arc};

use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use kube::Client;
use skep_converge::{Applied, Child, Error, Finalizer, Kind, Meta, Mode, Observed, Writer, annotate, prune};
use skep_world::{ReadError, Reader, Target, Watched, World};
use tracing::{debug, info, warn};

use crate::{
    children,
    notice::{Notice, Notices},
    plan::{Found, Plan},
    watched::{Custom, CustomResource},
};

/// A kind that is worked on. The first step reads, the others only compute.
pub trait Controller: Send + Sync + 'static {
    /// The kind.
    type Resource: CustomResource;
    /// Everything that the computation depends on, looked up once.
    type Inputs: Send + Sync;

    /// The field manager that owns what this controller writes.
    const MANAGER: &'static str;
    /// Holds the object back from deletion until what is not garbage-collected is gone. Without it, all of it is.
    const FINALIZER: Option<Finalizer>;
    /// Whether it is put on. One that another operator put on is taken off either way.
    const ADDS_FINALIZER: bool = true;
    /// Whether [`held`](Self::held) may hold an object back. If not, nothing is looked up for one that goes.
    const MAY_BE_HELD: bool = false;

    /// Looks up everything that the object refers to.
    fn resolve(
        &self,
        object: Arc<<Self::Resource as CustomResource>::Object>,
        reader: &mut Reader,
    ) -> impl Future<Output = Result<Self::Inputs, ReadError>> + Send;

    /// The children that the object should have, in the order in which they are written, or why it cannot have them.
    fn desired(&self, inputs: &Self::Inputs) -> Result<Vec<Child>, Blocked>;

    /// The status fields that this controller owns.
    fn status(&self, inputs: &Self::Inputs, outcome: &Outcome, now: &Time) -> Child;

    /// What is to be done once, beside the children.
    fn acts(&self, _inputs: &Self::Inputs) -> Acts {
        Acts::default()
    }

    /// What to tell people. It is called each time, so it tells only what is new.
    fn notices(&self, _inputs: &Self::Inputs, _outcome: &Outcome) -> Vec<Notice> {
        Vec::new()
    }

    /// Objects that do not go with their owner by themselves, as kind and name.
    fn leftovers(&self, _name: &str) -> Vec<(Kind, String)> {
        Vec::new()
    }

    /// Why an object that is being deleted must stay for now.
    fn held(&self, _inputs: &Self::Inputs) -> Option<Blocked> {
        None
    }

    /// Looks at the cluster itself for what might hold an object, when nothing that is known does: what is gone cannot
    /// be brought back.
    fn look_again(&self, _reader: &Reader) -> impl Future<Output = Result<(), ReadError>> + Send {
        async { Ok(()) }
    }
}

/// Why an object cannot have its children as it is. What runs goes on running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What is wrong and where, for people.
    pub message: String,
}

impl Blocked {
    /// Blocked, with a sentence that says why.
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string() }
    }
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Self {
        Self::new(error)
    }
}

/// How the work on an object ended.
#[derive(Debug)]
pub enum Outcome {
    /// The children are what they should be. These had to be made or changed for it. One that another operator made, and
    /// that only became ours, is not among them: nothing that runs is another.
    Converged(Vec<Child>),
    /// The object must change, or something that it refers to; nothing was written.
    Blocked(Blocked),
    /// A write failed. It is tried again, unless only another spec will help.
    Failed(Error),
}

impl Outcome {
    /// Why the children are not what they should be.
    fn problem(&self) -> Option<String> {
        match self {
            Self::Converged(_) => None,
            Self::Blocked(blocked) => Some(blocked.message.clone()),
            Self::Failed(error) => Some(error.to_string()),
        }
    }
}

/// What is to be done once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acts {
    /// Pods to delete, as they were seen.
    pub pods: Vec<(String, Meta)>,
    /// Annotations to set on the object when it is done.
    pub annotations: BTreeMap<&'static str, String>,
}

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
        plan.problem = outcome.problem();
        let notices = self.controller.notices(&inputs, &outcome);
        plan.notices.extend(self.notices.publish(&reference::<C>(&metadata), notices).await);
        self.report(&inputs, &outcome, &entry.meta, &observed, plan).await?;
        match outcome {
            Outcome::Converged(_) => self.act(reader, &metadata, self.controller.acts(&inputs), plan).await,
            Outcome::Blocked(_) => Ok(()),
            // Only another spec will help, and that wakes the object by itself.
            Outcome::Failed(error) if error.is_invalid() || matches!(error, Error::Foreign { .. }) => Ok(()),
            Outcome::Failed(error) => Err(error.into()),
        }
    }

    /// Writes the children that differ, and deletes those that are not wanted any more. Returns what was made or
    /// changed.
    async fn converge(
        &self,
        reader: &mut Reader,
        owner: &ObjectMeta,
        children: Vec<Child>,
        plan: &mut Plan,
    ) -> Result<Vec<Child>, Error> {
        let uid = owner.uid.as_deref().unwrap_or_default();
        let mut written = Vec::new();
        for child in &children {
            let live = children::get(reader, child.kind, &child.name);
            let known = live.as_ref().map(|live| (&live.meta, &live.observed));
            match self.writer.apply(child, known, uid).await? {
                Applied::Unchanged => {}
                Applied::Written(object) => {
                    info!(kind = child.kind.kind, name = child.name, "written");
                    children::observe(&self.world, child.kind, &object);
                    written.push(child.clone());
                }
                Applied::TakenOver(object) => {
                    info!(kind = child.kind.kind, name = child.name, "taken over");
                    children::observe(&self.world, child.kind, &object);
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
                let namespace = &reader.target().namespace;
                let planned = prune(&self.writer, kind, namespace, &owned.name, &owned.meta).await?;
                if planned.is_none() {
                    info!(kind = kind.kind, name = owned.name, "not wanted any more");
                }
                plan.writes.extend(planned);
            }
        }
        Ok(written)
    }

    async fn report(
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
    fn learn(&self, done: Applied, plan: &mut Plan) {
        match done {
            Applied::Unchanged => {}
            Applied::Written(object) | Applied::TakenOver(object) => {
                self.world.observe::<C::Resource>(&object);
            }
            Applied::Planned(planned) => plan.writes.push(*planned),
        }
    }

    async fn act(
        &self,
        reader: &Reader,
        metadata: &ObjectMeta,
        acts: Acts,
        plan: &mut Plan,
    ) -> Result<(), Failure> {
        for (pod, seen) in &acts.pods {
            let kind = crate::watched::Pods::KIND;
            plan.writes.extend(prune(&self.writer, kind, &reader.target().namespace, pod, seen).await?);
        }
        if acts.annotations.is_empty() {
            return Ok(());
        }
        let annotated = annotate(&self.writer, C::Resource::KIND, metadata, &acts.annotations).await?;
        self.learn(annotated, plan);
        Ok(())
    }

    /// Lets an object go, unless something holds it. Whatever that is wakes the object when it does not any more.
    async fn finalize(
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
                plan.problem = outcome.problem();
                let notices = self.controller.notices(&inputs, &outcome);
                plan.notices.extend(self.notices.publish(&reference::<C>(metadata), notices).await);
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

/// Why the work on an object is to be tried again.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Something could not be written.
    #[error(transparent)]
    Write(#[from] Error),
}
