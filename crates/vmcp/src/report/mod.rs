//! The status of a VirtualMCPServer, as far as its pods know it. They apply the fields that are theirs, and only when these
//! change: of several replicas that see the same, the first one writes it, and the others find it written.

mod status;

use std::time::Duration;

use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skep_api::kinds::VirtualMCPServer;
use skep_config::objects::VMCP_FIELD_MANAGER;
use tokio::sync::watch;
use tracing::warn;

use crate::{Cluster, views::Views};

/// Changes that come together are one.
const PAUSE: Duration = Duration::from_secs(1);
/// The first delay after a failure, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Reports the state of all backends.
pub(crate) struct Reporter {
    api: Api<VirtualMCPServer>,
    name: String,
}

impl Reporter {
    /// The reporter of the VirtualMCPServer that the process runs for, if there is one.
    pub(crate) fn new(cluster: &Cluster) -> Option<Self> {
        let name = cluster.name.clone()?;
        Some(Self { api: Api::namespaced(cluster.client.clone(), &cluster.namespace), name })
    }

    /// Reports whenever something changes, for ever.
    pub(crate) async fn run(&self, views: &Views, is_synced: &watch::Sender<bool>) {
        let mut changes = views.changes();
        let mut delay = RETRY.0;
        loop {
            tokio::time::sleep(PAUSE).await;
            let is_known = *is_synced.borrow()
                && views.backends().values().all(|backend| backend.health().checked.is_some());
            if is_known && let Err(error) = self.report(views).await {
                warn!(%error, "failed to report the status");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(RETRY.1);
                continue;
            }
            delay = RETRY.0;
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn report(&self, views: &Views) -> kube::Result<()> {
        let live = self.api.get(&self.name).await?;
        let now = jiff::Timestamp::now();
        let live = live.status.unwrap_or_default();
        let Some(status) = status::changed(&live, &views.backends(), views.composites().as_deref(), now)
        else {
            return Ok(());
        };
        let patch = json!({
            "apiVersion": "toolhive.stacklok.dev/v1beta1",
            "kind": "VirtualMCPServer",
            "metadata": {"name": self.name},
            "status": status,
        });
        let params = PatchParams::apply(VMCP_FIELD_MANAGER).force();
        self.api.patch_status(&self.name, &params, &Patch::Apply(patch)).await?;
        Ok(())
    }
}
