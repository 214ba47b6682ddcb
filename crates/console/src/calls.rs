//! The log of calls of each server.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use skep_gateway::middleware::{CallLog, Traffic};
use tokio::sync::watch;

use crate::Key;

/// The logs of calls, by the object that runs the server.
#[derive(Default)]
pub struct CallLogs {
    logs: RwLock<BTreeMap<Key, Arc<CallLog>>>,
    /// How many pages are open.
    viewers: watch::Sender<usize>,
}

/// A page that is open.
pub(crate) struct Viewing(Arc<CallLogs>);

impl Drop for Viewing {
    fn drop(&mut self) {
        self.0.viewers.send_modify(|count| *count -= 1);
    }
}

impl CallLogs {
    /// The log of this object. It is created when it is first requested, and outlives a restart of the server.
    pub fn of(&self, key: &Key) -> Arc<CallLog> {
        if let Some(log) = self.find(key) {
            return log;
        }
        let mut logs = self.logs.write().unwrap_or_else(PoisonError::into_inner);
        logs.entry(key.clone()).or_default().clone()
    }

    /// Drops the logs of all other objects.
    pub fn keep(&self, is_kept: impl Fn(&Key) -> bool) {
        self.logs.write().unwrap_or_else(PoisonError::into_inner).retain(|key, _| is_kept(key));
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Arc<CallLog>> {
        self.logs.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(Key, Arc<CallLog>)> {
        let logs = self.logs.read().unwrap_or_else(PoisonError::into_inner);
        logs.iter().map(|(key, log)| (key.clone(), log.clone())).collect()
    }

    pub(crate) fn traffic(&self, key: &Key) -> Option<Traffic> {
        self.find(key).map(|log| log.traffic())
    }

    /// Counts a page that is open, for as long as the result is kept.
    pub(crate) fn view(self: &Arc<Self>) -> Viewing {
        self.viewers.send_modify(|count| *count += 1);
        Viewing(self.clone())
    }

    pub(crate) fn viewers(&self) -> watch::Receiver<usize> {
        self.viewers.subscribe()
    }
}
