//! Whether there are sessions at all. Without any, nothing is kept open at backends.

use tokio::sync::watch;

/// How many sessions there are.
#[derive(Clone)]
pub(crate) struct Presence(std::sync::Arc<watch::Sender<usize>>);

/// A session, for as long as it lives.
pub(crate) struct Present(Presence);

impl Presence {
    pub(crate) fn new() -> Self {
        Self(std::sync::Arc::new(watch::Sender::new(0)))
    }

    pub(super) fn enter(&self) -> Present {
        self.0.send_modify(|count| *count += 1);
        Present(self.clone())
    }

    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}
