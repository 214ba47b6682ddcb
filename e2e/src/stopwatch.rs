//! Waiting with a timeout, and printing how long it took.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

/// The timeout of everything, long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Polls until there is a result.
pub(crate) fn until<T>(what: &str, mut poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begin = Instant::now();
    let mut last = None;
    while begin.elapsed() < PATIENCE {
        match poll() {
            Ok(Some(result)) => return Ok(result),
            Ok(None) => {}
            Err(error) => last = Some(error),
        }
        thread::sleep(Duration::from_millis(100));
    }
    match last {
        Some(error) => Err(error.context(format!("{what}: not within {} s", PATIENCE.as_secs()))),
        None => bail!("{what}: not within {} s", PATIENCE.as_secs()),
    }
}

/// Prints a line with the elapsed time.
pub(crate) fn print_elapsed(begin: Instant, what: &str) {
    println!("    {:5.1} s  {what}", begin.elapsed().as_secs_f64());
}
