//! Requests and notifications in a session with a backend.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;
use skep_gateway::outbound::UpstreamBody;
use skep_mcp::{Envelope, Message, Outcome, Raw};

use super::{Backend, BackendError, Caller, Link, Messages, http_sse, request::request};

/// A request as a backend gets it.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingRequest<'a> {
    pub(crate) method: &'a str,
    /// What it names.
    pub(crate) name: Option<&'a str>,
    /// More headers, which a backend of 2026-07-28 gets.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl<'a> OutgoingRequest<'a> {
    pub(crate) fn new(method: &'a str, body: Bytes) -> Self {
        Self { method, name: None, headers: HeaderMap::new(), body }
    }
}

impl Backend {
    /// Sends a request in a session. A response that the session is unknown is checked: some servers use its status for
    /// other errors, and a request must not be sent twice then.
    pub(crate) async fn request(
        &self,
        link: &Link,
        caller: &Caller,
        request: OutgoingRequest<'_>,
    ) -> Result<Messages, BackendError> {
        let mut headers = self.headers(caller);
        link.request_headers(&mut headers, &request);
        let body = request.body;
        if let Some(stream) = &link.stream {
            let id = Envelope::parse(&body)
                .ok()
                .and_then(|envelope| Some(envelope.id()?.raw().as_str().to_owned()));
            return self.post_to(stream, caller, headers, &id.unwrap_or_default(), body).await;
        }
        let response = self.post(caller, headers, body).await?;
        if response.status() == StatusCode::NOT_FOUND && link.session.is_some() {
            return Err(match self.has_session(link, caller).await {
                true => BackendError::Status(StatusCode::NOT_FOUND),
                false => BackendError::SessionLost,
            });
        }
        Messages::of(response, &self.budget_of(caller)).await
    }

    async fn has_session(&self, link: &Link, caller: &Caller) -> bool {
        let ping = async {
            let request = OutgoingRequest::new("ping", self.own("ping", None, link)?);
            let mut headers = self.headers(caller);
            link.request_headers(&mut headers, &request);
            self.post(caller, headers, request.body).await
        };
        ping.await.is_ok_and(|response| response.status().is_success())
    }

    /// Sends a notification, or a response to the backend.
    pub(crate) async fn notify(&self, link: &Link, caller: &Caller, body: Bytes) -> Result<(), BackendError> {
        let mut headers = self.headers(caller);
        link.headers(&mut headers);
        let uri = link.stream.as_ref().map_or_else(|| self.uri.clone(), http_sse::Stream::endpoint);
        let response = self.send_to(&uri, caller, http::Method::POST, headers, body).await?;
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
        let request = OutgoingRequest::new(method, self.own(method, params.as_deref(), link)?);
        let mut messages = self.request(link, caller, request).await?;
        self.result(&mut messages).await
    }

    /// The result among these messages, as JSON.
    pub(super) async fn result(&self, messages: &mut Messages) -> Result<String, BackendError> {
        let time = self.request_time();
        let result = tokio::time::timeout(time, self.any_result(messages)).await;
        result.unwrap_or(Err(BackendError::TooLong(time)))
    }

    /// The same, however long it takes. Other messages are of no interest here.
    async fn any_result(&self, messages: &mut Messages) -> Result<String, BackendError> {
        while let Some(message) = messages.next(self.timeout).await? {
            let envelope = Envelope::parse(&message).map_err(|_| BackendError::Malformed)?;
            let Message::Response { outcome, .. } = envelope.message() else { continue };
            messages.finish();
            return match outcome {
                Outcome::Result(result) => Ok(result.as_str().to_owned()),
                Outcome::Error(error) => Err(rpc_error(error)),
            };
        }
        Err(BackendError::Broken)
    }

    /// A request of the virtual server itself.
    pub(super) fn own(&self, method: &str, params: Option<&str>, link: &Link) -> Result<Bytes, BackendError> {
        let params = params.and_then(Raw::spelled);
        let body = request(&self.own_id(), method, params, None, &link.form());
        Ok(body.map_err(|_| BackendError::Malformed)?.into())
    }

    /// The id of a request of the virtual server itself. Those of clients' requests are numbers.
    pub(super) fn own_id(&self) -> String {
        format!("\"skep-{}\"", self.number.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a request whose response comes on the stream of the session.
    pub(super) async fn post_to(
        &self,
        stream: &http_sse::Stream,
        caller: &Caller,
        headers: HeaderMap,
        id: &str,
        body: Bytes,
    ) -> Result<Messages, BackendError> {
        if stream.has_ended() {
            return Err(BackendError::SessionLost);
        }
        let (messages, body) = stream.messages(id, body);
        let response = self.send_to(&stream.endpoint(), caller, http::Method::POST, headers, body).await?;
        match response.status() {
            status if status.is_success() => Ok(messages),
            StatusCode::NOT_FOUND => Err(BackendError::SessionLost),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(BackendError::Unauthenticated(status))
            }
            status => Err(BackendError::Status(status)),
        }
    }

    pub(super) async fn post(
        &self,
        caller: &Caller,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<UpstreamBody>, BackendError> {
        self.send(caller, http::Method::POST, headers, body).await
    }
}

/// The error that a backend returned.
pub(crate) fn rpc_error(error: Raw<'_>) -> BackendError {
    let code = error.get("code").and_then(|code| code.as_str().parse().ok()).unwrap_or_default();
    let message = error.get("message").and_then(Raw::as_text).unwrap_or_default().into_owned();
    let data = error.get("data").map(|data| data.as_str().into());
    BackendError::Rpc { code, message, data }
}
