//! How local servers are started.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use skep_config::RunConfig;
use skep_proxy::runtime::{Attach, BoxRead, BoxWrite, Guard, Local};

use super::engine::{Container, ContainerSpec};

/// How a server is started each time.
#[derive(Clone)]
pub(super) struct Start {
    /// The specification of its container, if it has one.
    spec: Option<Arc<ContainerSpec>>,
    /// What ends its process if this one is killed.
    guard: Option<Arc<Guard>>,
    starts: Arc<Starts>,
}

/// The results of all starts of a server.
#[derive(Default)]
struct Starts {
    times: AtomicU32,
    /// Why the last start failed.
    problem: Mutex<Option<String>>,
}

impl Start {
    /// By the command line in its RunConfig. A remote server has none, and is never started.
    pub(super) fn process(guard: Option<Arc<Guard>>) -> Self {
        Self { spec: None, guard, starts: Arc::default() }
    }

    pub(super) fn container(spec: Arc<ContainerSpec>) -> Self {
        Self { spec: Some(spec), ..Self::process(None) }
    }

    pub(super) fn spec(&self) -> Option<&ContainerSpec> {
        self.spec.as_deref()
    }

    /// How often it was started.
    pub(super) fn times(&self) -> u32 {
        self.starts.times.load(Ordering::Relaxed)
    }

    /// Why the last start failed, if it did.
    pub(super) fn problem(&self) -> Option<String> {
        self.starts.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn attachment(&self, config: &RunConfig) -> Result<Attachment, String> {
        let runtime = match &self.spec {
            None => {
                let local = Local::new(config).map_err(|error| error.to_string())?;
                Runtime::Process(local.guarded(self.guard.clone()))
            }
            Some(spec) => Runtime::Container(Container::new(spec.clone())),
        };
        Ok(Attachment { runtime, starts: self.starts.clone() })
    }
}

/// A server that is started when a client connects.
pub(super) struct Attachment {
    runtime: Runtime,
    starts: Arc<Starts>,
}

enum Runtime {
    Process(Local),
    Container(Container),
}

impl Attach for Attachment {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        self.starts.times.fetch_add(1, Ordering::Relaxed);
        let attached = match &self.runtime {
            Runtime::Process(process) => process.attach().await,
            Runtime::Container(container) => container.attach().await,
        };
        let problem = attached.as_ref().err().map(ToString::to_string);
        *self.starts.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
        attached
    }
}
