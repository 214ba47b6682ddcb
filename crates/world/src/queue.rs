//! The work queue: targets that wait to be reconciled.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::Target;

/// The first and the longest back-off of a failed target.
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(300);
/// The longest back-off of one that was queued again while it failed. Its own write of a status does so each time, so
/// it does not run again at once; a change by someone else must not wait for minutes.
const LONGEST_DELAY_IF_QUEUED: Duration = Duration::from_secs(5);

/// A queue that contains each target at most once, and never hands it to two workers at the same time.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    arrived: Notify,
    jitter: RandomState,
}

#[derive(Default)]
struct State {
    ready: Ready,
    queued: HashSet<Arc<Target>>,
    running: HashSet<Arc<Target>>,
    /// Queued while running: to be run again.
    woken: HashSet<Arc<Target>>,
    /// The targets that failed.
    failed: HashMap<Arc<Target>, Retry>,
    /// The targets that are queued later.
    later: HashMap<Arc<Target>, Instant>,
    /// When these two are queued: at most one entry of each.
    retries: BTreeSet<(Instant, Arc<Target>)>,
    /// How many jobs have finished.
    finished: u64,
}

/// The targets that can run now. Namespaces take turns, so that one with many targets does not delay those of the others.
#[derive(Default)]
struct Ready {
    by_namespace: HashMap<Box<str>, VecDeque<Arc<Target>>>,
    /// The namespaces with targets, each once.
    turns: VecDeque<Box<str>>,
    count: usize,
}

impl Ready {
    fn push(&mut self, target: Arc<Target>) {
        let namespace = &target.namespace;
        if !self.by_namespace.contains_key(namespace) {
            self.turns.push_back(namespace.clone());
        }
        self.by_namespace.entry(namespace.clone()).or_default().push_back(target);
        self.count += 1;
    }

    fn pop(&mut self) -> Option<Arc<Target>> {
        let namespace = self.turns.pop_front()?;
        let targets = self.by_namespace.get_mut(&namespace)?;
        let target = targets.pop_front();
        self.count = self.count.saturating_sub(1);
        if targets.is_empty() {
            self.by_namespace.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        target
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

struct Retry {
    failures: u32,
    at: Instant,
}

/// A target that is being reconciled. It must be returned with [`Queue::finish`].
pub struct Job {
    /// The target to reconcile.
    pub target: Arc<Target>,
}

impl Queue {
    /// Queues the target.
    pub fn add(&self, target: Arc<Target>) {
        let mut state = self.lock();
        if state.running.contains(&target) {
            state.woken.insert(target);
        } else if state.queued.insert(target.clone()) {
            state.ready.push(target);
            self.arrived.notify_one();
        }
    }

    /// Queues the target after this time, if it is not queued earlier with a shorter one.
    pub fn add_after(&self, target: Arc<Target>, delay: Duration) {
        let mut state = self.lock();
        let at = Instant::now() + delay;
        match state.later.get(&target) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                let later = (*later, target.clone());
                state.retries.remove(&later);
            }
            None => {}
        }
        state.later.insert(target.clone(), at);
        state.retries.insert((at, target));
        drop(state);
        self.arrived.notify_one();
    }

    /// The next target to reconcile.
    pub async fn next(&self) -> Job {
        loop {
            let wake_at = {
                let mut state = self.lock();
                state.move_due(Instant::now());
                if let Some(target) = state.ready.pop() {
                    state.queued.remove(&target);
                    state.running.insert(target.clone());
                    if !state.ready.is_empty() {
                        self.arrived.notify_one();
                    }
                    return Job { target };
                }
                state.retries.first().map(|(at, _)| *at)
            };
            match wake_at {
                Some(at) => tokio::select! {
                    () = self.arrived.notified() => {}
                    () = sleep_until(at) => {}
                },
                None => self.arrived.notified().await,
            }
        }
    }

    /// Removes all waiting targets and returns them in the order of kind and name.
    pub fn drain(&self) -> Vec<Arc<Target>> {
        let mut state = self.lock();
        state.queued.clear();
        let ready = std::mem::take(&mut state.ready);
        let mut targets: Vec<_> = ready.by_namespace.into_values().flatten().collect();
        targets.sort();
        targets
    }

    /// Returns a job. A failed target is retried with an exponential back-off.
    pub fn finish(&self, job: Job, failed: bool) {
        let mut state = self.lock();
        state.running.remove(&job.target);
        state.finished += 1;
        let failures = state.forget(&job.target);
        let woken = state.woken.remove(&job.target);
        if failed {
            let failures = failures.saturating_add(1);
            let longest = if woken { LONGEST_DELAY_IF_QUEUED } else { LONGEST_DELAY };
            let at = Instant::now() + self.back_off(&job.target, failures).min(longest);
            state.failed.insert(job.target.clone(), Retry { failures, at });
            state.retries.insert((at, job.target.clone()));
        }
        drop(state);
        if woken && !failed {
            self.add(job.target);
        } else {
            self.arrived.notify_one();
        }
    }

    /// Whether nothing is queued or running, and nothing comes due within this time.
    pub fn is_idle(&self, within: Duration) -> bool {
        let state = self.lock();
        let due = Instant::now() + within;
        let is_due = state.retries.first().is_some_and(|(at, _)| *at <= due);
        state.ready.is_empty() && state.running.is_empty() && !is_due
    }

    /// How many jobs have finished so far. If it is the same as before, nothing has finished in between.
    pub fn finished(&self) -> u64 {
        self.lock().finished
    }

    /// How many targets wait to be reconciled.
    pub fn depth(&self) -> usize {
        self.lock().ready.count
    }

    /// How many targets wait for a later time, after a failure or as planned.
    pub fn delayed(&self) -> usize {
        self.lock().retries.len()
    }

    /// Doubles each time, with a jitter of a quarter so that many targets are not retried at once.
    fn back_off(&self, target: &Arc<Target>, failures: u32) -> Duration {
        let delay =
            FIRST_DELAY.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(LONGEST_DELAY);
        let chance = u32::try_from(self.jitter.hash_one((target, failures)) % 501).unwrap_or_default();
        delay * (750 + chance) / 1000
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Removes what is known of the target's failures, and returns how many there were.
    fn forget(&mut self, target: &Arc<Target>) -> u32 {
        let Some(Retry { failures, at }) = self.failed.remove(target) else { return 0 };
        self.retries.remove(&(at, target.clone()));
        failures
    }

    fn move_due(&mut self, now: Instant) {
        while self.retries.first().is_some_and(|(at, _)| *at <= now) {
            let Some((at, target)) = self.retries.pop_first() else { return };
            if self.later.get(&target) == Some(&at) {
                self.later.remove(&target);
            }
            if self.running.contains(&target) {
                self.woken.insert(target);
            } else if self.queued.insert(target.clone()) {
                self.ready.push(target);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_converge::Kind;
    use tokio::time::timeout;

    const KIND: Kind = Kind { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };

    fn target(name: &str) -> Arc<Target> {
        Arc::new(Target { kind: KIND, namespace: "ns".into(), name: name.into() })
    }

    async fn has_no_job(queue: &Queue) -> bool {
        timeout(Duration::from_millis(1), queue.next()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_is_queued_once() {
        let queue = Queue::default();
        queue.add(target("a"));
        queue.add(target("a"));
        let job = queue.next().await;
        assert!(has_no_job(&queue).await);
        queue.finish(job, false);
        assert!(has_no_job(&queue).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_whose_many_targets_change_all_the_time_delays_no_other() {
        let queue = Queue::default();
        let busy = |number: usize| {
            Arc::new(Target { kind: KIND, namespace: "busy".into(), name: number.to_string().into() })
        };
        (0..5_000).for_each(|number| queue.add(busy(number)));
        assert_eq!(queue.depth(), 5_000);
        let mut turns = Vec::new();
        for round in 0..100 {
            if round % 10 == 0 {
                queue.add(target("single"));
            }
            let job = queue.next().await;
            let (is_single, changed) = (*job.target == *target("single"), job.target.clone());
            queue.finish(job, false);
            if is_single {
                turns.push(round % 10);
            } else {
                queue.add(changed);
            }
        }
        assert_eq!(turns.len(), 10, "{turns:?}");
        assert!(
            turns.iter().all(|turn| *turn <= 1),
            "it never waits for more than one of the others: {turns:?}"
        );
        assert_eq!((queue.depth(), queue.drain().len()), (5_000, 5_000));
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_queued_while_it_runs_runs_again_afterwards() {
        let queue = Queue::default();
        queue.add(target("a"));
        let job = queue.next().await;
        queue.add(target("a"));
        assert!(has_no_job(&queue).await);
        queue.finish(job, false);
        assert_eq!(queue.next().await.target, target("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_target_is_retried_with_a_growing_back_off() {
        let queue = Queue::default();
        queue.add(target("a"));
        let mut last = Duration::ZERO;
        for _ in 0..5 {
            let start = Instant::now();
            let job = queue.next().await;
            assert!(start.elapsed() >= last);
            last = start.elapsed();
            queue.finish(job, true);
        }
        assert!(last >= Duration::from_secs(1), "{last:?}");
        let job = queue.next().await;
        queue.finish(job, false);
        assert!(has_no_job(&queue).await, "a success ends it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_idle_when_nothing_is_queued_running_or_due() {
        let (queue, soon) = (Queue::default(), Duration::from_secs(1));
        assert!(queue.is_idle(soon));
        queue.add(target("a"));
        assert!(!queue.is_idle(soon), "queued");
        let job = queue.next().await;
        assert!(!queue.is_idle(soon), "running");
        queue.add(target("a"));
        queue.finish(job, false);
        assert!(!queue.is_idle(soon), "queued again");
        let job = queue.next().await;
        queue.finish(job, false);
        assert!(queue.is_idle(soon));
        assert_eq!(queue.finished(), 2);
        for _ in 0..5 {
            queue.add(target("a"));
            let job = queue.next().await;
            queue.finish(job, true);
        }
        assert!(queue.is_idle(soon), "retried later");
        tokio::time::advance(soon * 3).await;
        assert!(!queue.is_idle(soon), "retried soon");
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_queues_itself_while_it_fails_does_not_run_in_a_loop() {
        let queue = Queue::default();
        queue.add(target("a"));
        let start = Instant::now();
        for _ in 0..20 {
            let job = queue.next().await;
            queue.add(target("a"));
            queue.finish(job, true);
        }
        let elapsed = start.elapsed();
        assert!(elapsed > Duration::from_secs(30), "{elapsed:?}");
        assert!(elapsed < Duration::from_secs(20 * 6), "a change does not wait for minutes: {elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_fails_again_and_again_is_retried_once_at_a_time() {
        let queue = Queue::default();
        for _ in 0..100 {
            queue.add(target("a"));
            let job = queue.next().await;
            queue.finish(job, true);
        }
        let retries = || {
            let state = queue.lock();
            (state.failed.len(), state.retries.len())
        };
        assert_eq!(retries(), (1, 1));
        queue.add(target("a"));
        let job = queue.next().await;
        queue.finish(job, false);
        assert_eq!(retries(), (0, 0), "a success ends all of it");
        assert!(timeout(LONGEST_DELAY * 2, queue.next()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn every_idle_worker_gets_work() {
        let queue = Arc::new(Queue::default());
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await.target.name.clone() })
            })
            .collect();
        tokio::task::yield_now().await;
        for name in ["a", "b", "c", "d"] {
            queue.add(target(name));
        }
        for worker in workers {
            timeout(Duration::from_secs(1), worker)
                .await
                .expect("no worker sleeps while there is work")
                .unwrap();
        }
    }
}
