//! What the operator would write for the objects of a cluster: the same steps, with nothing written.

use std::sync::Arc;

use futures::{StreamExt, stream};
use skep_converge::{Kind, Mode, error_chain};
use skep_world::{ReadError, Target};
use tracing::debug;

use super::{
    platform,
    registry::{Registry, watches},
    requests,
    schemas::{SchemaReader, kinds},
};
use crate::{
    reconcile::{ByKind, Plan, ReconcileError},
    settings::Settings,
};

/// How many objects are planned for at once.
const AT_ONCE: usize = 8;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The configuration of the client is invalid.
    #[error("cannot connect to the cluster: {0}")]
    Client(#[from] kube::Error),
    /// The cluster serves no kind of the API.
    #[error("the cluster serves none of the kinds; install the CRDs first (skep crds)")]
    NoKinds,
    /// Something could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The plans for a cluster.
pub struct ClusterPlan {
    /// Those of the selected objects.
    pub objects: Vec<Planning>,
    /// The status fields that the CRDs of the cluster do not declare, which are left out.
    pub undeclared: ByKind,
    /// The kinds that the cluster does not serve, which have no objects.
    pub unserved: Vec<Kind>,
}

/// The plan for one object, or why there is none.
pub type Planning = (Arc<Target>, Result<Plan, ReconcileError>);

/// Lists the namespaces once, or all if none is given, and plans for the selected objects.
pub async fn plan(
    config: kube::Config,
    namespaces: &[String],
    settings: Settings,
    is_selected: impl Fn(&Target) -> bool,
) -> Result<ClusterPlan, PlanError> {
    let client = requests::counted_client(config, Mode::Plan, requests::REQUEST_TIME, |_, _| {})?;
    let world = watches().list(&client, namespaces).await?;
    let unserved = world.unserved();
    if kinds().iter().all(|kind| unserved.contains(kind)) {
        return Err(PlanError::NoKinds);
    }
    let mut targets = world.queue().drain();
    targets.retain(|target| is_selected(target));
    targets.sort_by_cached_key(|target| (target.namespace.clone(), target.kind.kind, target.name.clone()));
    let settings = platform::with_platform(&settings, &client).await?;
    let mut schemas = SchemaReader::new(client.clone());
    if let Err(error) = schemas.refresh().await {
        debug!(error = error_chain(&error), "cannot read what the CRDs declare");
    }
    let registry = Registry::new(&client, &world, settings, &schemas.undeclared, Mode::Plan);
    let registry = &registry;
    let plans = stream::iter(targets).map(async |target| {
        let plan = registry.reconcile(&target).await;
        (target, plan)
    });
    let objects = plans.buffered(AT_ONCE).collect().await;
    Ok(ClusterPlan { objects, undeclared: schemas.undeclared.all(), unserved })
}
