//! The sessions of clients.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::json;
use sha2::{Digest, Sha256};
use skep_gateway::{
    http::{Body, response},
    message::Exchange,
    sessions::Records,
};
use skep_mcp::{Envelope, Era, Raw, Rejection, Revision, SessionId, header::MCP_SESSION_ID};
use tracing::debug;

use super::{Front, rpc};
use crate::{
    backend::VERSION,
    session::{Client, ClientSession, Known, Record},
};

impl Front {
    /// Starts a session. No backend is contacted: each is when it is first needed.
    pub(super) async fn initialize(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
        id: &str,
    ) -> Result<Response<Body>, Rejection> {
        let requested = envelope.requested_version().map(|version| version.decoded());
        let revision = requested.and_then(|version| Revision::named(version.as_bytes()));
        let revision =
            revision.filter(|revision| revision.era() == Era::Legacy).unwrap_or(Revision::V2025_11_25);
        let capabilities = envelope.params().and_then(|params| params.get("capabilities"));
        let session = SessionId::random();
        let started = self.new_session(Client {
            owner: exchange.owner(),
            era: Era::Legacy,
            capabilities: self.capabilities.declared(capabilities),
            shared: self.records.as_ref().map(|_| session.as_str().into()),
        });
        if let Some(records) = &self.records {
            let stored = records.put(session.as_str(), &started.record().to_bytes()).await;
            stored.map_err(|_| Rejection::Unavailable("session store"))?;
        }
        if self.sessions.put(session.as_str(), Known(started), exchange.peer.ip()).is_err() {
            return Err(Rejection::Unavailable("sessions"));
        }
        let result = json!({
            "protocolVersion": revision.name(),
            "capabilities": {
                "completions": {},
                "logging": {},
                "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
                "tools": {"listChanged": true},
            },
            "serverInfo": {"name": &*self.name, "version": VERSION},
        });
        let mut response = rpc::result(id, &result.to_string(), Era::Legacy);
        let session = HeaderValue::from_str(session.as_str()).map_err(|_| Rejection::Internal)?;
        response.headers_mut().insert(MCP_SESSION_ID, session);
        Ok(response)
    }

    /// A session that sees the backends that are available now.
    pub(super) fn new_session(&self, client: Client) -> Arc<ClientSession> {
        let session = ClientSession::new(client, self.ended.clone(), &self.presence);
        self.views.pin(&session);
        Arc::new(session)
    }

    /// The session of a caller that has none, since 2026-07-28. It keeps the sessions at older backends, which would have
    /// to be opened for each request otherwise. Callers that cannot be distinguished, but by their addresses and the headers
    /// that are passed on, share one.
    pub(super) fn stateless_session(
        &self,
        exchange: &Exchange,
        envelope: &Envelope<'_>,
    ) -> Result<Arc<ClientSession>, Rejection> {
        let owner = exchange.owner();
        let capabilities = self.capabilities.declared(envelope.meta().client_capabilities());
        // The same capabilities are one text in memory. Backends may decide by the headers that are passed on.
        let id = format!(
            "{}/{}/{:p}/{}",
            owner.to_text(),
            exchange.peer.ip(),
            Arc::as_ptr(&capabilities),
            headers_digest(&self.passed_headers(exchange)),
        );
        if let Some(Known(session)) = self.stateless.get(&id) {
            return Ok(session);
        }
        let session = self.new_session(Client { owner, era: Era::Modern, capabilities, shared: None });
        match self.stateless.put(&id, Known(session.clone()), exchange.peer.ip()) {
            Ok(()) => Ok(session),
            Err(_) => Err(Rejection::Unavailable("sessions")),
        }
    }

    /// The session that a request names, if it belongs to the caller.
    pub(super) async fn session(&self, exchange: &Exchange) -> Result<Arc<ClientSession>, SessionError> {
        let Some(id) = exchange.headers.get(MCP_SESSION_ID) else { return Err(SessionError::Missing) };
        let id = SessionId::parse(id.as_bytes()).map_err(|_| SessionError::Unknown)?;
        let known = self.sessions.get(id.as_str()).map(|Known(session)| session);
        let session = match &self.records {
            None => known.ok_or(SessionError::Unknown)?,
            Some(records) => self.stored(records, id.as_str(), known, exchange).await?,
        };
        if session.owner != exchange.owner() {
            return Err(SessionError::Foreign);
        }
        Ok(session)
    }

    /// The session as all replicas see it. While Redis is unavailable, those that are known here go on.
    async fn stored(
        &self,
        records: &Records,
        id: &str,
        known: Option<Arc<ClientSession>>,
        exchange: &Exchange,
    ) -> Result<Arc<ClientSession>, SessionError> {
        let record = match records.get(id).await {
            Ok(record) => record.as_deref().and_then(Record::parse),
            Err(_) => return known.ok_or(SessionError::Unavailable),
        };
        let Some(record) = record else {
            // Another replica has ended it.
            self.sessions.remove(id);
            return Err(SessionError::Unknown);
        };
        let is_taken_over = known.is_none();
        let session = match known {
            Some(session) => session,
            None => {
                let session = self.new_session(Client {
                    owner: record.owner,
                    era: Era::Legacy,
                    capabilities: self.capabilities.declared(Raw::spelled(&record.capabilities)),
                    shared: Some(id.into()),
                });
                let put = self.sessions.put(id, Known(session.clone()), exchange.peer.ip());
                put.map_err(|_| SessionError::Unavailable)?;
                session
            }
        };
        session.update(record);
        if is_taken_over {
            // What it was shown elsewhere is not known: changes from now on are announced.
            session.show_all(|_| self.views.peek(&session));
        }
        Ok(session)
    }

    /// Stores what has changed of a session, for other replicas.
    pub(super) async fn store(&self, session: &ClientSession) {
        store(self.records.as_deref(), session).await;
    }

    pub(super) async fn end_session(&self, exchange: &Exchange) -> Result<Response<Body>, Rejection> {
        let session = match self.session(exchange).await {
            Ok(session) => session,
            Err(error) => return Ok(error.response()),
        };
        session.outbox.close();
        if let Some(id) = exchange.headers.get(MCP_SESSION_ID).and_then(|id| id.to_str().ok()) {
            if let Some(records) = &self.records {
                records.remove(id).await.map_err(|_| Rejection::Unavailable("session store"))?;
            }
            self.sessions.remove(id);
        }
        Ok(response::empty(StatusCode::OK))
    }
}

/// Stores what has changed of a session, for other replicas.
pub(super) async fn store(records: Option<&Records>, session: &ClientSession) {
    let (Some(records), Some(id)) = (records, session.links.shared()) else { return };
    if records.change(id, &session.record().to_bytes()).await.is_err() {
        debug!("a session could not be stored");
    }
}

/// What distinguishes these headers from others. They may be secrets, so they are not kept.
fn headers_digest(headers: &HeaderMap) -> String {
    if headers.is_empty() {
        return String::new();
    }
    let mut digest = Sha256::new();
    for (name, value) in headers {
        // With their lengths, so that no letters can move from the one to the other.
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
    }
    URL_SAFE_NO_PAD.encode(digest.finalize())
}

/// Why a request has no session.
pub(super) enum SessionError {
    Missing,
    Unknown,
    Foreign,
    /// It cannot be looked up now.
    Unavailable,
}

impl SessionError {
    /// To the caller, a session of another one does not exist.
    pub(super) fn response(&self) -> Response<Body> {
        match self {
            Self::Missing => response::text(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing\n"),
            Self::Unavailable => response::error(&Rejection::Unavailable("session store"), None),
            Self::Unknown | Self::Foreign => response::error(&Rejection::Session, None),
        }
    }
}
