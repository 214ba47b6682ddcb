//! The parts of an endpoint that the program adds to those of the configuration.

use std::sync::Arc;

use super::{CallLog, CallsPage};
use crate::{AdministrationPage, AuthorizationServer};

/// The parts of an endpoint that the program adds to those of the configuration.
#[derive(Clone, Default)]
pub struct Extras {
    /// The authorization server whose routes share the listener.
    pub authorization_server: Option<Arc<dyn AuthorizationServer>>,
    /// The log that records calls.
    pub call_log: Option<Arc<CallLog>>,
    /// The page that shows the log of calls.
    pub calls_page: Option<Arc<CallsPage>>,
    /// The endpoints for administrators of the authorization server.
    pub administration: Option<Arc<AdministrationPage>>,
}

impl Extras {
    /// Adds a page that shows calls, with its log.
    pub fn with_calls_page(self, page: CallsPage) -> Self {
        Self { call_log: Some(page.log().clone()), calls_page: Some(Arc::new(page)), ..self }
    }
}
