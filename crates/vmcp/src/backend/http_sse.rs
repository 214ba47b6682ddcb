//! Backends of 2024, which speak HTTP+SSE: all their messages come on one stream, and each request is sent to an address
//! that the stream announces.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use skep_gateway::{body::CountedBytes, http::events};
use skep_mcp::{Edits, Envelope, Json, Message, Method, Raw};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Backend, BackendError, Caller, Messages, messages::Events};
use crate::limits;

/// How many messages wait for the reader of one request.
const QUEUE: usize = 64;

/// The stream of one session.
#[derive(Debug)]
pub(super) struct Stream {
    /// Where requests are sent.
    endpoint: Uri,
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The requests in flight by their ids, as they are spelled.
    waiting: Mutex<HashMap<String, Waiting>>,
    /// Who reads what is for no request.
    listener: Mutex<Option<mpsc::Sender<CountedBytes>>>,
}

/// A request in flight.
#[derive(Debug)]
struct Waiting {
    /// Who reads what is for it.
    reader: mpsc::Sender<CountedBytes>,
    /// The token of its progress, as its client spelled it. The backend has the id of the request instead: clients that share a
    /// session may have the same token.
    token: Option<Box<str>>,
}

impl Stream {
    /// Opens the stream of a session.
    pub(super) async fn open(
        backend: &Backend,
        caller: &Caller,
        mut headers: HeaderMap,
    ) -> Result<Self, BackendError> {
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = backend.send(caller, http::Method::GET, headers, Bytes::new()).await?;
        match response.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                return Err(BackendError::Unauthenticated(status));
            }
            status if !status.is_success() => return Err(BackendError::Status(status)),
            _ if !events::is_stream(response.headers()) => return Err(BackendError::Malformed),
            _ => {}
        }
        let mut events = Events::new(response.into_body(), backend.budget_of(caller));
        let first = tokio::time::timeout(backend.timeout, events.event()).await;
        let first =
            first.map_err(|_| BackendError::Timeout(backend.timeout))??.ok_or(BackendError::Broken)?;
        let announced = first.data().filter(|_| first.kind() == Some(b"endpoint"));
        let announced =
            announced.and_then(|data| std::str::from_utf8(data).ok()).ok_or(BackendError::Malformed)?;
        let endpoint = endpoint(&backend.uri, announced.trim()).ok_or(BackendError::Malformed)?;
        let shared = Arc::new(Shared::default());
        let reader = tokio::spawn(read(events, shared.clone()));
        Ok(Self { endpoint, shared, reader })
    }

    /// Where requests are sent.
    pub(super) fn endpoint(&self) -> Uri {
        self.endpoint.clone()
    }

    /// Whether nothing more will come.
    pub(super) fn has_ended(&self) -> bool {
        self.reader.is_finished()
    }

    /// The messages for the request with this id, and the request as it is to be sent.
    pub(super) fn messages(&self, id: &str, body: Bytes) -> (Messages, Bytes) {
        let (reader, messages) = mpsc::channel(QUEUE);
        let (body, token) = match with_own_token(&body) {
            Some((body, token)) => (body, Some(token)),
            None => (body, None),
        };
        self.shared.in_flight().insert(id.to_owned(), Waiting { reader, token });
        (Messages::Queue(messages), body)
    }

    /// What is for no request.
    pub(super) fn listen(&self) -> mpsc::Receiver<CountedBytes> {
        let (sender, messages) = mpsc::channel(limits::STREAM_QUEUE);
        *self.shared.listener() = Some(sender);
        messages
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests that still have a reader: those that failed have none.
    fn in_flight(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        let mut waiting = self.waiting();
        waiting.retain(|_, request| !request.reader.is_closed());
        waiting
    }

    fn listener(&self) -> MutexGuard<'_, Option<mpsc::Sender<CountedBytes>>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message where it belongs. Progress names its request; what else is no response belongs to the only request in
    /// flight, or to none.
    fn dispatch(&self, message: CountedBytes) {
        let Ok(envelope) = Envelope::parse(&message) else { return };
        let mut waiting = self.in_flight();
        let reader = match envelope.message() {
            Message::Response { id: Some(id), .. } => {
                waiting.remove(id.raw().as_str()).map(|request| request.reader)
            }
            Message::Response { id: None, .. } => None,
            _ if envelope.method() == Some(Method::Progress) => {
                let Some((reader, message)) = progress(&envelope, &message, &waiting) else { return };
                return drop(reader.try_send(message));
            }
            _ if waiting.len() == 1 => waiting.values().next().map(|request| request.reader.clone()),
            _ => self.listener().clone(),
        };
        if let Some(reader) = reader {
            reader.try_send(message.clone()).ok();
        }
    }
}

/// A request with its id in place of its progress token, and the token as it was spelled.
fn with_own_token(body: &[u8]) -> Option<(Bytes, Box<str>)> {
    let envelope = Envelope::parse(body).ok()?;
    let (token, id) = (envelope.meta().progress_token()?, envelope.id()?);
    let replaced = Edits::of(body).replace(token, Json::Raw(id.raw())).bytes().ok()?;
    Some((replaced.into(), token.as_str().into()))
}

/// Who reads the progress of a request, and the message with the token of its client.
fn progress(
    envelope: &Envelope<'_>,
    message: &CountedBytes,
    waiting: &HashMap<String, Waiting>,
) -> Option<(mpsc::Sender<CountedBytes>, CountedBytes)> {
    let token = envelope.params()?.get("progressToken")?;
    let request = waiting.get(token.as_str())?;
    let own = Raw::spelled(request.token.as_deref()?)?;
    let remade = Edits::of(message).replace(token, Json::Raw(own)).bytes().ok()?;
    Some((request.reader.clone(), message.remade(remade)))
}

async fn read(mut events: Events, shared: Arc<Shared>) {
    while let Ok(Some(message)) = events.next().await {
        shared.dispatch(message);
    }
    // Readers see that there is no response.
    shared.waiting().clear();
    *shared.listener() = None;
}

/// The address for requests. It is always at the same host: a backend must not send requests, with their credentials,
/// to another.
fn endpoint(stream: &Uri, announced: &str) -> Option<Uri> {
    let path = match announced.parse::<Uri>() {
        Ok(uri) if uri.authority().is_some() => {
            let same = uri.authority() == stream.authority() && uri.scheme() == stream.scheme();
            same.then(|| uri.path_and_query().cloned())??
        }
        _ if announced.starts_with('/') => announced.parse().ok()?,
        _ => {
            let folder = stream.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{announced}").parse().ok()?
        }
    };
    let mut parts = stream.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_that_fail_leave_nothing_behind() {
        let stream = Stream {
            endpoint: Uri::default(),
            shared: Arc::default(),
            reader: tokio::spawn(std::future::pending()),
        };
        for number in 0..100 {
            drop(stream.messages(&number.to_string(), Bytes::new()));
        }
        let _last = stream.messages("100", Bytes::new());
        assert_eq!(stream.shared.waiting().len(), 1);
    }

    #[tokio::test]
    async fn progress_reaches_its_own_request_also_if_others_have_the_same_token() {
        let stream = Stream {
            endpoint: Uri::default(),
            shared: Arc::default(),
            reader: tokio::spawn(std::future::pending()),
        };
        let call = |id: u64| {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","_meta":{{"progressToken":"mine"}}}}}}"#
            );
            let (messages, sent) = stream.messages(&id.to_string(), body.into());
            assert!(String::from_utf8(sent.to_vec()).unwrap().contains(&format!(r#""progressToken":{id}"#)));
            messages
        };
        let mut calls = [call(1), call(2)];
        let notification = |token: &str, progress: u64| {
            let params = format!(r#"{{"progressToken":{token},"progress":{progress}}}"#);
            Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
        };
        for message in [notification("2", 7), notification("1", 5), notification("3", 9)] {
            stream.shared.dispatch(message.into());
        }
        for (call, progress) in calls.iter_mut().zip([5, 7]) {
            let received = call.next(std::time::Duration::from_secs(5)).await.unwrap().unwrap();
            assert_eq!(received.into_bytes(), notification(r#""mine""#, progress));
        }
    }

    #[test]
    fn requests_are_never_sent_to_another_host() {
        let stream: Uri = "http://a.example:80/v1/sse".parse().unwrap();
        for (announced, expected) in [
            ("/messages?s=1", Some("http://a.example:80/messages?s=1")),
            ("messages?s=1", Some("http://a.example:80/v1/messages?s=1")),
            ("http://a.example:80/m", Some("http://a.example:80/m")),
            ("http://evil.example/m", None),
            ("https://a.example:80/m", None),
        ] {
            assert_eq!(
                endpoint(&stream, announced).map(|uri| uri.to_string()).as_deref(),
                expected,
                "{announced}"
            );
        }
    }
}
