//! The status of a VirtualMCPServer, as far as its pods know it. They apply the fields that are theirs, and only when these
//! change: of several replicas that see the same, the first one writes it, and the others find it written. A pod that leaves reports
//! nothing.

mod status;
mod tools;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use skep_api::kinds::VirtualMCPServer;
use skep_config::objects::VMCP_FIELD_MANAGER;
use tokio::sync::watch;
use tracing::warn;

use crate::{Cluster, views::Views};

/// Changes that come together are one.
const PAUSE: Duration = Duration::from_secs(1);
/// The first delay after a failure, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long a status is taken to be what was reported, if nothing changes: first, as a pod that was replaced may have reported last,
/// and at most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// How often a report is compared with the status, if the status changes meanwhile.
const CONFLICTS: usize = 5;

/// Reports the state of all backends.
pub(crate) struct Reporter {
    api: Api<VirtualMCPServer>,
    name: String,
    /// Whether the CRD lacks the fields that ToolHive's does not have.
    is_older: AtomicBool,
}

/// The state of all backends, as the status has it.
pub(crate) fn states(views: &Views) -> Vec<Value> {
    status::states(&views.backends(), Some(&views.common()))
}

impl Reporter {
    /// The reporter of the VirtualMCPServer that the process runs for, if there is one.
    pub(crate) fn new(cluster: &Cluster) -> Option<Self> {
        let name = cluster.name.clone()?;
        let api = Api::namespaced(cluster.client.clone(), &cluster.namespace);
        Some(Self { api, name, is_older: AtomicBool::new(false) })
    }

    /// Reports whenever something changes, until the pod leaves.
    pub(crate) async fn run(&self, views: &Views, is_synced: &watch::Sender<bool>, is_draining: &AtomicBool) {
        let mut changes = views.changes();
        let (mut delay, mut again) = (RETRY.0, AGAIN.0);
        loop {
            tokio::time::sleep(PAUSE).await;
            if is_draining.load(Ordering::Relaxed) {
                return std::future::pending().await;
            }
            let is_known = *is_synced.borrow()
                && views.backends().values().all(|backend| backend.health().checked.is_some());
            if is_known && let Err(error) = self.report(views).await {
                warn!(%error, "failed to report the status");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(RETRY.1);
                continue;
            }
            delay = RETRY.0;
            again = match tokio::time::timeout(again, changes.changed()).await {
                Ok(Ok(())) => AGAIN.0,
                Ok(Err(_)) => return,
                Err(_) => (again * 2).min(AGAIN.1),
            };
        }
    }

    async fn report(&self, views: &Views) -> kube::Result<()> {
        let mut conflicts = 0;
        loop {
            match self.report_to(&self.api.get(&self.name).await?, views).await {
                Err(kube::Error::Api(error)) if error.code == 409 && conflicts < CONFLICTS => conflicts += 1,
                reported => return reported,
            }
        }
    }

    /// Reports to an object that is still the one that was read.
    async fn report_to(&self, object: &VirtualMCPServer, views: &Views) -> kube::Result<()> {
        let live = object.status.clone().unwrap_or_default();
        let report = || {
            let catalog = (!self.is_older.load(Ordering::Relaxed)).then(|| views.common());
            let states = status::states(&views.backends(), catalog.as_deref());
            let composites = views.composites();
            let now = jiff::Timestamp::now();
            status::changed(&live, &views.backends(), states, composites.as_deref(), now)
        };
        let Some(status) = report() else { return Ok(()) };
        match self.apply(object, &status).await {
            Err(kube::Error::Api(error)) if error.message.contains("field not declared in schema") => {
                self.is_older.store(true, Ordering::Relaxed);
                match report() {
                    Some(status) => self.apply(object, &status).await,
                    None => Ok(()),
                }
            }
            applied => applied,
        }
    }

    async fn apply(&self, object: &VirtualMCPServer, status: &Value) -> kube::Result<()> {
        let patch = json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1",
            "kind": "VirtualMCPServer",
            "metadata": {"name": self.name, "resourceVersion": object.metadata.resource_version},
            "status": status,
        });
        let params = PatchParams::apply(VMCP_FIELD_MANAGER).force();
        self.api.patch_status(&self.name, &params, &Patch::Apply(patch)).await?;
        Ok(())
    }
}
