//! Whether statuses can be written. An operator that cannot write any does its work unseen.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use skep_world::Target;
use tokio::time::Instant;

use crate::reconcile::{Plan, ReconcileError};

/// Whether statuses are written.
pub(super) struct StatusHealth {
    state: Mutex<State>,
    /// How long no status may be written before the operator is not ready.
    patience: Duration,
}

#[derive(Default)]
struct State {
    /// The namespaces that have objects.
    namespaces: HashSet<Box<str>>,
    /// The objects whose last status was rejected, and why.
    rejected: HashMap<Arc<Target>, String>,
    /// Since when statuses were rejected and none was written.
    since: Option<Instant>,
}

impl StatusHealth {
    pub(super) fn new(patience: Duration) -> Self {
        Self { state: Mutex::default(), patience }
    }

    /// Records the result of a reconciliation. Returns whether the status was rejected.
    pub(super) fn record(&self, target: &Arc<Target>, result: &Result<Plan, ReconcileError>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.namespaces.contains(&target.namespace) {
            state.namespaces.insert(target.namespace.clone());
        }
        match result {
            Err(ReconcileError::Status(error)) => {
                state.since.get_or_insert_with(Instant::now);
                state.rejected.insert(target.clone(), error.to_string());
                return true;
            }
            Ok(Plan { reported: true, .. }) => {
                state.rejected.clear();
            }
            // Its status is as it should be, or it is gone.
            Ok(_) => {
                state.rejected.remove(target);
            }
            Err(_) => {}
        }
        if state.rejected.is_empty() {
            state.since = None;
        }
        false
    }

    /// Why the operator is not ready, if no status could be written for long. The objects of one namespace among others decide
    /// nothing: whoever owns it may have caused it.
    pub(super) fn problem(&self) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = self.patience;
        let rejected: HashSet<&str> = state.rejected.keys().map(|target| &*target.namespace).collect();
        let is_long = state.since.is_some_and(|since| since.elapsed() >= patience);
        let error = state.rejected.values().next()?;
        (is_long && rejected.len() >= state.namespaces.len().min(2))
            .then(|| format!("no status could be written for {patience:?}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use skep_converge::Error;
    use skep_world::Watched;

    use crate::resources::Deployments;

    use super::*;

    const LONG: Duration = Duration::from_secs(120);

    fn target(namespace: &str, name: &str) -> Arc<Target> {
        Arc::new(Target { kind: Deployments::kind(), namespace: namespace.into(), name: name.into() })
    }

    fn rejected() -> Result<Plan, ReconcileError> {
        let owner = "MCPServer y".into();
        Err(ReconcileError::Status(Error::Foreign { kind: "Service", name: "x".into(), owner }))
    }

    #[tokio::test(start_paused = true)]
    async fn an_operator_whose_statuses_are_all_rejected_for_long_is_not_ready() {
        let health = StatusHealth::new(LONG);
        let one = target("team", "one");
        assert!(health.record(&one, &rejected()));
        tokio::time::advance(LONG / 2).await;
        assert!(health.record(&one, &rejected()) && health.problem().is_none());
        assert!(!health.record(&target("team", "two"), &Ok(Plan::default())), "nothing was written");
        tokio::time::advance(LONG / 2).await;
        assert!(health.problem().unwrap().contains("MCPServer y"));
        assert!(!health.record(&target("team", "two"), &Ok(Plan { reported: true, ..Plan::default() })));
        assert_eq!(health.problem(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn objects_of_one_namespace_do_not_make_an_operator_of_several_unready() {
        let health = StatusHealth::new(LONG);
        health.record(&target("other", "settled"), &Ok(Plan::default()));
        for name in ["one", "two"] {
            health.record(&target("team", name), &rejected());
        }
        tokio::time::advance(LONG * 2).await;
        assert_eq!(health.problem(), None);
        health.record(&target("other", "settled"), &rejected());
        assert!(health.problem().is_some(), "two namespaces");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_deleted_or_mended_is_no_problem_any_more() {
        let health = StatusHealth::new(LONG);
        health.record(&target("team", "one"), &rejected());
        tokio::time::advance(LONG * 2).await;
        assert!(health.problem().is_some());
        health.record(&target("team", "one"), &Ok(Plan::default()));
        assert_eq!(health.problem(), None);
        health.record(&target("team", "one"), &rejected());
        assert_eq!(health.problem(), None, "the time counts anew");
    }
}
