//! What metrics have of a request to a backend.

use std::{sync::Arc, time::Instant};

use skep_gateway::{
    identity::Owner,
    middleware::{BackendRequest, Telemetry},
};
use skep_mcp::{Method, Revision};

use super::{ClientRequest, Front};
use crate::backend::Backend;

/// A request that is measured, if anything is.
pub(super) struct Measured {
    telemetry: Option<Telemetry>,
    started: Instant,
    backend: Arc<Backend>,
    method: Method,
    /// The tool that is called, as the backend knows it.
    tool: Option<Box<str>>,
    is_authenticated: bool,
}

impl Measured {
    pub(super) fn new(
        server: &Front,
        request: &ClientRequest<'_>,
        backend: &Arc<Backend>,
        name: Option<&str>,
    ) -> Self {
        Self {
            telemetry: server.chain.telemetry().cloned(),
            started: Instant::now(),
            backend: backend.clone(),
            method: request.method,
            tool: name.filter(|_| request.method == Method::ToolsCall).map(Into::into),
            is_authenticated: request.session.owner != Owner::ANONYMOUS,
        }
    }

    /// Records the request, which has ended.
    pub(super) fn record(&self, revision: Option<Revision>, has_failed: bool) {
        let Some(telemetry) = &self.telemetry else { return };
        telemetry.record_backend(&BackendRequest {
            backend: &self.backend.name,
            url: &self.backend.blueprint.url,
            transport: self.backend.transport.as_str(),
            revision: revision.or_else(|| self.backend.revision()).map(Revision::name).unwrap_or_default(),
            method: self.method.name().unwrap_or_default(),
            tool: self.tool.as_deref(),
            is_authenticated: self.is_authenticated,
            has_failed,
            took: self.started.elapsed(),
        });
    }
}
