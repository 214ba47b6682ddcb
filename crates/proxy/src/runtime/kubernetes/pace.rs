//! How fast a stdio server is attached to again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

use crate::limits;

/// How long to wait before the next try: ever longer, until one lasted.
#[derive(Default)]
pub(super) struct Pace {
    pauses: Option<ExponentialBackoff>,
    opened: Option<Instant>,
}

impl Pace {
    /// A try succeeded, for now.
    pub(super) fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// The pause before the next try.
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
