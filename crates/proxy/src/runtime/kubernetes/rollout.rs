//! The readiness of a server's pods, from a watch of its StatefulSet.

use futures::{StreamExt, pin_mut};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{
    Api, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use tokio::sync::watch;
use tracing::{info, warn};

/// The phase of a server's rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No pod is ready. There may be pods again.
    Waiting,
    /// Some pods are ready, but not all, or they are not all of the newest template.
    Serving,
    /// As many pods are ready as are wanted, and all are of the newest template.
    Ready,
    /// The StatefulSet was deleted. There will be no pods of it any more.
    Deleted,
}

/// The phase of a server's rollout, now and in the future.
#[derive(Clone, Debug)]
pub struct Readiness(watch::Receiver<Phase>);

impl Readiness {
    /// The readiness that another task watches.
    pub(super) fn from_phase(phase: watch::Receiver<Phase>) -> Self {
        Self(phase)
    }

    /// The current phase.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Whether a pod is available.
    pub fn serves(&self) -> bool {
        matches!(self.phase(), Phase::Serving | Phase::Ready)
    }

    /// Waits until a pod is available, or the StatefulSet is deleted, and returns whether a pod is available.
    pub async fn wait_until_serving(&mut self) -> bool {
        let serving = self.0.wait_for(|phase| *phase != Phase::Waiting).await;
        serving.is_ok_and(|phase| *phase != Phase::Deleted)
    }

    /// Waits until all pods are ready, or the StatefulSet is deleted, and returns whether they are ready.
    pub async fn wait_until_ready(&mut self) -> bool {
        let ready = self.0.wait_for(|phase| matches!(phase, Phase::Ready | Phase::Deleted)).await;
        ready.is_ok_and(|phase| *phase == Phase::Ready)
    }

    /// Waits for a change, and returns whether there can be one.
    pub(super) async fn wait_for_change(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }

    /// Completes when the StatefulSet is deleted. The proxy then has no server any more.
    pub async fn wait_until_deleted(&mut self) {
        // The watch only ends by itself after it has published that.
        self.0.wait_for(|phase| *phase == Phase::Deleted).await.ok();
    }

    /// Watches this StatefulSet until it is deleted, or nobody follows its readiness any more. Each state of it is passed on.
    pub(super) fn of(api: Api<StatefulSet>, applied: &StatefulSet) -> (Self, watch::Receiver<StatefulSet>) {
        let (sender, receiver) = watch::channel(phase(applied, applied.metadata.generation));
        let (states, latest) = watch::channel(applied.clone());
        let applied = applied.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = follow(api, &applied, &sender, &states) => {}
                () = sender.closed() => {}
            }
        });
        (Self(receiver), latest)
    }
}

async fn follow(
    api: Api<StatefulSet>,
    applied: &StatefulSet,
    sender: &watch::Sender<Phase>,
    states: &watch::Sender<StatefulSet>,
) {
    let name = applied.name_any();
    let events = watcher::watch_object(api, &name).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let now = match event {
            // One of the same name that was created after ours was deleted is not ours.
            Ok(Some(live)) if live.uid() == applied.uid() => {
                let phase = phase(&live, applied.metadata.generation);
                states.send_replace(live);
                phase
            }
            Ok(_) => Phase::Deleted,
            Err(error) => {
                warn!(name, %error, "failed to watch the StatefulSet; retrying");
                continue;
            }
        };
        let before = sender.send_replace(now);
        if before != now {
            info!(name, phase = ?now, "rollout of the server");
        }
        if now == Phase::Deleted {
            return;
        }
    }
}

/// The phase of a StatefulSet. For [`Phase::Ready`], its status must have observed this generation at least.
fn phase(live: &StatefulSet, generation: Option<i64>) -> Phase {
    let wanted = live.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let Some(status) = &live.status else { return Phase::Waiting };
    let ready = status.ready_replicas.unwrap_or_default();
    let updated = status.updated_replicas.unwrap_or_default();
    // The status may still be about the previous template.
    let current = status.observed_generation >= generation;
    match ready {
        ..=0 => Phase::Waiting,
        _ if current && ready == wanted && updated == wanted => Phase::Ready,
        _ => Phase::Serving,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(replicas: Value, status: Value) -> Phase {
        let spec = json!({"replicas": replicas, "selector": {}, "template": {}});
        let live = serde_json::from_value(json!({"metadata": {}, "spec": spec, "status": status})).unwrap();
        phase(&live, Some(4))
    }

    #[test]
    fn a_server_is_ready_when_all_pods_are_of_the_newest_template_and_ready() {
        let status = |observed: i64, updated: i32, ready: i32| {
            json!({
                "observedGeneration": observed, "replicas": ready, "updatedReplicas": updated, "readyReplicas": ready,
            })
        };
        for (replicas, status, expected) in [
            (json!(2), status(4, 2, 2), Phase::Ready),
            (json!(2), status(5, 2, 2), Phase::Ready),
            (json!(null), status(4, 1, 1), Phase::Ready),
            // The status is about the previous template.
            (json!(2), status(3, 2, 2), Phase::Serving),
            (json!(2), status(4, 1, 2), Phase::Serving),
            (json!(2), status(4, 2, 1), Phase::Serving),
            (json!(1), status(4, 2, 2), Phase::Serving),
            (json!(2), status(4, 2, 0), Phase::Waiting),
            // No pod is available, and none is desired.
            (json!(0), status(4, 0, 0), Phase::Waiting),
            (json!(1), json!({"replicas": 0}), Phase::Waiting),
            (json!(1), json!(null), Phase::Waiting),
        ] {
            assert_eq!(of(replicas.clone(), status.clone()), expected, "{replicas} {status}");
        }
    }
}
