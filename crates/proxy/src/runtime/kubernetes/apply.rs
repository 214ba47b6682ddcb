//! Applying a server's objects: all of them as one decision, or none.
//!
//! Each apply has the resourceVersion that was read before the decision. If another client wrote since, the API server
//! responds with a conflict, and everything is read and decided again. So a proxy cannot overwrite the StatefulSet or
//! the Services of a newer proxy that wrote between its read and its write.

use backon::{ExponentialBuilder, Retryable};
use k8s_openapi::{
    api::{apps::v1::StatefulSet, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
    core::NamespaceResourceScope,
};
use serde::{Serialize, de::DeserializeOwned};
use skep_config::{annotations::ADOPT, labels, objects::PROXY_FIELD_MANAGER};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::{
    Platform, RuntimeError,
    gate::{self, Verdict},
};
use crate::limits;

/// A version that no object has, because the first write to a store is its second revision. An apply with it
/// creates the object, or fails as another client just has.
const ABSENT: &str = "1";

/// The objects of one server.
pub(super) struct Objects {
    pub(super) stateful_set: StatefulSet,
    pub(super) services: Vec<Service>,
    /// The generation of the MCPServer that they were computed from.
    pub(super) generation: i64,
    /// The kind of cluster that they are for.
    pub(super) platform: Platform,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// They are applied, and this is the StatefulSet. There was none before.
    Created(Box<StatefulSet>),
    /// They are applied, and this is the StatefulSet, which another proxy created.
    Applied(Box<StatefulSet>),
    /// Nothing is applied, because this StatefulSet is of a newer generation.
    HeldBack(Box<StatefulSet>),
}

impl Outcome {
    /// The live StatefulSet.
    pub fn stateful_set(&self) -> &StatefulSet {
        match self {
            Self::Created(live) | Self::Applied(live) | Self::HeldBack(live) => live,
        }
    }
}

/// The result, with the Services that are applied.
pub(super) struct Applied {
    pub(super) outcome: Outcome,
    pub(super) services: Vec<Service>,
}

/// Applies the objects, unless those of a newer generation exist. With a uid, nothing is created anew: a StatefulSet of this uid must
/// exist.
pub(super) async fn apply(
    client: &Client,
    namespace: &str,
    objects: &Objects,
    uid: Option<&str>,
) -> Result<Applied, RuntimeError> {
    let pace = ExponentialBuilder::default()
        .with_min_delay(limits::APPLY_PAUSE_LEAST)
        .with_max_delay(limits::APPLY_PAUSE_MOST)
        .with_max_times(limits::APPLY_TRIES)
        .with_jitter();
    let attempt = || async {
        let attempt = timeout(limits::APPLY_TIME, attempt(client, namespace, objects, uid));
        attempt.await.unwrap_or(Err(RuntimeError::Timeout))
    };
    attempt
        .retry(pace)
        .when(RuntimeError::is_transient)
        .notify(|error, _| {
            if error.is_conflict() {
                debug!(%error, "conflict: another client wrote the object; retrying");
            } else {
                warn!(%error, "failed to apply the server; retrying");
            }
        })
        .await
}

async fn attempt(
    client: &Client,
    namespace: &str,
    objects: &Objects,
    uid: Option<&str>,
) -> Result<Applied, RuntimeError> {
    let stateful_sets = Api::<StatefulSet>::namespaced(client.clone(), namespace);
    let services = Api::<Service>::namespaced(client.clone(), namespace);
    // The Services are read before the StatefulSet is applied. A newer proxy writes its StatefulSet first: if that
    // comes after ours, its Services come after this.
    let mut seen = Vec::with_capacity(objects.services.len());
    for service in &objects.services {
        seen.push(read(&services, &service.metadata).await?);
    }
    let live = read(&stateful_sets, &objects.stateful_set.metadata).await?;
    let is_there = |live: &StatefulSet| {
        live.metadata.uid.as_deref() == uid && live.metadata.deletion_timestamp.is_none()
    };
    if uid.is_some() && !live.as_ref().is_some_and(is_there) {
        return Err(RuntimeError::Gone);
    }
    for (service, seen) in objects.services.iter().zip(&seen) {
        check_claim(service, seen.as_ref())?;
    }
    check_claim(&objects.stateful_set, live.as_ref())?;
    if let (Verdict::HoldBack(theirs), Some(live)) = (gate::verdict(objects.generation, live.as_ref()), &live)
    {
        warn!(ours = objects.generation, theirs, "the StatefulSet is of a newer generation; nothing applied");
        let outcome = Outcome::HeldBack(Box::new(live.clone()));
        return Ok(Applied { outcome, services: Vec::new() });
    }
    let stateful_set = with_immutable_fields(objects.stateful_set.clone(), live.as_ref());
    let applied = write(&stateful_sets, stateful_set, live.as_ref()).await?;
    let mut services_applied = Vec::with_capacity(objects.services.len());
    for (service, seen) in objects.services.iter().zip(&seen) {
        let mut service = service.clone();
        service.metadata.owner_references = owner(&applied, objects.platform).map(|owner| vec![owner]);
        services_applied.push(write(&services, service, seen.as_ref()).await?);
    }
    let outcome = if live.is_none() { Outcome::Created } else { Outcome::Applied };
    Ok(Applied { outcome: outcome(Box::new(applied)), services: services_applied })
}

/// An object that people or other programs made is not touched, unless they hand it over. What a proxy made, ToolHive's or
/// another of this server, has its labels.
fn check_claim<K: Resource<DynamicType = ()>>(ours: &K, live: Option<&K>) -> Result<(), RuntimeError> {
    let Some(live) = live else { return Ok(()) };
    let label = |object: &K, key| object.meta().labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let is_labelled =
        [labels::TOOLHIVE, labels::APP].into_iter().all(|key| label(live, key) == label(ours, key));
    let entries = live.meta().managed_fields.iter().flatten();
    let is_applied = entries.into_iter().any(|entry| entry.manager.as_deref() == Some(PROXY_FIELD_MANAGER));
    let annotations = live.meta().annotations.as_ref();
    let is_handed_over = annotations.and_then(|all| all.get(ADOPT)).is_some_and(|value| value == "true");
    if is_labelled || is_applied || is_handed_over {
        return Ok(());
    }
    let name = ours.meta().name.as_deref().unwrap_or_default();
    Err(RuntimeError::OfOthers(format!("{} {name}", K::kind(&()))))
}

/// The podManagementPolicy of a StatefulSet is immutable.
fn with_immutable_fields(mut stateful_set: StatefulSet, live: Option<&StatefulSet>) -> StatefulSet {
    let policy = live.and_then(|live| live.spec.as_ref()?.pod_management_policy.clone());
    if let (Some(spec), Some(policy)) = (&mut stateful_set.spec, policy) {
        spec.pod_management_policy = Some(policy);
    }
    stateful_set
}

/// The Services are deleted with the StatefulSet. On OpenShift a proxy may not set blockOwnerDeletion: its API server
/// requires the permission to set the StatefulSet's finalizers.
fn owner(applied: &StatefulSet, platform: Platform) -> Option<OwnerReference> {
    let block_owner_deletion = Some(platform == Platform::Kubernetes);
    Some(OwnerReference { block_owner_deletion, ..applied.controller_owner_ref(&())? })
}

async fn read<K>(api: &Api<K>, metadata: &ObjectMeta) -> Result<Option<K>, RuntimeError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let name = metadata.name.as_deref().unwrap_or_default();
    api.get_opt(name).await.map_err(|error| failed::<K>("cannot read", name, error))
}

/// Applies an object if it is unchanged since it was read. One that did not exist must still not exist; one that did
/// must not have been deleted, which the uid shows.
async fn write<K>(api: &Api<K>, mut object: K, seen: Option<&K>) -> Result<K, RuntimeError>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + std::fmt::Debug,
    K: DeserializeOwned + Serialize,
{
    let metadata = object.meta_mut();
    metadata.uid = seen.and_then(|seen| seen.meta().uid.clone());
    metadata.resource_version = seen.map_or(Some(ABSENT.into()), |seen| seen.meta().resource_version.clone());
    let name = metadata.name.clone().unwrap_or_default();
    let params = PatchParams::apply(PROXY_FIELD_MANAGER).force();
    let applied = api.patch(&name, &params, &Patch::Apply(&object)).await;
    applied.map_err(|error| failed::<K>("cannot apply", &name, error))
}

fn failed<K: Resource<DynamicType = ()>>(verb: &'static str, name: &str, error: kube::Error) -> RuntimeError {
    RuntimeError::Request { verb, object: format!("{} {name}", K::kind(&())), error }
}
