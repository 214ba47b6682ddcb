//! What a program that runs for long leaves behind of its start.

use std::time::Duration;

/// How long a start takes at most, on a usual machine.
const START_UP: Duration = Duration::from_secs(5);

/// Returns the memory of code that only ran at the start, once that is over.
pub(crate) fn release_code_afterwards() {
    tokio::spawn(async {
        tokio::time::sleep(START_UP).await;
        skep_memory::release_code();
    });
}
