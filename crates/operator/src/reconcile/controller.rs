//! What a kind implements to be reconciled.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use kube::core::object::HasStatus;
use serde_json::{Value, json};
use skep_api::{events::EventReason, kinds::ApiKind};
use skep_converge::{Child, Error, Finalizer, Kind, Meta};
use skep_world::{ReadError, Reader};

use super::{BuildError, Condition, Event, Outcome, Problem, Validated, Validation};
use crate::settings::Settings;

/// A kind that is reconciled, in five steps. Each but the last gives what only the next one takes: an object
/// is [resolved](Resolve) to its inputs, these are [validated](Validate), and valid ones have
/// [children](Desired), which the [`Reconciler`](super::Reconciler) writes. The status reports on all of
/// them.
pub trait Controller: ApiKind {
    /// The inputs of the computation.
    type Inputs: Resolve<Self> + Validate + Send + Sync;

    /// Delays the deletion of an object until what the garbage collector does not find is deleted.
    const FINALIZER: Option<Finalizer> = None;
    /// Whether the finalizer is added. One that another operator added is removed either way.
    const ADDS_FINALIZER: bool = true;
    /// Whether [`deletion_blocker`](Self::deletion_blocker) may delay a deletion. If not, nothing is looked up for one.
    const BLOCKS_DELETION: bool = false;
    /// Whether the object has pods, which keep running while it has problems.
    const HAS_PODS: bool = false;

    /// The status fields that this controller owns, but for `observedGeneration` and `conditions`, and the conditions
    /// that depend on the outcome.
    fn status(
        inputs: &Self::Inputs,
        validation: &Validation,
        outcome: &Outcome,
    ) -> (<Self as HasStatus>::Status, Vec<Condition>);

    /// Whether pods of an older spec still serve.
    fn is_rolling(_inputs: &Self::Inputs) -> bool {
        false
    }

    /// The status fields that running pods report, as a set of managed fields. The controller never owns them.
    fn reported_by_pods() -> Value {
        json!({})
    }

    /// Events in addition to the one about a problem, which is published when it is new.
    fn events(_inputs: &Self::Inputs, _validation: &Validation, _outcome: &Outcome) -> Vec<Event> {
        Vec::new()
    }

    /// The reason of the event about a failed write.
    fn failure(_inputs: &Self::Inputs, _error: &Error) -> EventReason {
        EventReason::NotApplied
    }

    /// What to do once, after the children are written.
    fn actions(_inputs: &Self::Inputs) -> Actions {
        Actions::default()
    }

    /// Every child that an object of this name may have, whatever its spec, by kind and name. What ToolHive's operator made under
    /// one of these names is taken over, or deleted if it is not desired. Anything else that the object controls and that was
    /// never applied here belongs to another program.
    fn names(_name: &str) -> Vec<(Kind, String)> {
        Vec::new()
    }

    /// Objects that the garbage collector does not delete with their owner, or not in this order, as kind and name. Those
    /// that belong to others are left alone.
    fn unowned(_name: &str) -> Vec<(Kind, String)> {
        Vec::new()
    }

    /// Why an object that is being deleted must stay for now.
    fn deletion_blocker(_inputs: &Self::Inputs) -> Option<Problem> {
        None
    }

    /// Lists what might block a deletion again, when nothing in the cache does: a deletion cannot be undone.
    fn refresh(_reader: &Reader) -> impl Future<Output = Result<(), ReadError>> + Send {
        async { Ok(()) }
    }
}

/// An object of the kind with everything that its children and status depend on, looked up once.
pub trait Resolve<K>: Sized {
    /// Looks up everything that the object refers to.
    fn resolve(
        object: Arc<K>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> impl Future<Output = Result<Self, ReadError>> + Send;
}

/// Inputs that are validated before children are built of them.
pub trait Validate {
    /// Valid inputs, with everything that the validation has built of them.
    type Valid<'a>: Desired
    where
        Self: 'a;

    /// Runs all checks. The first problem is the one that the status reports.
    fn validate(&self) -> Validated<Self::Valid<'_>>;
}

/// Valid inputs.
pub trait Desired {
    /// The children, in the order in which they are written: the dependencies of pods before the pods.
    fn children(&self) -> Result<Vec<Child>, BuildError>;
}

/// A kind without children.
impl Desired for () {
    fn children(&self) -> Result<Vec<Child>, BuildError> {
        Ok(Vec::new())
    }
}

/// What to do once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Pods to delete, as they were seen.
    pub pods: Vec<(String, Meta)>,
    /// The workload whose pods are to be replaced, and the annotation of their template that does it. The desired children
    /// have it already; it is set alone if these cannot be applied.
    pub rollout: Option<(Kind, String, (&'static str, String))>,
    /// Annotations to set on the object when the actions are done.
    pub annotations: BTreeMap<&'static str, String>,
}
