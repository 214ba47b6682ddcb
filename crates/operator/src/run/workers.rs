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
    /// Reconciles what is queued, until `stop` is true. It is started again after a panic.
    pub(super) async fn run(&self, stop: watch::Receiver<bool>) {
        skep_panics::restart("worker", || self.work(stop.clone())).await;
    }

    async fn work(&self, mut stop: watch::Receiver<bool>) {
        let queue = self.world.queue();
        loop {
            let job = tokio::select! {
                job = queue.next() => job,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            self.metrics.queue_depth.set(i64::try_from(queue.depth()).unwrap_or(i64::MAX));
            let target = job.target.clone();
            let processed = skep_panics::catch(self.process(&target)).await;
            // Whatever happened: one that is not returned would never be reconciled again.
            queue.finish(job, !matches!(processed, Ok(Ok(_))));
            if let Ok(Ok(Plan { again: Some(again), .. })) = processed {
                queue.add_after(target, again);
            }
        }
    }

    /// Reconciles one object, and records the result.
    async fn process(&self, target: &Arc<Target>) -> Result<Plan, ReconcileError> {
        if !self.world.is_complete(&target.namespace) {
            // It is queued again once all is known.
            return Ok(Plan::default());
        }
        let start = Instant::now();
        let result = self.reconcile(target).await;
        if self.statuses.record(target, &result) {
            self.metrics.record_rejected_status(target.kind.kind);
        }
        self.metrics.record_reconcile(target.kind.kind, result.is_ok(), start.elapsed());
        match &self.observer {
            Some(observer) => observer.record(target, &result),
            None => log_result(target, &result),
        }
        result
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

    /// Returns a time that cannot be added to any other.
    struct Late(watch::Sender<Vec<String>>);

    impl AnyReconciler for Late {
        fn reconcile<'a>(&'a self, target: &'a Arc<Target>) -> Reconciling<'a> {
            Box::pin(async move {
                self.0.send_modify(|seen| seen.push(target.name.to_string()));
                let again = (&*target.name == "broken").then_some(Duration::MAX);
                Ok(Plan { again, ..Plan::default() })
            })
        }

        fn requeue(&self) {}
    }

    fn worker(world: &Arc<World>, reconciler: impl AnyReconciler + 'static) -> Worker {
        Worker {
            world: world.clone(),
            registry: Arc::new(Registry::of(Deployments::kind(), Box::new(reconciler))),
            metrics: Arc::default(),
            statuses: Arc::new(StatusHealth::new(Duration::from_secs(120))),
            observer: None,
        }
    }

    fn queue(world: &World, name: &str) {
        let target = Target { kind: Deployments::kind(), namespace: "team".into(), name: name.into() };
        world.queue().add(Arc::new(target));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_panics_between_two_objects_goes_on_with_the_next() {
        let world = World::builder().control::<Deployments>().offline();
        let (seen, mut changes) = watch::channel(Vec::new());
        let worker = worker(&world, Late(seen));
        queue(&world, "broken");
        let (stop, stopped) = watch::channel(false);
        let running = tokio::spawn(async move { worker.run(stopped).await });
        changes.wait_for(|seen| seen.len() == 1).await.unwrap();
        for name in ["fine", "broken"] {
            queue(&world, name);
        }
        let seen = changes.wait_for(|seen| seen.len() == 3).await.unwrap().clone();
        assert_eq!(seen, ["broken", "fine", "broken"]);
        stop.send_replace(true);
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_a_failure_of_one_object_which_is_retried() {
        let world = World::builder().control::<Deployments>().offline();
        let (seen, mut changes) = watch::channel(Vec::new());
        let worker = worker(&world, Fragile(seen));
        for name in ["broken", "fine"] {
            queue(&world, name);
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
