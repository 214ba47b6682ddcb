//! Signals of the process.

use tokio::signal::unix::{SignalKind, signal};

/// Completes when the process gets a signal to terminate.
pub(crate) fn shutdown_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::quit()]
        .map(signal)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    Ok(async move {
        let waits = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures::future::select_all(waits).await;
    })
}
