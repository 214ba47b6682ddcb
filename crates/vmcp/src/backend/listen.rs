//! What a backend sends by itself.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::json;
use skep_gateway::http::events;
use skep_mcp::Era;

use super::{
    Backend, BackendError, Caller, Link, OutgoingRequest,
    messages::{Events, Head, Listening, Place},
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What a listener wants to know. Before 2026-07-28, a stream has everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Whether a list has changed.
    pub(crate) lists: bool,
    /// Whether one of these resources has changed.
    pub(crate) resources: Vec<Box<str>>,
}

impl Interest {
    /// Changes of lists, and nothing else.
    pub(crate) const LISTS: Self = Self { lists: true, resources: Vec::new() };
}

impl Backend {
    /// Listens to what the backend sends by itself, from this place on. None if it has no such stream, or nothing of interest.
    pub(crate) async fn listen(
        &self,
        link: &Link,
        caller: &Caller,
        interest: &Interest,
        place: &Place,
    ) -> Result<Option<Listening>, BackendError> {
        if let Some(stream) = &link.stream {
            if stream.has_ended() {
                return Err(BackendError::SessionLost);
            }
            return Ok(Some(Listening::Queue(stream.listen())));
        }
        let head = match link.revision.era() {
            Era::Modern => self.subscribe(link, caller, interest).await?,
            Era::Legacy => Some(self.open_stream(link, caller, place).await?),
        };
        let Some(Head { response, .. }) = head else { return Ok(None) };
        if response.status() == StatusCode::NOT_FOUND && link.session.is_some() {
            return Err(BackendError::SessionLost);
        }
        // It may not have noticed yet that the last stream of the session has ended.
        if response.status() == StatusCode::CONFLICT {
            return Err(BackendError::Status(response.status()));
        }
        let is_stream = response.status().is_success() && events::is_stream(response.headers());
        let events = || Events::new(response.into_body(), self.budget_of(caller));
        Ok(is_stream.then(|| Listening::Events(Box::new(events()))))
    }

    /// The stream of a session, or another one that is continued at this place.
    pub(super) async fn open_stream(
        &self,
        link: &Link,
        caller: &Caller,
        place: &Place,
    ) -> Result<Head, BackendError> {
        let mut headers = self.headers(caller);
        link.headers(&mut headers);
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.extend(place.id.clone().map(|id| (LAST_EVENT_ID, id)));
        self.send(caller, Method::GET, headers, Bytes::new()).await
    }

    /// The stream of a request that has no other purpose.
    async fn subscribe(
        &self,
        link: &Link,
        caller: &Caller,
        interest: &Interest,
    ) -> Result<Option<Head>, BackendError> {
        let mut wanted = serde_json::Map::new();
        if interest.lists {
            wanted.extend(link.capabilities.announced().map(|list| (list.to_owned(), true.into())));
        }
        if !interest.resources.is_empty() && link.capabilities.subscribe {
            let uris = interest.resources.iter().map(|uri| (**uri).into()).collect();
            wanted.insert("resourceSubscriptions".to_owned(), serde_json::Value::Array(uris));
        }
        if wanted.is_empty() {
            return Ok(None);
        }
        let method = "subscriptions/listen";
        let (_, body) = self.own(method, Some(&json!({"notifications": wanted}).to_string()), link)?;
        let request = OutgoingRequest::new(method, body);
        let mut headers = self.headers(caller);
        link.request_headers(&mut headers, &request);
        self.post(caller, headers, request.body).await.map(Some)
    }
}
