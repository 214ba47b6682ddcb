//! What a kind fills in.

use std::{collections::BTreeMap, future::Future, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skep_converge::{Child, Finalizer, Kind, Meta};
use skep_world::{ReadError, Reader};

use super::{Blocked, Outcome};
use crate::{notice::Notice, watched::CustomResource};

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

/// What is to be done once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acts {
    /// Pods to delete, as they were seen.
    pub pods: Vec<(String, Meta)>,
    /// Annotations to set on the object when it is done.
    pub annotations: BTreeMap<&'static str, String>,
}
