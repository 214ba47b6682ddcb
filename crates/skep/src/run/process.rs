//! A server that speaks HTTP, which is kept running.

use skep_proxy::{limits, runtime::Attach};
use tokio::{
    io::AsyncWriteExt,
    sync::watch,
    time::{Instant, sleep},
};
use tracing::warn;

use super::trial::stopped;

/// Keeps it running until it is to stop, and then ends it.
pub(super) async fn keep(server: impl Attach, stop: watch::Receiver<bool>) {
    let mut wait = limits::RESTART_FIRST;
    loop {
        let start = Instant::now();
        match server.attach().await {
            Ok((mut output, mut input)) => {
                // What it prints is not for anybody, but must be read for it to go on.
                let mut nowhere = tokio::io::sink();
                let ended = tokio::select! {
                    _ = tokio::io::copy(&mut output, &mut nowhere) => true,
                    () = stopped(stop.clone()) => false,
                };
                input.shutdown().await.ok();
                if !ended {
                    return;
                }
                warn!("the server has ended");
            }
            Err(error) => warn!(%error, "the server cannot be started"),
        }
        if start.elapsed() >= limits::RESTART_FORGOTTEN {
            wait = limits::RESTART_FIRST;
        }
        tokio::select! {
            () = sleep(wait) => {}
            () = stopped(stop.clone()) => return,
        }
        wait = (wait * 2).min(limits::RESTART_LAST);
    }
}
