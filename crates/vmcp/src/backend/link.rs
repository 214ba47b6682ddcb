//! A session with a backend. Backends of 2026-07-28 have none: then it is only known how to speak to them.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::Value;
use skep_api::vmcp::BackendTransport;
use skep_gateway::outbound::UpstreamBody;
use skep_mcp::{
    Envelope, Era, Message, Outcome, Raw, Revision,
    header::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, encoded_name},
};

use super::{
    Backend, BackendError, Caller, Capabilities, Messages, http_sse,
    messages::{Events, Listening},
    request::{CLIENT, Form, VERSION, request},
};
use crate::session::Resumable;

/// A session with a backend.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) revision: Revision,
    pub(crate) capabilities: Capabilities,
    session: Option<HeaderValue>,
    /// The capabilities of the client that it was opened for.
    client: Arc<str>,
    /// The stream of all messages, of a backend that speaks HTTP+SSE.
    stream: Option<http_sse::Stream>,
}

impl Link {
    /// How requests of this session are written.
    pub(crate) fn form(&self) -> Form<'_> {
        Form { era: self.revision.era(), capabilities: &self.client }
    }

    /// What another replica needs to use it. A stream belongs to the process that opened it.
    pub(crate) fn resumable(&self) -> Option<Resumable> {
        let session = self.session.as_ref().filter(|_| self.stream.is_none())?.to_str().ok()?;
        Some(Resumable { session: session.to_owned(), revision: self.revision })
    }

    fn headers(&self, headers: &mut HeaderMap, method: &str, name: Option<&str>) {
        headers.insert(MCP_PROTOCOL_VERSION, HeaderValue::from_static(self.revision.name()));
        if let Some(session) = &self.session {
            headers.insert(MCP_SESSION_ID, session.clone());
        }
        if self.revision.era() == Era::Modern {
            headers.extend(HeaderValue::from_str(method).map(|method| (header_name(MCP_METHOD), method)));
            let name = name.and_then(|name| HeaderValue::from_str(&encoded_name(name)).ok());
            headers.extend(name.map(|name| (header_name(MCP_NAME), name)));
        }
    }
}

fn header_name(name: &'static str) -> http::HeaderName {
    http::HeaderName::from_static(name)
}

impl Backend {
    /// A session that another replica has opened, if it can be used here.
    pub(crate) fn resume(&self, known: &Resumable, client: &Arc<str>) -> Option<Link> {
        if self.transport == BackendTransport::Sse {
            return None;
        }
        Some(Link {
            revision: known.revision,
            // What the backend declares is the same for all sessions.
            capabilities: self.declared(),
            session: Some(HeaderValue::from_str(&known.session).ok()?),
            client: client.clone(),
            stream: None,
        })
    }

    /// Opens a session for a client with these capabilities.
    pub(crate) async fn open(&self, caller: &Caller, client: &Arc<str>) -> Result<Link, BackendError> {
        let era = match self.era() {
            Some(era) => era,
            None => self.discover(caller).await?,
        };
        let link = match era {
            Era::Modern => Link {
                revision: Revision::V2026_07_28,
                capabilities: self.modern_capabilities(),
                session: None,
                client: client.clone(),
                stream: None,
            },
            Era::Legacy => self.initialize(caller, client).await?,
        };
        self.set_revision(link.revision, link.capabilities);
        Ok(link)
    }

    /// Learns whether it speaks the newest revision.
    async fn discover(&self, caller: &Caller) -> Result<Era, BackendError> {
        let capabilities: Arc<str> = "{}".into();
        let link = Link {
            revision: Revision::V2026_07_28,
            capabilities: Capabilities::default(),
            session: None,
            client: capabilities,
            stream: None,
        };
        let method = "server/discover";
        let discovered = async {
            let mut messages =
                self.request(&link, caller, method, None, self.own(method, None, &link)?).await?;
            self.result(&mut messages).await
        };
        let result = match discovered.await {
            Ok(result) => result,
            // It cannot be spoken to in another way either.
            Err(
                error @ (BackendError::Unreachable(_)
                | BackendError::Timeout(_)
                | BackendError::Unauthenticated(_)),
            ) => {
                return Err(error);
            }
            // An older server does not know the method, or insists on a session.
            Err(_) => {
                self.set_era(Era::Legacy, Capabilities::default());
                return Ok(Era::Legacy);
            }
        };
        let result = Raw::spelled(&result).ok_or(BackendError::Malformed)?;
        let versions =
            result.get("supportedVersions").and_then(|versions| versions.items().ok()).unwrap_or_default();
        let newest = Revision::V2026_07_28.name();
        let is_modern =
            versions.iter().any(|version| version.as_text().is_some_and(|version| version == newest));
        let era = if is_modern { Era::Modern } else { Era::Legacy };
        self.set_era(era, Capabilities::new(result.get("capabilities")));
        Ok(era)
    }

    async fn initialize(&self, caller: &Caller, client: &Arc<str>) -> Result<Link, BackendError> {
        let (latest, id) = (Revision::V2025_11_25, self.own_id());
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{}","capabilities":{client},"clientInfo":{{"name":"{CLIENT}","version":"{VERSION}"}}}}}}"#,
            latest.name()
        );
        let headers = self.headers(caller).await?;
        let stream = match self.transport {
            BackendTransport::Sse => Some(http_sse::Stream::open(self, headers.clone()).await?),
            BackendTransport::StreamableHttp => None,
        };
        let (session, mut messages) = match &stream {
            Some(stream) => (None, self.post_to(stream, headers, &id, body.into()).await?),
            None => {
                let response = self.post(headers, body.into()).await?;
                (response.headers().get(MCP_SESSION_ID).cloned(), Messages::of(response).await?)
            }
        };
        let result = self.result(&mut messages).await?;
        let result = Raw::spelled(&result).ok_or(BackendError::Malformed)?;
        let agreed = result.get("protocolVersion").and_then(Raw::as_text);
        let link = Link {
            revision: agreed.and_then(|version| Revision::named(version.as_bytes())).unwrap_or(latest),
            capabilities: Capabilities::new(result.get("capabilities")),
            session,
            client: client.clone(),
            stream,
        };
        self.notify(&link, caller, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into())
            .await?;
        Ok(link)
    }

    /// Sends a request in a session. A response that the session is unknown is checked: some servers use its status for
    /// other errors, and a request must not be sent twice then.
    pub(crate) async fn request(
        &self,
        link: &Link,
        caller: &Caller,
        method: &str,
        name: Option<&str>,
        body: Bytes,
    ) -> Result<Messages, BackendError> {
        let mut headers = self.headers(caller).await?;
        link.headers(&mut headers, method, name);
        if let Some(stream) = &link.stream {
            let id = Envelope::parse(&body)
                .ok()
                .and_then(|envelope| Some(envelope.id()?.raw().as_str().to_owned()));
            return self.post_to(stream, headers, &id.unwrap_or_default(), body).await;
        }
        let response = self.post(headers, body).await?;
        if response.status() == StatusCode::NOT_FOUND && link.session.is_some() {
            return Err(match self.has_session(link, caller).await {
                true => BackendError::Status(StatusCode::NOT_FOUND),
                false => BackendError::SessionLost,
            });
        }
        Messages::of(response).await
    }

    async fn has_session(&self, link: &Link, caller: &Caller) -> bool {
        let ping = async {
            let mut headers = self.headers(caller).await?;
            link.headers(&mut headers, "ping", None);
            self.post(headers, self.own("ping", None, link)?).await
        };
        ping.await.is_ok_and(|response| response.status().is_success())
    }

    /// Sends a notification, or a response to the backend.
    pub(crate) async fn notify(&self, link: &Link, caller: &Caller, body: Bytes) -> Result<(), BackendError> {
        let mut headers = self.headers(caller).await?;
        link.headers(&mut headers, "", None);
        headers.remove(MCP_METHOD);
        let uri = link.stream.as_ref().map_or_else(|| self.uri.clone(), http_sse::Stream::endpoint);
        let response = self.send_to(uri, Method::POST, headers, body).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND if link.session.is_some() => Err(BackendError::SessionLost),
            status => Err(BackendError::Status(status)),
        }
    }

    /// Sends a request of the virtual server itself, and returns the result, as JSON.
    pub(crate) async fn call(
        &self,
        link: &Link,
        caller: &Caller,
        method: &str,
        params: Option<&Value>,
    ) -> Result<String, BackendError> {
        let params = params.map(Value::to_string);
        let mut messages =
            self.request(link, caller, method, None, self.own(method, params.as_deref(), link)?).await?;
        self.result(&mut messages).await
    }

    /// Listens to what the backend sends by itself. None if it has no such stream.
    pub(crate) async fn listen(
        &self,
        link: &Link,
        caller: &Caller,
    ) -> Result<Option<Listening>, BackendError> {
        if let Some(stream) = &link.stream {
            return Ok(Some(Listening::Queue(stream.listen())));
        }
        if link.revision.era() == Era::Modern {
            return Ok(None);
        }
        let mut headers = self.headers(caller).await?;
        link.headers(&mut headers, "", None);
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = self.send(Method::GET, headers, Bytes::new()).await?;
        let is_stream =
            response.status().is_success() && skep_gateway::http::events::is_stream(response.headers());
        match response.status() {
            StatusCode::NOT_FOUND if link.session.is_some() => Err(BackendError::SessionLost),
            _ => Ok(is_stream.then(|| Listening::Events(Box::new(Events::new(response.into_body()))))),
        }
    }

    /// Ends a session.
    pub(crate) async fn close(&self, link: &Link, caller: &Caller) -> Result<(), BackendError> {
        if link.session.is_some() {
            let mut headers = self.headers(caller).await?;
            link.headers(&mut headers, "", None);
            self.send(Method::DELETE, headers, Bytes::new()).await?;
        }
        Ok(())
    }

    /// The result among these messages, as JSON. Others are of no interest here.
    async fn result(&self, messages: &mut Messages) -> Result<String, BackendError> {
        while let Some(message) = messages.next(self.timeout).await? {
            let envelope = Envelope::parse(&message).map_err(|_| BackendError::Malformed)?;
            match envelope.message() {
                Message::Response { outcome: Outcome::Result(result), .. } => {
                    return Ok(result.as_str().to_owned());
                }
                Message::Response { outcome: Outcome::Error(error), .. } => return Err(rpc_error(error)),
                _ => {}
            }
        }
        Err(BackendError::Broken)
    }

    /// A request of the virtual server itself.
    fn own(&self, method: &str, params: Option<&str>, link: &Link) -> Result<Bytes, BackendError> {
        let params = params.and_then(Raw::spelled);
        let body = request(&self.own_id(), method, params, None, &link.form());
        Ok(body.map_err(|_| BackendError::Malformed)?.into())
    }

    /// The id of a request of the virtual server itself. Those of clients' requests are numbers.
    fn own_id(&self) -> String {
        format!("\"skep-{}\"", self.number.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a request whose response comes on the stream of the session.
    async fn post_to(
        &self,
        stream: &http_sse::Stream,
        headers: HeaderMap,
        id: &str,
        body: Bytes,
    ) -> Result<Messages, BackendError> {
        if stream.has_ended() {
            return Err(BackendError::SessionLost);
        }
        let messages = stream.messages(id);
        let response = self.send_to(stream.endpoint(), Method::POST, headers, body).await?;
        match response.status() {
            status if status.is_success() => Ok(messages),
            StatusCode::NOT_FOUND => Err(BackendError::SessionLost),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(BackendError::Unauthenticated(status))
            }
            status => Err(BackendError::Status(status)),
        }
    }

    async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<Response<UpstreamBody>, BackendError> {
        self.send(Method::POST, headers, body).await
    }
}

/// The error that a backend returned.
pub(crate) fn rpc_error(error: Raw<'_>) -> BackendError {
    let code = error.get("code").and_then(|code| code.as_str().parse().ok()).unwrap_or_default();
    let message = error.get("message").and_then(Raw::as_text).unwrap_or_default().into_owned();
    BackendError::Rpc { code, message }
}
