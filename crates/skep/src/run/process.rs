//! Keeping a server that speaks HTTP running.

use skep_proxy::{limits, runtime::Attach};
use tokio::{
    io::AsyncWriteExt,
    sync::watch,
    time::{Instant, sleep},
};
use tracing::warn;

use super::discovery::stopped;

/// Keeps it running until it should stop, and then ends it.
pub(super) async fn keep(server: impl Attach, stop: watch::Receiver<bool>) {
    let mut wait = limits::RESTART_FIRST;
    loop {
        let start = Instant::now();
        match server.attach().await {
            Ok((mut output, mut input)) => {
                // Its output is discarded, but must be read so that it does not block.
                let mut nowhere = tokio::io::sink();
                let ended = tokio::select! {
                    _ = tokio::io::copy(&mut output, &mut nowhere) => true,
                    () = stopped(stop.clone()) => false,
                };
                input.shutdown().await.ok();
                if !ended {
                    return;
                }
                warn!("the server exited");
            }
            Err(error) => warn!(%error, "the server cannot be started"),
        }
        if start.elapsed() >= limits::RESTART_RESET {
            wait = limits::RESTART_FIRST;
        }
        tokio::select! {
            () = sleep(wait) => {}
            () = stopped(stop.clone()) => return,
        }
        wait = (wait * 2).min(limits::RESTART_LAST);
    }
}
