//! Waiting for what must happen.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// How long something may take before it counts as not happening. A loaded machine gets more than it needs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is checked.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Waits until something is true.
///
/// # Panics
/// If that takes longer than [`PATIENCE`].
pub async fn until(what: &str, is_true: impl AsyncFnMut() -> bool) {
    until_within(PATIENCE, what, is_true).await;
}

/// Waits until something is true, for at most this long.
///
/// # Panics
/// If that takes longer.
pub async fn until_within(patience: Duration, what: &str, mut is_true: impl AsyncFnMut() -> bool) {
    let reached = async {
        while !is_true().await {
            sleep(PAUSE).await;
        }
    };
    timeout(patience, reached).await.unwrap_or_else(|_| panic!("not within {patience:?}: {what}"));
}
