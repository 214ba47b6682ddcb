//! How a session with a backend begins and ends.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method};
use skep_api::vmcp::BackendTransport;
use skep_mcp::{Era, Raw, Revision, header::MCP_SESSION_ID};

use super::{
    Backend, BackendError, Caller, Capabilities, Link, Messages, Resumable, Spoken, http_sse,
    request::{CLIENT, VERSION},
};

/// The code of 2026-07-28 for a version that a server does not speak.
const UNSUPPORTED_VERSION: i64 = -32022;

impl Backend {
    /// A session that another replica has opened, if it can be used here.
    pub(crate) fn resume(&self, known: &Resumable, client: &Arc<str>) -> Option<Link> {
        if self.transport == BackendTransport::Sse {
            return None;
        }
        let session = HeaderValue::from_str(&known.session).ok()?;
        // What the backend declares is the same for all sessions.
        Some(Link::new(known.revision, self.declared(), Some(session), client.clone(), None))
    }

    /// Opens a session for a client with these capabilities, in the client's own era if the backend speaks both: then
    /// nothing is lost by translating.
    pub(crate) async fn open(
        self: &Arc<Self>,
        caller: &Caller,
        client: &Arc<str>,
        preferred: Era,
    ) -> Result<Link, BackendError> {
        let spoken = match self.spoken() {
            Some(spoken) => spoken,
            None => self.discover(caller).await?,
        };
        let modern = |capabilities| Link::modern(capabilities, client.clone());
        if let Some(capabilities) = spoken.modern_for(preferred) {
            return Ok(modern(capabilities));
        }
        match (self.initialize(caller, client).await, spoken.without_sessions()) {
            // It has promised more than it keeps.
            (Err(BackendError::Rpc { code: UNSUPPORTED_VERSION, .. }), Some((spoken, capabilities))) => {
                self.set_spoken(spoken);
                Ok(modern(capabilities))
            }
            (link, _) => link,
        }
    }

    /// Learns which revisions it speaks.
    async fn discover(&self, caller: &Caller) -> Result<Spoken, BackendError> {
        let link = Link::modern(Capabilities::default(), "{}".into());
        let spoken = match self.call(&link, caller, "server/discover", None).await {
            Ok(result) => Spoken::discovered(Raw::spelled(&result).ok_or(BackendError::Malformed)?),
            // It cannot be spoken to in another way either.
            Err(
                error @ (BackendError::Unreachable(_)
                | BackendError::Timeout(_)
                | BackendError::Unauthenticated(_)
                | BackendError::NoCredentials(_)
                | BackendError::NotConnected { .. }),
            ) => {
                return Err(error);
            }
            // An older server does not know the method, or insists on a session.
            Err(_) => Spoken::LEGACY,
        };
        self.set_spoken(spoken);
        Ok(spoken)
    }

    async fn initialize(self: &Arc<Self>, caller: &Caller, client: &Arc<str>) -> Result<Link, BackendError> {
        let (latest, id) = (Revision::V2025_11_25, self.own_id());
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{}","capabilities":{client},"clientInfo":{{"name":"{CLIENT}","version":"{VERSION}"}}}}}}"#,
            latest.name()
        );
        let headers = self.headers(caller);
        let stream = match self.transport {
            BackendTransport::Sse => Some(http_sse::Stream::open(self, caller, headers.clone()).await?),
            BackendTransport::StreamableHttp => None,
        };
        let (session, mut messages) = match &stream {
            Some(stream) => {
                let inbox = stream.request(caller, headers, &id, body.into(), self.timeout).await?;
                (None, Messages::Queue(inbox))
            }
            None => {
                let head = self.post(caller, headers, body.into()).await?;
                let session = head.response.headers().get(MCP_SESSION_ID).cloned();
                (session, Messages::of(head, &self.budget_of(caller), self.timeout).await?)
            }
        };
        let result = self.result(&id, None, caller, &mut messages).await?;
        let result = Raw::spelled(&result).ok_or(BackendError::Malformed)?;
        let agreed = result.get("protocolVersion").and_then(Raw::as_text);
        let capabilities = Capabilities::new(result.get("capabilities"));
        self.set_declared(capabilities);
        let revision = agreed.and_then(|version| Revision::named(version.as_bytes())).unwrap_or(latest);
        let link = Link::new(revision, capabilities, session, client.clone(), stream);
        self.notify(&link, caller, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into())
            .await?;
        Ok(link)
    }

    /// Ends a session.
    pub(crate) async fn close(&self, link: &Link, caller: &Caller) -> Result<(), BackendError> {
        if link.session.is_some() {
            let mut headers = self.headers(caller);
            link.headers(&mut headers);
            self.send(caller, Method::DELETE, headers, Bytes::new()).await?;
        }
        Ok(())
    }
}
