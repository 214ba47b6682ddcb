//! The server as a process beside the proxy.

use std::{collections::BTreeMap, io, process::Stdio, sync::Arc, time::Duration};

use rustix::process::{Pid, Signal, kill_process_group};
use skep_config::{RunConfig, env, run_config::Transport};
use tokio::{
    process::{Child, Command},
    sync::{Mutex, oneshot},
    task::JoinHandle,
    time::timeout,
};
use tracing::{Instrument, info, warn};

use super::{Attach, BoxRead, BoxWrite, Guard, Input, inherited, log};
use crate::{ConfigError, limits};

/// A server that is started as a child process, one at a time.
pub struct Local {
    program: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    /// How long it may take to end by itself when its input is closed.
    patience: Duration,
    /// What ends it if this process is killed.
    guard: Option<Arc<Guard>>,
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
        // One that speaks HTTP does not look at its input.
        let is_stdio = config.transport == Transport::Stdio;
        let patience = if is_stdio { limits::STDIO_END_TIME } else { Duration::ZERO };
        let (program, args) = (program.clone(), args.to_vec());
        Ok(Self { program, args, env, patience, guard: None, last: Mutex::new(None) })
    }

    /// Its processes also end if this one is killed.
    #[must_use]
    pub fn guarded(self, guard: Option<Arc<Guard>>) -> Self {
        Self { guard, ..self }
    }
}

impl Attach for Local {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        let mut last = self.last.lock().await;
        if let Some(end) = last.take() {
            end.await.ok();
        }
        let mut child = Command::new(&self.program)
            .args(&self.args)
            // The proxy's own environment has secrets that are not for the server.
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| inherited::is_inherited(name)))
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
        tokio::spawn(log(errors).in_current_span());
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = Group::new(pid, self.guard.clone());
        let patience = self.patience;
        let (done, is_done) = oneshot::channel::<()>();
        let (ended, is_ended) = oneshot::channel::<()>();
        let life = async move {
            // It is no longer needed, or has ended by itself.
            tokio::select! {
                _ = is_done => {}
                _ = child.wait() => {}
            }
            end(child, &group, patience).await;
            drop((group, ended));
        };
        *last = Some(tokio::spawn(life.in_current_span()));
        Ok((Box::new(output), Box::new(Input::new(input, done, is_ended))))
    }
}

/// A process with all that it has started. What is left of them is killed when this is dropped, also when the task that holds
/// it is aborted.
struct Group {
    id: Option<Pid>,
    guard: Option<Arc<Guard>>,
}

impl Group {
    fn new(id: Option<Pid>, guard: Option<Arc<Guard>>) -> Self {
        if let (Some(id), Some(guard)) = (id, &guard) {
            guard.add(id);
        }
        Self { id, guard }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.id {
            kill_process_group(group, signal).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let (Some(id), Some(guard)) = (self.id, &self.guard) {
            guard.remove(id);
        }
    }
}

/// Ends a process whose input is closed, as MCP requires: it may end by itself, gets SIGTERM, and then SIGKILL.
async fn end(mut child: Child, group: &Group, patience: Duration) {
    for (signal, patience) in [
        (None, patience),
        (Some(Signal::TERM), limits::STDIO_END_TIME),
        (Some(Signal::KILL), Duration::from_secs(60)),
    ] {
        if let Some(signal) = signal {
            group.signal(signal);
        }
        if let Ok(status) = timeout(patience, child.wait()).await {
            match status {
                Ok(status) => info!(%status, "the server's process ended"),
                Err(error) => warn!(%error, "failed to wait for the server's process"),
            }
            return;
        }
    }
    warn!("timeout waiting for the server's process to end");
}
