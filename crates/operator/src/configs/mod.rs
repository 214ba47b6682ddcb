//! What the six kinds of configuration have in common: they are checked, they say who uses them, and they cannot be
//! deleted while somebody does.
//!
//! A configuration's status is written by its own controller and by nobody else. Workloads read the spec, check it by
//! the same function, and report what came out in their own status.

mod needs;
mod notices;
mod status;

use std::{marker::PhantomData, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::core::object::{HasSpec, HasStatus};
use serde::Serialize;
use serde_json::json;
use skep_api::{config_status::ConfigStatus, refs::WorkloadReference};
use skep_converge::{Child, Finalizer};
use skep_world::{ReadError, Reader, Watched};

use crate::{
    conditions::Finding,
    driver::{Blocked, Controller, Outcome},
    notice::Notice,
    refers::{referrers, refresh_referrers},
    watched::CustomResource,
};

/// One kind of configuration.
pub(crate) trait Config: Send + Sync + 'static {
    /// The kind.
    type Resource: CustomResource<Object: HasSpec<Spec: Serialize> + HasStatus<Status = ConfigStatus>>;

    /// The field manager that owns what its controller writes.
    const MANAGER: &'static str;
    /// Holds an object back from deletion while it is in use.
    const FINALIZER: Finalizer;
    /// The reason of a `Valid` condition that holds.
    const VALID: &'static str;

    /// What is wrong with an object by itself, in a sentence that names the field.
    fn check(spec: &Spec<Self>) -> Result<(), String>;

    /// The reason of a `Valid` condition that does not hold.
    fn invalid(spec: &Spec<Self>) -> &'static str;

    /// What else is to be said of an object.
    fn remarks(_spec: &Spec<Self>) -> Vec<Finding> {
        Vec::new()
    }
}

/// An object of a kind of configuration.
type Object<K> = <<K as Config>::Resource as CustomResource>::Object;
/// Its spec.
pub(crate) type Spec<K> = <Object<K> as HasSpec>::Spec;

/// The controller of one kind of configuration.
pub(crate) struct Configs<K>(PhantomData<fn() -> K>);

impl<K> Default for Configs<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// Everything that the status of a configuration depends on.
pub(crate) struct Inputs<K: Config> {
    object: Arc<Object<K>>,
    check: Result<(), String>,
    /// Who uses it.
    referrers: Vec<WorkloadReference>,
    /// What it needs of the cluster and is not there, in sentences.
    missing: Vec<String>,
}

impl<K: Config> Inputs<K> {
    fn metadata(&self) -> &ObjectMeta {
        K::Resource::metadata(&self.object)
    }

    /// Who keeps it from being deleted, if somebody wants to.
    fn held_by(&self) -> Option<&[WorkloadReference]> {
        let leaving = self.metadata().deletion_timestamp.is_some();
        (leaving && !self.referrers.is_empty()).then_some(&*self.referrers)
    }
}

impl<K: Config> Controller for Configs<K> {
    type Resource = K::Resource;
    type Inputs = Inputs<K>;

    const MANAGER: &'static str = K::MANAGER;
    const FINALIZER: Option<Finalizer> = Some(K::FINALIZER);
    const MAY_BE_HELD: bool = true;

    async fn resolve(&self, object: Arc<Object<K>>, reader: &mut Reader) -> Result<Inputs<K>, ReadError> {
        let name = reader.target().name.to_string();
        let referrers = referrers(reader, K::Resource::KIND, &name);
        let spec = json!(object.spec());
        let missing = needs::missing(&spec, reader).await?;
        Ok(Inputs { check: K::check(object.spec()), object, referrers, missing })
    }

    /// A configuration has no children; workloads look at it themselves.
    fn desired(&self, inputs: &Inputs<K>) -> Result<Vec<Child>, Blocked> {
        match &inputs.check {
            Ok(()) => Ok(Vec::new()),
            Err(message) => Err(Blocked::new(message)),
        }
    }

    fn status(&self, inputs: &Inputs<K>, _: &Outcome, now: &Time) -> Child {
        status::status(inputs, now)
    }

    fn notices(&self, inputs: &Inputs<K>, _: &Outcome) -> Vec<Notice> {
        notices::notices(inputs)
    }

    fn held(&self, inputs: &Inputs<K>) -> Option<Blocked> {
        inputs.held_by().map(|referrers| Blocked::new(status::in_use(referrers)))
    }

    async fn look_again(&self, reader: &Reader) -> Result<(), ReadError> {
        refresh_referrers(reader).await
    }
}
