//! What all kinds of configuration share: they are validated, they list the workloads that refer to them, and their
//! deletion waits for these.
//!
//! A configuration's status is written by its own controller alone. Workloads read the spec, check it by the same
//! function, and report the result in their own status.

mod required_keys;
mod status;

use std::sync::Arc;

use kube::core::object::HasStatus;
use serde_json::json;
use skep_api::{
    conditions::{Reason, Valid},
    config_status::ConfigStatus,
    events::EventReason,
    kinds::ApiKind,
    refs::WorkloadReference,
};
use skep_config::FieldError;
use skep_converge::Finalizer;
use skep_world::{ReadError, Reader};

use crate::{
    reconcile::{Condition, Controller, Event, Outcome, Problem, Resolve, Validate, Validated, Validation},
    resources::{RefError, ResolvedRef, referrers, refresh_referrers},
    settings::Settings,
};

/// A kind of configuration.
pub trait Config: ApiKind + HasStatus<Status = ConfigStatus> {
    /// Delays the deletion of an object while workloads refer to it.
    const CONFIG_FINALIZER: Finalizer;
    /// The reason of the condition `Valid` when it is met.
    const VALID: Valid = Valid::ValidationSucceeded;

    /// Everything that is wrong with an object by itself, with fields below its `spec`. Both its own controller and the
    /// workloads that refer to it call this. Rules that the API server enforces are not checked again.
    fn check(spec: &Self::Spec) -> Vec<FieldError>;

    /// The reason of the condition `Valid` when it is not met.
    fn invalid() -> Valid {
        Valid::ValidationFailed
    }

    /// Conditions in addition to `Valid`.
    fn further_conditions(_spec: &Self::Spec) -> Vec<Condition> {
        Vec::new()
    }
}

/// The configuration that a workload refers to, if it exists and is valid.
pub(crate) fn checked<K: Config>(reference: &ResolvedRef<K>) -> Result<&K, RefError> {
    reference.checked(|config| K::check(config.spec()))
}

/// Everything that the status of a configuration depends on.
pub struct Inputs<K> {
    object: Arc<K>,
    /// The workloads that refer to it.
    referrers: Vec<WorkloadReference>,
    /// The keys of Secrets and ConfigMaps that it refers to and that do not exist.
    missing: Vec<FieldError>,
}

impl<K: Config> Inputs<K> {
    /// The workloads that block the deletion of the object, if it is being deleted.
    fn blockers(&self) -> Option<&[WorkloadReference]> {
        let is_deleted = self.object.meta().deletion_timestamp.is_some();
        (is_deleted && !self.referrers.is_empty()).then_some(&*self.referrers)
    }
}

impl<K: Config> Resolve<K> for Inputs<K> {
    async fn resolve(object: Arc<K>, _: &Arc<Settings>, reader: &mut Reader) -> Result<Self, ReadError> {
        let name = reader.target().name.to_string();
        let referrers = referrers::<K>(reader, &name);
        let spec = json!(object.spec());
        let missing = required_keys::missing(&spec, reader).await?;
        Ok(Self { object, referrers, missing })
    }
}

impl<K: Config> Validate for Inputs<K> {
    type Valid<'a> = ();

    fn validate(&self) -> Validated<()> {
        let spec = self.object.spec();
        let mut validation = Validation::default();
        let errors = K::check(spec);
        if errors.is_empty() {
            validation.add(Condition::new(K::VALID, "the spec is valid"));
        } else {
            validation.add(Condition::new(K::invalid(), skep_config::field::joined(&errors)));
        }
        for error in errors {
            let problem = Problem::new(error).reported_as(K::invalid());
            validation.fail(problem.published_as(EventReason::ConfigInvalid));
        }
        K::further_conditions(spec).into_iter().for_each(|condition| validation.add(condition));
        validation.add(status::references_resolved(self));
        validation.add(status::deletion_blocked(self));
        validation.finish(|| Ok(()))
    }
}

impl<K: Config> Controller for K {
    type Inputs = Inputs<K>;

    const FINALIZER: Option<Finalizer> = Some(K::CONFIG_FINALIZER);
    const BLOCKS_DELETION: bool = true;

    fn status(inputs: &Inputs<K>, validation: &Validation, _: &Outcome) -> (ConfigStatus, Vec<Condition>) {
        (status::status(inputs, validation), Vec::new())
    }

    fn events(inputs: &Inputs<K>, validation: &Validation, _: &Outcome) -> Vec<Event> {
        let mut before = inputs.object.conditions().iter();
        let was_invalid =
            before.any(|condition| condition.type_ == Valid::TYPE && condition.status == "False");
        let is_valid = validation.problems.is_empty();
        (was_invalid && is_valid)
            .then(|| Event::new(EventReason::ConfigValid, "the spec is valid again"))
            .into_iter()
            .collect()
    }

    fn deletion_blocker(inputs: &Inputs<K>) -> Option<Problem> {
        let reason: Reason = skep_api::conditions::DeletionBlocked::ReferencedByWorkloads.into();
        inputs.blockers().map(|referrers| {
            let problem = Problem::of("", status::in_use(referrers)).reported_as(reason);
            problem.published_as(EventReason::DeletionBlocked)
        })
    }

    async fn refresh(reader: &Reader) -> Result<(), ReadError> {
        refresh_referrers(reader).await
    }
}
