//! All sessions of clients, and the sessions at backends that end with them.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use skep_gateway::sessions::{Memory, Records};
use tokio::sync::{Mutex, mpsc};

use crate::{
    limits,
    session::{AllCapabilities, Ended, Known, Opened, Presence},
};

/// All sessions of clients.
pub(super) struct ClientSessions {
    pub(super) by_id: Arc<Memory<Known>>,
    /// Sessions that all replicas see.
    pub(super) records: Option<Arc<Records>>,
    /// The sessions at backends of callers that have none here, since 2026-07-28.
    pub(super) stateless: Arc<Memory<Known>>,
    pub(super) presence: Presence,
    pub(super) capabilities: AllCapabilities,
    pub(super) ended: Ended,
    ending: Mutex<mpsc::Receiver<Opened>>,
}

impl ClientSessions {
    pub(super) fn new(life: Duration, records: Option<Arc<Records>>) -> Self {
        let (ended, ending) = Ended::new();
        Self {
            by_id: Arc::new(Memory::new(life)),
            records,
            stateless: Arc::new(Memory::new(life)),
            presence: Presence::new(),
            capabilities: AllCapabilities::default(),
            ended,
            ending: Mutex::new(ending),
        }
    }

    /// Expires idle sessions, and ends sessions at backends that are no longer needed. Never completes.
    pub(super) async fn run(&self) {
        tokio::select! {
            () = self.by_id.expire() => {}
            () = self.stateless.expire() => {}
            () = self.end_unused() => {}
        }
    }

    async fn end_unused(&self) {
        let mut ending = self.ending.lock().await;
        let sessions = futures::stream::poll_fn(|context| ending.poll_recv(context));
        sessions.for_each_concurrent(limits::ENDING_AT_ONCE, |opened| self.end(opened)).await;
    }

    /// Ends all sessions at backends, as the process does.
    pub(super) async fn end_all(&self) {
        self.by_id.clear();
        self.stateless.clear();
        let mut ending = self.ending.lock().await;
        let left = futures::stream::iter(std::iter::from_fn(|| ending.try_recv().ok()));
        let ended = left.for_each_concurrent(limits::ENDING_AT_ONCE, |opened| self.end(opened));
        tokio::time::timeout(limits::END_SESSION_TIME, ended).await.ok();
    }

    async fn end(&self, opened: Opened) {
        let Opened { backend, link, caller, shared } = opened;
        // Another replica may still use it.
        if let (Some(records), Some(id)) = (&self.records, &shared)
            && records.contains(id).await.unwrap_or(true)
        {
            return;
        }
        tokio::time::timeout(limits::END_SESSION_TIME, backend.close(&link, &caller)).await.ok();
    }
}
