//! Backends of 2024, which speak HTTP+SSE: all their messages come on one stream, and each request is sent to an address
//! that the stream announces.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use skep_gateway::http::events;
use skep_mcp::{Envelope, Message};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Backend, BackendError, Messages, messages::Events};
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
    /// The requests in flight by their ids, and who reads what is for them.
    waiting: Mutex<HashMap<String, mpsc::Sender<Bytes>>>,
    /// Who reads what is for no request.
    listener: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Stream {
    /// Opens the stream of a session.
    pub(super) async fn open(backend: &Backend, mut headers: HeaderMap) -> Result<Self, BackendError> {
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = backend.send(Method::GET, headers, Bytes::new()).await?;
        match response.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                return Err(BackendError::Unauthenticated(status));
            }
            status if !status.is_success() => return Err(BackendError::Status(status)),
            _ if !events::is_stream(response.headers()) => return Err(BackendError::Malformed),
            _ => {}
        }
        let mut events = Events::new(response.into_body());
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

    /// The messages for the request with this id.
    pub(super) fn messages(&self, id: &str) -> Messages {
        let (sender, messages) = mpsc::channel(QUEUE);
        self.shared.in_flight().insert(id.to_owned(), sender);
        Messages::Queue(messages)
    }

    /// What is for no request.
    pub(super) fn listen(&self) -> mpsc::Receiver<Bytes> {
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
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Bytes>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests that still have a reader: those that failed have none.
    fn in_flight(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Bytes>>> {
        let mut waiting = self.waiting();
        waiting.retain(|_, sender| !sender.is_closed());
        waiting
    }

    fn listener(&self) -> MutexGuard<'_, Option<mpsc::Sender<Bytes>>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message where it belongs. One that is no response belongs to the only request in flight, or to none.
    fn dispatch(&self, message: Bytes) {
        let Ok(envelope) = Envelope::parse(&message) else { return };
        let mut waiting = self.in_flight();
        let reader = match envelope.message() {
            Message::Response { id: Some(id), .. } => waiting.remove(id.raw().as_str()),
            Message::Response { id: None, .. } => None,
            _ if waiting.len() == 1 => waiting.values().next().cloned(),
            _ => self.listener().clone(),
        };
        if let Some(reader) = reader {
            reader.try_send(message.clone()).ok();
        }
    }
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
            drop(stream.messages(&number.to_string()));
        }
        let _last = stream.messages("100");
        assert_eq!(stream.shared.waiting().len(), 1);
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
