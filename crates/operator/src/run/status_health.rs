//! Whether statuses can be written. An operator that cannot write any does its work unseen.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::reconcile::{Plan, ReconcileError};

/// Whether statuses are written.
pub(super) struct StatusHealth {
    /// Since when every status was rejected, and the last reason.
    failing: Mutex<Option<(Instant, String)>>,
    /// How long no status may be written before the operator is not ready.
    patience: Duration,
}

impl StatusHealth {
    pub(super) fn new(patience: Duration) -> Self {
        Self { failing: Mutex::default(), patience }
    }

    /// Records the result of a reconciliation. Returns whether the status was rejected.
    pub(super) fn record(&self, result: &Result<Plan, ReconcileError>) -> bool {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Err(ReconcileError::Status(error)) => {
                let since = failing.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                *failing = Some((since, error.to_string()));
                true
            }
            Ok(Plan { reported: true, .. }) => {
                *failing = None;
                false
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Why the operator is not ready, if no status could be written for long.
    pub(super) fn problem(&self) -> Option<String> {
        let failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, error) = failing.as_ref()?;
        let patience = self.patience;
        (since.elapsed() >= patience).then(|| format!("no status could be written for {patience:?}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use skep_converge::Error;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_operator_whose_statuses_are_all_rejected_for_long_is_not_ready() {
        const LONG: Duration = Duration::from_secs(120);
        let health = StatusHealth::new(LONG);
        let rejected = || {
            let owner = "MCPServer y".into();
            Err(ReconcileError::Status(Error::Foreign { kind: "Service", name: "x".into(), owner }))
        };
        assert!(health.record(&rejected()));
        tokio::time::advance(LONG / 2).await;
        assert!(health.record(&rejected()) && health.problem().is_none());
        assert!(!health.record(&Ok(Plan::default())), "nothing was written");
        tokio::time::advance(LONG / 2).await;
        assert!(health.problem().unwrap().contains("MCPServer y"));
        assert!(!health.record(&Ok(Plan { reported: true, ..Plan::default() })));
        assert_eq!(health.problem(), None);
    }
}
