//! Which replica writes: the one that holds the Lease.
//!
//! As in client-go: the holder renews the lease every [`RETRY`], and stops to write when it has not succeeded for
//! [`RENEW_DEADLINE`], before the lease ends. The others take it when they have seen no renewal for its whole duration,
//! by their own clock: the clocks of two machines are never compared. A released lease is taken at once.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use super::RunError;

/// The duration of the lease: how long the others wait for a silent holder.
const LEASE: Duration = Duration::from_secs(15);
/// How long a holder tries to renew the lease before it stops to write.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// How often the lease is requested or renewed.
const RETRY: Duration = Duration::from_secs(2);

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

/// A candidate for the lease, or its holder.
pub(super) struct Candidate {
    api: Api<Lease>,
    election: Election,
    /// The lease as it was last seen to change, and when that was.
    observed: Option<(LeaseSpec, Instant)>,
}

impl Candidate {
    pub(super) fn new(client: Client, election: &Election) -> Self {
        let api = Api::namespaced(client, &election.namespace);
        Self { api, election: election.clone(), observed: None }
    }

    /// Waits for the lease. Returns whether it is held: a shutdown may be requested first.
    pub(super) async fn acquire(&mut self, stop: &mut watch::Receiver<bool>) -> bool {
        loop {
            match timeout(RETRY, self.try_acquire_or_renew()).await {
                Ok(Ok(true)) => {
                    info!(identity = self.election.identity, lease = self.election.lease, "leading");
                    return true;
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    warn!(%error, lease = self.election.lease, "failed to request the lease; retrying");
                }
                Err(_) => warn!(lease = self.election.lease, "timeout requesting the lease; retrying"),
            }
            tokio::select! {
                () = sleep(RETRY) => {}
                _ = stop.wait_for(|stop| *stop) => return false,
            }
        }
    }

    /// Renews the lease for as long as that succeeds. Returns why it is no longer held.
    pub(super) async fn hold(&mut self) -> RunError {
        let mut renewed = Instant::now();
        loop {
            sleep(RETRY).await;
            let deadline = (renewed + RENEW_DEADLINE).saturating_duration_since(Instant::now());
            let start = Instant::now();
            match timeout(deadline, self.try_acquire_or_renew()).await {
                // What counts is when it was requested: the API server may have stored it at once.
                Ok(Ok(true)) => renewed = start,
                Ok(Ok(false)) => return RunError::Election("another replica leads now".into()),
                Ok(Err(error)) => {
                    warn!(%error, lease = self.election.lease, "failed to renew the lease; retrying");
                    if renewed.elapsed() >= RENEW_DEADLINE {
                        return RunError::Election(format!("the lease could not be renewed: {error}"));
                    }
                }
                Err(_) => return RunError::Election("timeout renewing the lease".into()),
            }
        }
    }

    /// Gives the lease up, so that another replica can take it at once.
    pub(super) async fn release(self) {
        let Some((spec, _)) = &self.observed else { return };
        let released = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..spec.clone()
        };
        let release = async {
            let Ok(Some(lease)) = self.api.get_opt(&self.election.lease).await else { return };
            if self.is_holder(lease.spec.as_ref()) {
                self.write(&lease.metadata, &released).await.ok();
            }
        };
        // If it fails, the others wait for its end.
        timeout(RETRY, release).await.ok();
    }

    /// Takes or renews the lease, unless another replica holds it. Whether it is held now.
    async fn try_acquire_or_renew(&mut self) -> kube::Result<bool> {
        loop {
            match self.try_once().await {
                // Someone else has written it, or our own request was repeated after its response was lost. Who holds it is
                // read again: the caller limits the time.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                tried => return tried,
            }
        }
    }

    async fn try_once(&mut self) -> kube::Result<bool> {
        let Some(lease) = self.api.get_opt(&self.election.lease).await? else { return self.create().await };
        let spec = lease.spec.unwrap_or_default();
        if self.observed.as_ref().is_none_or(|(seen, _)| *seen != spec) {
            self.observed = Some((spec.clone(), Instant::now()));
        }
        if !self.is_holder(Some(&spec)) && !self.is_free(&spec) {
            return Ok(false);
        }
        let next = self.next(&spec);
        self.write(&lease.metadata, &next).await?;
        self.observed = Some((next, Instant::now()));
        Ok(true)
    }

    async fn create(&mut self) -> kube::Result<bool> {
        let spec = self.next(&LeaseSpec { lease_transitions: Some(-1), ..LeaseSpec::default() });
        let metadata = ObjectMeta { name: Some(self.election.lease.clone()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(spec.clone()) };
        self.api.create(&PostParams::default(), &lease).await?;
        self.observed = Some((spec, Instant::now()));
        Ok(true)
    }

    /// The lease in the hands of this replica.
    fn next(&self, current: &LeaseSpec) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let is_holder = self.is_holder(Some(current));
        let transitions = current.lease_transitions.unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: i32::try_from(LEASE.as_secs()).ok(),
            acquire_time: if is_holder { current.acquire_time.clone() } else { now.clone() },
            renew_time: now,
            lease_transitions: Some(if is_holder { transitions } else { transitions.saturating_add(1) }),
            ..current.clone()
        }
    }

    fn is_holder(&self, spec: Option<&LeaseSpec>) -> bool {
        spec.and_then(|spec| spec.holder_identity.as_deref()) == Some(&self.election.identity)
    }

    /// Whether no replica holds it, or its holder has been silent for its whole duration.
    fn is_free(&self, spec: &LeaseSpec) -> bool {
        let is_released = spec.holder_identity.as_deref().unwrap_or_default().is_empty();
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(LEASE, Duration::from_secs);
        is_released || self.observed.as_ref().is_some_and(|(_, at)| at.elapsed() > duration)
    }

    /// Writes the lease, if it is still the one that was read.
    async fn write(&self, seen: &ObjectMeta, spec: &LeaseSpec) -> kube::Result<()> {
        let patch =
            Patch::Merge(json!({"metadata": {"resourceVersion": seen.resource_version}, "spec": spec}));
        self.api.patch(&self.election.lease, &PatchParams::default(), &patch).await.map(drop)
    }
}
