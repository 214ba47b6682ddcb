//! Which replica writes.

use std::time::Duration;

use kube::Client;
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseParams};
use tokio::{sync::watch, task::JoinHandle};
use tracing::info;

use super::RunError;

/// How long a leader that went silent is waited for.
const LEASE: Duration = Duration::from_secs(15);
/// How long before the end of its lease a leader renews it.
const RENEWAL: Duration = Duration::from_secs(5);

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
    task: JoinHandle<Result<LeaseManager, kube_lease_manager::LeaseManagerError>>,
}

/// Waits to become the leader. Nothing if it was asked to stop before.
pub(super) async fn lead(
    client: Client,
    election: &Election,
    stop: &mut watch::Receiver<bool>,
) -> Result<Option<Leadership>, RunError> {
    let params = LeaseParams::new(&election.identity, LEASE.as_secs(), RENEWAL.as_secs());
    let manager = LeaseManagerBuilder::new(client, &election.lease)
        .with_namespace(&election.namespace)
        .with_parameters(params)
        .build()
        .await
        .map_err(|error| RunError::Election(error.to_string()))?;
    let (mut state, task) = manager.watch().await;
    tokio::select! {
        led = state.wait_for(|leads| *leads) => {
            led.map_err(|_| RunError::Election("the lease cannot be held".into()))?;
        }
        _ = stop.wait_for(|stop| *stop) => return Ok(None),
    }
    info!(identity = election.identity, lease = election.lease, "leading");
    Ok(Some(Leadership { state, task }))
}

impl Leadership {
    /// Ends well when asked to stop, giving the lease back; and with an error when another replica leads.
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
