//! The server as a process beside the proxy.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    pin::Pin,
    process::Stdio,
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use skep_config::{RunConfig, env};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader},
    process::{Child, ChildStdin, Command},
    sync::{Mutex, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tracing::{info, warn};

use super::{Attach, BoxRead, BoxWrite};
use crate::{ConfigError, limits};

/// What a process has of the proxy's environment: what any program needs.
const INHERITED: [&str; 9] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/// A server that is started as a child process, one at a time.
pub struct Local {
    program: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    /// The end of the process that was started last.
    last: Mutex<Option<JoinHandle<()>>>,
}

impl Local {
    /// The server of a RunConfig that names no image: its `cmd_args` are the command line.
    pub fn new(config: &RunConfig) -> Result<Self, ConfigError> {
        if !config.image.is_empty() {
            let message =
                "image: a stdio server in a container needs a cluster; leave it empty to run cmd_args";
            return Err(ConfigError::new(message));
        }
        let [program, args @ ..] = config.cmd_args.as_slice() else {
            return Err(ConfigError::new("cmd_args: the command line of the stdio server is missing"));
        };
        let mut env = config.env_vars.clone();
        env.insert(env::MCP_TRANSPORT.into(), config.transport.as_str().into());
        Ok(Self { program: program.clone(), args: args.to_vec(), env, last: Mutex::new(None) })
    }
}

impl Attach for Local {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        let mut last = self.last.lock().await;
        if let Some(end) = last.take() {
            end.await.ok();
        }
        let own = |name: &&str| std::env::var_os(name).map(|value| (name.to_string(), value));
        let mut child = Command::new(&self.program)
            .args(&self.args)
            // The proxy's own environment has secrets that are not for the server.
            .env_clear()
            .envs(INHERITED.iter().filter_map(own))
            .envs(&self.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // What it starts itself, as npx does, ends with it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("cannot start {}: {error}", self.program))
            })?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other(format!("{} has no standard input and output", self.program)));
        };
        tokio::spawn(log(errors));
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (done, is_done) = oneshot::channel::<()>();
        let (ended, is_ended) = oneshot::channel::<()>();
        *last = Some(tokio::spawn(async move {
            // Done with, or ended by itself.
            tokio::select! {
                _ = is_done => {}
                _ = child.wait() => {}
            }
            end(child, group).await;
            drop(ended);
        }));
        Ok((Box::new(output), Box::new(Input { pipe: Some(input), done: Some(done), ended: Some(is_ended) })))
    }
}

/// The input of the process. Without it the process is to end.
struct Input {
    pipe: Option<ChildStdin>,
    done: Option<oneshot::Sender<()>>,
    ended: Option<oneshot::Receiver<()>>,
}

impl Input {
    fn pipe(&mut self) -> io::Result<Pin<&mut ChildStdin>> {
        self.pipe.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.pipe()?.poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe = None;
        self.done = None;
        // The sender says nothing, and goes when the process has gone.
        if let Some(ended) = &mut self.ended {
            ready!(Pin::new(ended).poll(context)).ok();
            self.ended = None;
        }
        Poll::Ready(Ok(()))
    }
}

/// Ends a process whose input is closed as MCP wants it: it may end by itself, is asked to, and then is killed.
async fn end(mut child: Child, group: Option<Pid>) {
    for (signal, patience) in [
        (None, limits::STDIO_END_TIME),
        (Some(Signal::TERM), limits::STDIO_END_TIME),
        (Some(Signal::KILL), Duration::from_secs(60)),
    ] {
        if let (Some(group), Some(signal)) = (group, signal) {
            kill_process_group(group, signal).ok();
        }
        if let Ok(status) = timeout(patience, child.wait()).await {
            // What it has started and left behind.
            if let Some(group) = group {
                kill_process_group(group, Signal::KILL).ok();
            }
            match status {
                Ok(status) => info!(%status, "the server's process has ended"),
                Err(error) => warn!(%error, "nothing is known of the end of the server's process"),
            }
            return;
        }
    }
    warn!("the server's process does not end");
}

/// What the server complains about, line by line. A line that is too long is cut.
async fn log(errors: impl AsyncRead + Unpin) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = limits::STDIO_LOG_LINE as u64;
        match (&mut errors).take(limit).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                info!(target: "server", "{}", text.trim_end());
            }
        }
    }
}
