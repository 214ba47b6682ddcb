//! Panics: each is logged with its place and counted, and ends only what it happens in: one request, one reconciliation, or
//! one run of a task that is started again.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::LazyLock,
    time::Duration,
};

use futures::FutureExt;
use prometheus_client::metrics::counter::Counter;
use tracing::error;

// What follows needs unwinding, in every profile.
const _: () = assert!(cfg!(panic = "unwind"), "a panic would end the process");

/// How long a task pauses after a panic, before it is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// The panics of this process since [`report`] was called.
pub static COUNT: LazyLock<Counter> = LazyLock::new(Counter::default);

/// A panic, which has been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// Logs and counts panics from now on, with the place where each happened.
pub fn report() {
    panic::set_hook(Box::new(|panic| {
        COUNT.inc();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or_default();
        error!(place, message, "panic");
    }));
}

/// Runs a future. What it leaves behind must be usable after a panic: locks are used although they are poisoned.
pub async fn catch<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|_| Panicked)
}

/// Runs a task until it ends, and starts it again after each panic.
pub async fn restart<T, F: Future<Output = T>>(name: &'static str, mut task: impl FnMut() -> F) -> T {
    loop {
        match catch(task()).await {
            Ok(ended) => return ended,
            Err(Panicked) => error!(name, "a task has panicked, and is started again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_is_started_again_after_each_panic_until_it_ends() {
        report();
        let before = COUNT.get();
        let mut runs = 0;
        let ended = restart("test", || {
            runs += 1;
            let run = runs;
            async move {
                assert!(run > 2, "a defect");
                run
            }
        });
        assert_eq!(ended.await, 3);
        assert_eq!(COUNT.get() - before, 2);
        assert_eq!(catch(async { panic!("a defect") }).await, Err::<(), _>(Panicked));
    }
}
