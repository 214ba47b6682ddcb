//! What goes wrong in the process itself, counted for metrics.

use std::sync::LazyLock;

use prometheus_client::metrics::counter::Counter;

/// Entries of the audit log that could not be written.
pub(crate) static AUDIT_ENTRIES_LOST: LazyLock<Counter> = LazyLock::new(Counter::default);

/// The names and the help of the counters.
pub(crate) fn counters() -> [(&'static str, &'static str, &'static Counter); 2] {
    [
        ("skep_panics", "Panics: each ended one request or one task", &skep_panics::COUNT),
        (
            "skep_audit_entries_lost",
            "Entries of the audit log that could not be written",
            &AUDIT_ENTRIES_LOST,
        ),
    ]
}
