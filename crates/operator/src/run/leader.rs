//! Which replica writes.

use std::time::Duration;

use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError, LeaseParams};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::RunError;

/// The duration of the lease: how long a silent leader keeps it.
const LEASE: Duration = Duration::from_secs(15);
/// How long before the end of its lease a leader renews it.
const RENEWAL: Duration = Duration::from_secs(5);
/// How often a standby replica checks whether the lease was released. The lease manager checks only when it would
/// have expired, and until then no replica would reconcile.
const LOOK: Duration = Duration::from_secs(2);

/// How replicas agree on who writes.
#[derive(Clone, Debug)]
pub struct Election {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub lease: String,
    /// The name of this replica, which no other has.
    pub identity: String,
}

/// Being the one that writes.
pub(super) struct Leadership {
    state: watch::Receiver<bool>,
    task: JoinHandle<Result<LeaseManager, LeaseManagerError>>,
}

/// Waits to become the leader. `None` if a shutdown was requested before.
pub(super) async fn lead(
    client: Client,
    election: &Election,
    stop: &mut watch::Receiver<bool>,
) -> Result<Option<Leadership>, RunError> {
    let manager = tokio::select! {
        held = held(&client, election) => held?,
        _ = stop.wait_for(|stop| *stop) => return Ok(None),
    };
    let (state, task) = manager.watch().await;
    info!(identity = election.identity, lease = election.lease, "leading");
    Ok(Some(Leadership { state, task }))
}

/// Waits for the lease, and returns the manager that holds it.
async fn held(client: &Client, election: &Election) -> Result<LeaseManager, RunError> {
    let mut manager =
        manager(client, election).await.map_err(|error| RunError::Election(error.to_string()))?;
    loop {
        match timeout(LOOK, manager.changed()).await {
            Ok(Ok(true)) => return Ok(manager),
            Ok(Ok(false)) | Err(_) => {}
            Ok(Err(error)) => {
                warn!(%error, lease = election.lease, "cannot request the lease");
                sleep(LOOK).await;
            }
        }
        // A new manager reads the current lease. If that fails, the old one reports the error.
        if let Ok(next) = self::manager(client, election).await {
            manager = next;
        }
    }
}

async fn manager(client: &Client, election: &Election) -> Result<LeaseManager, LeaseManagerError> {
    LeaseManagerBuilder::new(client.clone(), &election.lease)
        .with_namespace(&election.namespace)
        .with_parameters(LeaseParams::new(&election.identity, LEASE.as_secs(), RENEWAL.as_secs()))
        .build()
        .await
}

impl Leadership {
    /// Shuts down gracefully on request and releases the lease; fails when another replica leads.
    pub(super) async fn until_lost_or(mut self, stop: &mut watch::Receiver<bool>) -> Result<(), RunError> {
        tokio::select! {
            _ = self.state.wait_for(|leads| !*leads) => {
                return Err(RunError::Election("another replica leads now".into()));
            }
            _ = stop.wait_for(|stop| *stop) => {}
        }
        // Closing the channel ends the task, which hands the manager back.
        drop(self.state);
        if let Ok(Ok(manager)) = self.task.await {
            manager.release().await.ok();
        }
        Ok(())
    }
}
