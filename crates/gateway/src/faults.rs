//! What goes wrong in the process itself, counted for metrics.

use std::{panic, sync::LazyLock};

use prometheus_client::metrics::counter::Counter;
use tracing::error;

// A panic ends one request or one task, which needs unwinding, in every profile.
const _: () = assert!(cfg!(panic = "unwind"), "a panic would end the process with all its sessions");

/// Panics.
pub(crate) static PANICS: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Entries of the audit log that could not be written.
pub(crate) static AUDIT_ENTRIES_LOST: LazyLock<Counter> = LazyLock::new(Counter::default);

/// The names and the help of the counters.
pub(crate) fn counters() -> [(&'static str, &'static str, &'static Counter); 2] {
    [
        ("skep_panics", "Panics: each ended one request or one task", &PANICS),
        (
            "skep_audit_entries_lost",
            "Entries of the audit log that could not be written",
            &AUDIT_ENTRIES_LOST,
        ),
    ]
}

/// Logs and counts panics from now on, with the place where each happened.
pub fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        PANICS.inc();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or_default();
        error!(place, message, "panic");
    }));
}
