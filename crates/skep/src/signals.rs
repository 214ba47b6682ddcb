//! Signals of the process.

use std::{fs, io};

use futures::future::select_all;
use skep_proxy::limits;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

/// The variable that is set in every pod.
pub(crate) const IN_A_POD: &str = "KUBERNETES_SERVICE_HOST";

/// The signals that end a process.
pub(crate) struct ShutdownSignals(Vec<Signal>);

impl ShutdownSignals {
    /// SIGTERM, SIGINT and SIGQUIT.
    pub(crate) fn new() -> io::Result<Self> {
        Self::of(&[SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()])
    }

    /// Also SIGHUP, which a closed terminal sends, unless `nohup` has started the process.
    pub(crate) fn with_hangup() -> io::Result<Self> {
        let mut signals = Self::new()?;
        if !is_hangup_ignored() {
            signals.0.push(signal(SignalKind::hangup())?);
        }
        Ok(signals)
    }

    fn of(kinds: &[SignalKind]) -> io::Result<Self> {
        kinds.iter().map(|kind| signal(*kind)).collect::<Result<_, _>>().map(Self)
    }

    /// Completes when the process gets the next one.
    pub(crate) async fn next(&mut self) {
        select_all(self.0.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    }
}

/// Completes when the process gets a signal to terminate.
pub(crate) fn shutdown_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut signals = ShutdownSignals::new()?;
    Ok(async move { signals.next().await })
}

/// Whether this process was started with SIGHUP ignored. Where there is no procfs, it is not known.
fn is_hangup_ignored() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, SignalKind::hangup()))
}

fn ignores(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

/// Completes when the process should exit. In a pod that is some time after the signal, as clients learn only later that it
/// leaves: until then, `leave` makes their next request go to another one.
pub(crate) async fn drain(shutdown: impl Future<Output = ()>, in_a_pod: bool, leave: impl FnOnce()) {
    shutdown.await;
    if in_a_pod {
        info!("draining: connections are accepted for a while, without keep-alive");
        leave();
        tokio::time::sleep(limits::LEAVE_TIME).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_bits_of_a_mask() {
        let status = "Name:\tskep\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SignalKind::hangup()));
        assert!(!ignores(status, SignalKind::interrupt()));
        assert!(!ignores("", SignalKind::hangup()));
    }
}
