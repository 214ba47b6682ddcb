//! The pauses between attempts to attach to a stdio server.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

use crate::limits;

/// The pause before the next attempt: it grows, until an attachment lasted.
#[derive(Default)]
pub(super) struct Pace {
    pauses: Option<ExponentialBackoff>,
    opened: Option<Instant>,
}

impl Pace {
    /// An attempt has succeeded.
    pub(super) fn record_success(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        if self.opened.take().is_some_and(|opened| opened.elapsed() >= limits::ATTACH_STABLE) {
            self.pauses = None;
        }
        let Some(pauses) = &mut self.pauses else {
            let pauses = ExponentialBuilder::default()
                .with_min_delay(limits::ATTACH_PAUSE_LEAST)
                .with_max_delay(limits::ATTACH_PAUSE_MOST)
                .without_max_times()
                .with_jitter();
            self.pauses = Some(pauses.build());
            return Duration::ZERO;
        };
        pauses.next().unwrap_or(limits::ATTACH_PAUSE_MOST)
    }
}
