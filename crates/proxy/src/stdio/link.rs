//! The server's end of the bridge: starting it, reading and writing, and starting it again.

use std::{io, sync::Arc, time::Duration};

use skep_mcp::stdio::{Line, Lines};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    time::{Instant, sleep},
};
use tracing::{debug, info, warn};

use super::{
    bridge::{Bridge, Status},
    incoming,
    queue::{QueuedLines, queue},
    router::Link,
    server::Phase,
};
use crate::{
    limits,
    runtime::{Attach, BoxRead, BoxWrite},
};

/// During a wait that is shorter than this, requests wait for the server instead of failing.
const SOON: Duration = Duration::from_secs(1);

/// Keeps the server running until it is to stop.
pub(super) async fn run<A: Attach + Send + Sync + 'static>(
    bridge: Arc<Bridge>,
    attach: Arc<A>,
    mut stop: watch::Receiver<Phase>,
) {
    // A panic may have ended this before: nothing would respond to what was in flight then.
    bridge.router().disconnect();
    let mut wait = limits::RESTART_FIRST;
    loop {
        let start = Instant::now();
        let attached = tokio::select! {
            attached = attach.attach() => attached,
            _ = stop.wait_for(|phase| *phase == Phase::Stopped) => return,
        };
        match attached {
            Ok((output, input)) => match serve(&bridge, output, input, &mut stop).await {
                Ended::Stopped => return,
                Ended::Broken(error) => warn!(%error, "the server ended"),
            },
            Err(error) => warn!(%error, "failed to start the server"),
        }
        if start.elapsed() >= limits::RESTART_RESET {
            wait = limits::RESTART_FIRST;
        }
        bridge.set_status(if wait < SOON { Status::Starting } else { Status::Down });
        info!(milliseconds = wait.as_millis(), "restarting the server");
        tokio::select! {
            () = sleep(wait) => {}
            _ = stop.wait_for(|phase| *phase == Phase::Stopped) => return,
        }
        wait = (wait * 2).min(limits::RESTART_LAST);
        bridge.set_status(Status::Starting);
    }
}

enum Ended {
    Stopped,
    Broken(io::Error),
}

/// Serves one run of the server.
async fn serve(
    bridge: &Arc<Bridge>,
    output: BoxRead,
    mut input: BoxWrite,
    stop: &mut watch::Receiver<Phase>,
) -> Ended {
    let (queue, lines) = queue();
    bridge.router().link = Link::Initializing(queue.clone());
    let ended = {
        let traffic = async {
            tokio::select! {
                error = read(bridge, output) => error,
                error = write(&mut input, lines) => error,
            }
        };
        let initialized = async {
            if let Err(rejection) = bridge.initialize_again(&queue).await {
                return io::Error::other(format!("it cannot be initialized again: {}", rejection.message()));
            }
            bridge.router().link = Link::Open(queue);
            bridge.set_status(Status::Ready);
            std::future::pending().await
        };
        tokio::select! {
            error = traffic => Ended::Broken(error),
            error = initialized => Ended::Broken(error),
            _ = stop.wait_for(|phase| *phase == Phase::Stopped) => Ended::Stopped,
        }
    };
    bridge.set_status(Status::Starting);
    bridge.router().disconnect();
    // The old process must have ended before a new one is started.
    if tokio::time::timeout(limits::END_TIME, input.shutdown()).await.is_err() {
        warn!("timeout waiting for the server to end");
    }
    ended
}

/// Reads the server's messages for ever.
async fn read(bridge: &Bridge, mut output: BoxRead) -> io::Error {
    let mut lines = Lines::new(limits::STDIO_LINE);
    let mut chunk = vec![0; 64 << 10];
    loop {
        match output.read(&mut chunk).await {
            Ok(0) => {
                if let Some(line) = lines.rest() {
                    route(bridge, line);
                }
                return io::Error::new(io::ErrorKind::UnexpectedEof, "its output has ended");
            }
            Ok(read) => lines.feed(&chunk[..read]),
            Err(error) => return error,
        }
        while let Some(line) = lines.line() {
            route(bridge, line);
        }
    }
}

fn route(bridge: &Bridge, line: Line) {
    match line {
        Line::Message(message) => incoming::route(bridge, &message),
        Line::Noise(noise) => debug!(bytes = noise.len(), "output of the server that is not a message"),
        Line::TooLong => {
            warn!(limit = limits::STDIO_LINE, "skipped a message of the server that is too long")
        }
    }
}

/// Writes lines to the server for ever.
async fn write(input: &mut BoxWrite, mut lines: QueuedLines) -> io::Error {
    while let Some(queued) = lines.next().await {
        let written = async {
            input.write_all(&queued.line).await?;
            input.flush().await
        };
        if let Err(error) = written.await {
            return error;
        }
    }
    io::ErrorKind::BrokenPipe.into()
}
