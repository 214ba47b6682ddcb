//! Signals of the process.

use skep_proxy::limits;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

/// The variable that is set in every pod.
pub(crate) const IN_A_POD: &str = "KUBERNETES_SERVICE_HOST";

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
