//! What a kind implements to be reconciled.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use kube::core::object::HasStatus;
use serde_json::{Value, json};
use skep_api::{events::EventReason, kinds::ApiKind};
use skep_converge::{Child, Error, Finalizer, Kind, Meta};
use skep_world::{ReadError, Reader};

use super::{BuildError, Condition, Event, Outcome, Problem, Validation};
use crate::settings::Settings;

/// A kind that is reconciled, in five steps: `resolve` reads, `validate`, `desired` and `status` compute, and the
/// [`Reconciler`](super::Reconciler) writes between the last two.
pub trait Controller: ApiKind {
    /// Everything that the computation depends on, looked up once.
    type Inputs: Send + Sync;

    /// Delays the deletion of an object until what the garbage collector does not find is deleted.
    const FINALIZER: Option<Finalizer> = None;
    /// Whether the finalizer is added. One that another operator added is removed either way.
    const ADDS_FINALIZER: bool = true;
    /// Whether [`deletion_blocker`](Self::deletion_blocker) may delay a deletion. If not, nothing is looked up for one.
    const BLOCKS_DELETION: bool = false;
    /// Whether the object has pods, which keep running while it has problems.
    const HAS_PODS: bool = false;

    /// Looks up everything that the object refers to.
    fn resolve(
        object: Arc<Self>,
        settings: &Arc<Settings>,
        reader: &mut Reader,
    ) -> impl Future<Output = Result<Self::Inputs, ReadError>> + Send;

    /// The conditions of the object, and the problems that keep it from being applied.
    fn validate(inputs: &Self::Inputs) -> Validation;

    /// The children of an object without problems, in the order in which they are written.
    fn desired(_inputs: &Self::Inputs) -> Result<Vec<Child>, BuildError> {
        Ok(Vec::new())
    }

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
