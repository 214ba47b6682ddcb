//! The workers, each of which reconciles one object at a time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use skep_panics::Panicked;
use skep_world::{Target, World};
use tokio::{sync::watch, time::timeout};
use tracing::{debug, error};

use super::{metrics::Metrics, observer::Observer, registry::Registry, status_health::StatusHealth};
use crate::reconcile::{Plan, ReconcileError};

/// How long one reconciliation may take. It makes about a dozen requests.
const RECONCILE_TIME: Duration = Duration::from_secs(300);

/// What a worker needs.
pub(super) struct Worker {
    pub(super) world: Arc<World>,
    pub(super) registry: Arc<Registry>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) statuses: Arc<StatusHealth>,
    pub(super) observer: Option<Arc<Observer>>,
}

impl Worker {
    /// Reconciles what is queued, until `stop` is true.
    pub(super) async fn run(&self, mut stop: watch::Receiver<bool>) {
        let queue = self.world.queue();
        loop {
            let job = tokio::select! {
                job = queue.next() => job,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            self.metrics.queue_depth.set(i64::try_from(queue.depth()).unwrap_or(i64::MAX));
            let start = Instant::now();
            let result = self.reconcile(&job.target).await;
            if self.statuses.record(&result) {
                self.metrics.record_rejected_status(job.target.kind.kind);
            }
            self.metrics.record_reconcile(job.target.kind.kind, result.is_ok(), start.elapsed());
            match &self.observer {
                Some(observer) => observer.record(&job.target, &result),
                None => log_result(&job.target, &result),
            }
            let target = job.target.clone();
            queue.finish(job, result.is_err());
            if let Ok(Plan { again: Some(again), .. }) = result {
                queue.add_after(target, again);
            }
        }
    }

    /// Reconciles one object. A panic is a failure of this object alone.
    async fn reconcile(&self, target: &Arc<Target>) -> Result<Plan, ReconcileError> {
        let reconciled = skep_panics::catch(self.registry.reconcile(target));
        match timeout(RECONCILE_TIME, reconciled).await {
            Ok(Ok(result)) => result,
            Ok(Err(Panicked)) => Err(ReconcileError::Panicked),
            Err(_) => Err(ReconcileError::Timeout),
        }
    }
}

fn log_result(target: &Target, result: &Result<Plan, ReconcileError>) {
    let Target { kind, namespace, name } = target;
    match result {
        Ok(_) => debug!(kind = kind.kind, %namespace, %name, "reconciled"),
        Err(ReconcileError::Write(stale)) if stale.is_stale() => {
            debug!(kind = kind.kind, %namespace, %name, error = %stale, "changed concurrently; retrying");
        }
        Err(error) => {
            error!(kind = kind.kind, %namespace, %name, %error, "reconcile failed; retrying")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        resources::Deployments,
        run::registry::{AnyReconciler, Reconciling},
    };
    use skep_world::Watched;

    /// Panics about one object, twice.
    struct Fragile(watch::Sender<Vec<String>>);

    impl AnyReconciler for Fragile {
        fn reconcile<'a>(&'a self, target: &'a Arc<Target>) -> Reconciling<'a> {
            Box::pin(async move {
                self.0.send_modify(|seen| seen.push(target.name.to_string()));
                let times = self.0.borrow().iter().filter(|name| **name == "broken").count();
                assert!(&*target.name != "broken" || times > 2, "a defect");
                Ok(Plan::default())
            })
        }

        fn requeue(&self) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_a_failure_of_one_object_which_is_retried() {
        let world = World::builder().control::<Deployments>().offline();
        let (seen, mut changes) = watch::channel(Vec::new());
        let kind = Deployments::kind();
        let worker = Worker {
            world: world.clone(),
            registry: Arc::new(Registry::of(kind, Box::new(Fragile(seen)))),
            metrics: Arc::default(),
            statuses: Arc::default(),
            observer: None,
        };
        for name in ["broken", "fine"] {
            let target = Target { kind, namespace: "team".into(), name: name.into() };
            world.queue().add(Arc::new(target));
        }
        let (stop, stopped) = watch::channel(false);
        let running = tokio::spawn(async move { worker.run(stopped).await });
        let seen = changes.wait_for(|seen| seen.len() == 4).await.unwrap().clone();
        assert_eq!(seen, ["broken", "fine", "broken", "broken"]);
        stop.send_replace(true);
        running.await.unwrap();
        assert!(world.queue().is_idle(Duration::from_secs(3600)));
    }
}
