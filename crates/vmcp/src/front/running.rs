//! A request that runs at a backend.

use std::sync::Arc;

use skep_gateway::sessions::Records;
use skep_mcp::{Era, Raw};

use super::sessions::store;
use crate::{
    backend::{Backend, BackendError, Caller, Link},
    session::{Cancellation, ClientSession, InFlight},
};

/// A request that runs at a backend. If this is dropped before it has ended, for whatever reason, a backend of the older era is sent
/// that it is cancelled. Another one sees that its response is not read.
pub(super) struct Running {
    pub(super) session: Arc<ClientSession>,
    /// Where other replicas see the session.
    pub(super) records: Option<Arc<Records>>,
    pub(super) backend: Arc<Backend>,
    pub(super) link: Arc<Link>,
    pub(super) caller: Caller,
    /// The client's id, and the id there, as they are spelled.
    pub(super) of_client: Box<str>,
    pub(super) id: String,
    pub(super) cancellation: Arc<Cancellation>,
    pub(super) has_ended: bool,
}

impl Running {
    /// It goes on as another request of the client.
    pub(super) fn go_on(&mut self, caller: &Caller, as_: &InFlight) {
        (self.caller, self.cancellation) = (caller.clone(), as_.cancellation.clone());
    }

    /// It has failed: the backend has responded, or it may still be at it.
    pub(super) fn failed(&mut self, error: &BackendError) {
        self.has_ended |= !matches!(
            error,
            BackendError::Timeout(_)
                | BackendError::TooLong(_)
                | BackendError::TooLarge
                | BackendError::NoMemory
                | BackendError::Broken
                | BackendError::Cancelled
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without a runtime, the process ends.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.has_ended {
            return;
        }
        if self.session.give_up(&self.of_client, &self.id) {
            let (session, records) = (self.session.clone(), self.records.clone());
            runtime.spawn(async move { store(records.as_deref(), &session).await });
        }
        if self.cancellation.is_told() || self.link.revision.era() == Era::Modern {
            return;
        }
        let (backend, link, caller) = (self.backend.clone(), self.link.clone(), self.caller.clone());
        let body = cancelled(&self.id);
        runtime.spawn(async move { backend.notify(&link, &caller, body.into()).await });
    }
}

/// The notification that a request with this id, as it is spelled, is cancelled.
pub(super) fn cancelled(id: &str) -> String {
    let id = Raw::spelled(id).map_or("null", |id| id.as_str());
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}
