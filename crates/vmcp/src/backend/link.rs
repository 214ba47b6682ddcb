//! A session with a backend. Backends of 2026-07-28 have none: then it is only known how to speak to them.

use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue};
use skep_mcp::{
    Era, Revision,
    header::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, encoded_name},
};
use tokio::sync::Semaphore;

use super::{Capabilities, OutgoingRequest, http_sse, questions::Questions, request::Form};
use crate::{level::Level, limits};

/// A session with a backend.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) revision: Revision,
    pub(crate) capabilities: Capabilities,
    pub(super) session: Option<HeaderValue>,
    /// The capabilities of the client that it was opened for.
    pub(super) client: Arc<str>,
    /// The stream of all messages, of a backend that speaks HTTP+SSE.
    pub(super) stream: Option<http_sse::Stream>,
    /// Requests of the backend to the client.
    pub(crate) questions: Questions,
    /// Bounds the answers that are sent in place of the client.
    pub(super) declining: Arc<Semaphore>,
    /// The lowest level of log messages that calls of clients of 2026-07-28 have had it send.
    level: Mutex<Option<Level>>,
}

/// A session at a backend that any replica can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resumable {
    pub(crate) session: String,
    pub(crate) revision: Revision,
}

impl Link {
    pub(super) fn new(
        revision: Revision,
        capabilities: Capabilities,
        session: Option<HeaderValue>,
        client: Arc<str>,
        stream: Option<http_sse::Stream>,
    ) -> Self {
        let (questions, level) = (Questions::default(), Mutex::default());
        let declining = Arc::new(Semaphore::new(limits::INPUTS));
        Self { revision, capabilities, session, client, stream, questions, declining, level }
    }

    /// One with a backend that has no sessions.
    pub(super) fn modern(capabilities: Capabilities, client: Arc<str>) -> Self {
        Self::new(Revision::V2026_07_28, capabilities, None, client, None)
    }

    /// Whether the backend must be sent that it is to send log messages of this level: it does not send them yet.
    pub(crate) fn lower_level(&self, wanted: Level) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let is_lower = level.is_none_or(|set| wanted < set);
        if is_lower {
            *level = Some(wanted);
        }
        is_lower
    }

    /// The stream that its requests come on, where only the process that opened it can answer them.
    pub(crate) fn stream(&self) -> Option<&str> {
        self.stream.as_ref().map(|stream| &*stream.id)
    }

    /// How requests of this session are written.
    pub(crate) fn form(&self) -> Form<'_> {
        Form { era: self.revision.era(), capabilities: &self.client, log_level: None }
    }

    /// What another replica needs to use it. A stream belongs to the process that opened it.
    pub(crate) fn resumable(&self) -> Option<Resumable> {
        let session = self.session.as_ref().filter(|_| self.stream.is_none())?.to_str().ok()?;
        Some(Resumable { session: session.to_owned(), revision: self.revision })
    }

    /// The headers of every message in this session.
    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(self.revision.name()));
        if let Some(session) = &self.session {
            headers.insert(MCP_SESSION_ID, session.clone());
        }
    }

    /// The headers of a request.
    pub(super) fn request_headers(&self, headers: &mut HeaderMap, request: &OutgoingRequest<'_>) {
        self.headers(headers);
        if self.revision.era() == Era::Modern {
            let method = HeaderValue::from_str(request.method);
            headers.extend(method.map(|method| (HeaderName::from_static(MCP_METHOD), method)));
            let name = request.name.and_then(|name| HeaderValue::from_str(&encoded_name(name)).ok());
            headers.extend(name.map(|name| (HeaderName::from_static(MCP_NAME), name)));
            headers.extend(request.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }
}
