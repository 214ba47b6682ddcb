//! A server that is going to be created: its proxy serves before it exists.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use skep_config::{RunConfig, objects, run_config::Transport};
use tokio::sync::watch;

use super::{Attachment, Kubernetes, Outcome, Phase, Readiness, RuntimeError};
use crate::runtime::{Attach, BoxRead, BoxWrite};

/// A server that is going to run in the cluster.
pub struct Starting {
    config: RunConfig,
    phase: watch::Sender<Phase>,
    attachment: watch::Sender<Option<Arc<Attachment>>>,
    is_first: Arc<AtomicBool>,
}

/// Attaches to a stdio server, once there is one.
pub struct Later(watch::Receiver<Option<Arc<Attachment>>>);

impl Starting {
    /// The server that the RunConfig describes. Nothing is requested or created yet: see [`run`](Self::run).
    pub fn new(config: &RunConfig) -> Self {
        Self {
            config: config.clone(),
            phase: watch::channel(Phase::Waiting).0,
            attachment: watch::channel(None).0,
            is_first: Arc::default(),
        }
    }

    /// The host under which a server that speaks HTTP will be reached within its namespace.
    pub fn host(&self) -> String {
        objects::backend_service(&self.config.container_name)
    }

    /// Its readiness.
    pub fn readiness(&self) -> Readiness {
        Readiness::from_phase(self.phase.subscribe())
    }

    /// Whether the server turns out to be a new one: then there is no other proxy in front of an older one.
    pub(crate) fn is_first(&self) -> Arc<AtomicBool> {
        self.is_first.clone()
    }

    /// Attaches to a stdio server.
    pub fn attachment(&self) -> Later {
        Later(self.attachment.subscribe())
    }

    /// Creates the server in the namespace of the environment, and watches it until it is deleted.
    pub async fn run(self, env: &BTreeMap<String, String>) -> Result<(), RuntimeError> {
        let server = Kubernetes::connect(env).await?.run(&self.config).await?;
        self.is_first.store(matches!(server.outcome(), Outcome::Created(_)), Ordering::Relaxed);
        if self.config.transport == Transport::Stdio {
            self.attachment.send_replace(Some(Arc::new(server.attachment())));
        }
        let mut readiness = server.readiness();
        loop {
            let phase = readiness.phase();
            self.phase.send_replace(phase);
            if phase == Phase::Deleted || !readiness.wait_for_change().await {
                return Ok(());
            }
        }
    }
}

impl Attach for Later {
    async fn attach(&self) -> io::Result<(BoxRead, BoxWrite)> {
        let mut later = self.0.clone();
        let attachment = later.wait_for(Option::is_some).await.ok().and_then(|attachment| attachment.clone());
        match attachment {
            Some(attachment) => attachment.attach().await,
            None => Err(io::Error::other("the server was not created")),
        }
    }
}
