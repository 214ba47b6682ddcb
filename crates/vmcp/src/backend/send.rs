//! Requests and notifications in a session with a backend.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use futures::{StreamExt, stream::FuturesUnordered};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use skep_gateway::sessions::is_lost;
use skep_mcp::{Envelope, Id, Message, Method, Outcome, Raw};
use tracing::debug;

use super::{
    Backend, BackendError, Caller, Link, Messages, ResultType, http_sse, messages::Head, request::request,
};
use crate::limits;

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
            let id = id.unwrap_or_default();
            return stream.request(caller, headers, &id, body, self.timeout).await.map(Messages::Queue);
        }
        let head = self.post(caller, headers, body).await?;
        let status = head.response.status();
        if link.session.is_some() && is_lost(status, self.ping(link, caller)).await {
            return Err(BackendError::SessionLost);
        }
        Messages::of(head, &self.budget_of(caller), self.timeout).await
    }

    /// The status of the response to a ping, if there is one.
    async fn ping(&self, link: &Link, caller: &Caller) -> Option<StatusCode> {
        let (_, body) = self.own("ping", None, link).ok()?;
        let request = OutgoingRequest::new("ping", body);
        let mut headers = self.headers(caller);
        link.request_headers(&mut headers, &request);
        self.post(caller, headers, request.body).await.ok().map(|head| head.response.status())
    }

    /// Sends a notification, or a response to the backend.
    pub(crate) async fn notify(&self, link: &Link, caller: &Caller, body: Bytes) -> Result<(), BackendError> {
        let mut headers = self.headers(caller);
        link.headers(&mut headers);
        let uri = link.stream.as_ref().map_or_else(|| self.uri.clone(), http_sse::Stream::endpoint);
        let head = self.send_to(&uri, caller, http::Method::POST, headers, body).await?;
        match head.response.status() {
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
        let (id, body) = self.own(method, params.as_deref(), link)?;
        let mut messages = self.request(link, caller, OutgoingRequest::new(method, body)).await?;
        self.result(&id, Some(link), caller, &mut messages).await
    }

    /// The result among these messages, as JSON. Nothing that a backend sends before it gives it more time: others wait for it,
    /// as for the session that it opens.
    pub(super) async fn result(
        &self,
        id: &str,
        link: Option<&Link>,
        caller: &Caller,
        messages: &mut Messages,
    ) -> Result<String, BackendError> {
        let result = tokio::time::timeout(self.timeout, self.any_result(id, link, caller, messages)).await;
        result.unwrap_or(Err(BackendError::Timeout(self.timeout)))
    }

    /// The same, however long it takes. Notifications are of no interest here.
    async fn any_result(
        &self,
        id: &str,
        link: Option<&Link>,
        caller: &Caller,
        messages: &mut Messages,
    ) -> Result<String, BackendError> {
        let mut declining = FuturesUnordered::new();
        loop {
            let next = async {
                match link {
                    Some(link) => self.next(link, caller, messages, self.timeout).await,
                    // There is no session yet in which it could be continued.
                    None => messages.next(self.timeout).await?.ok_or(BackendError::Broken),
                }
            };
            let message = tokio::select! {
                Some(()) = declining.next() => continue,
                message = next, if declining.len() < limits::INPUTS => message?,
            };
            let envelope = Envelope::parse(&message).map_err(|_| BackendError::Malformed)?;
            match (envelope.message(), link) {
                (Message::Response { id: of, outcome }, _) if is_for(of, id) => {
                    messages.finish();
                    return match outcome {
                        Outcome::Result(result) => match ResultType::of(result)? {
                            ResultType::Complete => Ok(result.as_str().to_owned()),
                            ResultType::InputRequired => {
                                Err(BackendError::input("it needs input of a client for this"))
                            }
                        },
                        Outcome::Error(error) => Err(rpc_error(error)),
                    };
                }
                (Message::Request { .. }, Some(link)) => {
                    let answer = declined(&envelope);
                    declining.extend(answer.map(|answer| self.respond(link, caller, answer)));
                }
                _ => {}
            }
        }
    }

    /// Answers a request of the backend in place of the client, while other messages are read. A backend that leaves too many answers
    /// waiting is waited for.
    pub(crate) async fn decline(
        self: &Arc<Self>,
        link: &Arc<Link>,
        caller: &Caller,
        envelope: &Envelope<'_>,
    ) {
        let Some(answer) = declined(envelope) else { return };
        let Ok(permit) = link.declining.clone().acquire_owned().await else { return };
        let (backend, link, caller) = (self.clone(), link.clone(), caller.clone());
        tokio::spawn(async move {
            backend.respond(&link, &caller, answer).await;
            drop(permit);
        });
    }

    async fn respond(&self, link: &Link, caller: &Caller, answer: Bytes) {
        if let Err(error) = self.notify(link, caller, answer).await {
            debug!(backend = &*self.name, %error, "failed to respond to a backend");
        }
    }

    /// A request of the virtual server itself, and its id.
    pub(super) fn own(
        &self,
        method: &str,
        params: Option<&str>,
        link: &Link,
    ) -> Result<(String, Bytes), BackendError> {
        let (id, params) = (self.own_id(), params.and_then(Raw::spelled));
        let body = request(&id, method, params, None, &link.form()).map_err(|_| BackendError::Malformed)?;
        Ok((id, body.into()))
    }

    /// The id of a request of the virtual server itself. Those of clients' requests are numbers.
    pub(super) fn own_id(&self) -> String {
        format!("\"skep-{}\"", self.number.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) async fn post(
        &self,
        caller: &Caller,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Head, BackendError> {
        self.send(caller, http::Method::POST, headers, body).await
    }
}

/// Whether a response with this id is for the request with that. Only an error may have none.
pub(crate) fn is_for(response: Option<Id<'_>>, request: &str) -> bool {
    response.is_none_or(|id| id.raw().as_str() == request)
}

/// The answer to a request of a backend that nobody else answers. None for other messages.
pub(super) fn declined(envelope: &Envelope<'_>) -> Option<Bytes> {
    const METHOD_NOT_FOUND: i64 = -32601;
    let Message::Request { id, .. } = envelope.message() else { return None };
    let answer = match envelope.method() {
        Some(Method::Ping) => r#""result":{}"#.to_owned(),
        _ => format!(
            r#""error":{{"code":{METHOD_NOT_FOUND},"message":"the client does not support this, or it is for none of its requests"}}"#
        ),
    };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{},{answer}}}"#, id.raw().as_str()).into())
}

/// The error that a backend returned.
pub(crate) fn rpc_error(error: Raw<'_>) -> BackendError {
    let code = error.get("code").and_then(|code| code.as_str().parse().ok()).unwrap_or_default();
    let message = error.get("message").and_then(Raw::as_text).unwrap_or_default().into_owned();
    let data = error.get("data").map(|data| data.as_str().into());
    BackendError::Rpc { code, message, data }
}
