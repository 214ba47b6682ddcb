//! Backends of 2024, which speak HTTP+SSE: all their messages come on one stream, and each request is sent to an address
//! that the stream announces.
//!
//! Those who read them share the stream. One that reads slowly delays the others for a moment, and then loses notifications: a
//! response or a request of the backend is never lost.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use skep_gateway::{body::CountedBytes, http::events};
use skep_mcp::{Edits, Envelope, Json, Message, Method, Raw};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tracing::debug;
use uuid::Uuid;

use super::{
    Backend, BackendError, Caller,
    messages::{Events, Head},
    send::declined,
};
use crate::limits;

/// Whose response is not awaited: it is of no interest.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"skep-ping","method":"ping"}"#;

/// The stream of one session.
pub(super) struct Stream {
    /// What no other stream has, at whatever replica.
    pub(super) id: Box<str>,
    /// Where requests are sent.
    endpoint: Uri,
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
    post: Post,
}

/// Sends a message to the endpoint.
type Post = Arc<dyn Fn(Caller, HeaderMap, Bytes) -> Posting + Send + Sync>;
/// A message on its way, until its response begins.
type Posting = BoxFuture<'static, Result<(), BackendError>>;

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stream").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Shared {
    /// The requests in flight by their ids, as they are spelled.
    waiting: Mutex<HashMap<String, Waiting>>,
    /// Who reads what is for no request.
    listener: Mutex<Option<Outlet>>,
    /// Notified of each piece of the stream that arrives.
    heard: watch::Sender<()>,
}

/// A request in flight.
#[derive(Debug)]
struct Waiting {
    /// Who reads what is for it.
    reader: Outlet,
    /// The token of its progress, as its client spelled it. The backend has the id of the request instead: clients that share a
    /// session may have the same token.
    token: Option<Box<str>>,
}

/// Where messages are put for one reader. Notifications need room.
#[derive(Clone, Debug)]
struct Outlet {
    messages: mpsc::UnboundedSender<QueueItem>,
    notifications: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    /// Whether it had no room for a notification for long.
    is_slow: Arc<AtomicBool>,
    /// When the reader left.
    left: Arc<OnceLock<Instant>>,
}

/// A message that waits for its reader, and its room.
type QueueItem = (CountedBytes, Option<OwnedSemaphorePermit>);

/// The messages for one reader.
pub(crate) struct Inbox {
    messages: mpsc::UnboundedReceiver<QueueItem>,
    /// Notified of each piece of the stream that arrives.
    pub(super) heard: watch::Receiver<()>,
    /// One that has been taken out already.
    first: Option<QueueItem>,
    /// The request, if it is still on its way.
    posting: Option<Posting>,
    left: Arc<OnceLock<Instant>>,
}

impl Inbox {
    /// Sends the request whose messages these are. Some servers respond to it only after they have done it, so a message on the
    /// stream shows as well that it has arrived.
    async fn send(&mut self, posting: Posting) -> Result<(), BackendError> {
        let posting = self.posting.insert(posting);
        tokio::select! {
            biased;
            message = self.messages.recv() => self.first = message,
            posted = posting => {
                self.posting = None;
                return posted;
            }
        }
        Ok(())
    }

    /// The next message, or nothing when there are no more. It may be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Option<CountedBytes>, BackendError> {
        if let Some((message, _room)) = self.first.take() {
            return Ok(Some(message));
        }
        let message = match &mut self.posting {
            None => self.messages.recv().await,
            Some(posting) => tokio::select! {
                biased;
                message = self.messages.recv() => message,
                posted = posting => {
                    self.posting = None;
                    match posted {
                        // Of what has arrived, the connection may break.
                        Ok(()) | Err(BackendError::Broken | BackendError::Timeout(_)) => {}
                        Err(error) => return Err(error),
                    }
                    self.messages.recv().await
                }
            },
        };
        Ok(message.map(|(message, _room)| message))
    }

    /// The response has arrived: what responds to the request as such has a moment to.
    pub(super) fn finish(mut self) {
        if let Some(posting) = self.posting.take() {
            tokio::spawn(timeout(limits::END_SESSION_TIME, posting));
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.left.set(Instant::now()).ok();
    }
}

impl Outlet {
    /// A reader for whom so many notifications wait at most.
    fn new(notifications: usize, heard: watch::Receiver<()>) -> (Self, Inbox) {
        let (sender, messages) = mpsc::unbounded_channel();
        let outlet = Self {
            messages: sender,
            notifications: Arc::new(Semaphore::new(notifications)),
            requests: Arc::new(Semaphore::new(limits::INPUTS)),
            is_slow: Arc::default(),
            left: Arc::default(),
        };
        let left = outlet.left.clone();
        (outlet, Inbox { messages, heard, first: None, posting: None, left })
    }

    fn has_reader(&self) -> bool {
        !self.messages.is_closed()
    }

    /// Whether the backend may still send something for a request with this reader.
    fn may_get_messages(&self) -> bool {
        self.left.get().is_none_or(|left| left.elapsed() < limits::GIVEN_UP_TIME)
    }

    /// Puts a message there. Returns whether it was put.
    async fn put(&self, message: CountedBytes, kind: Message<'_>) -> bool {
        let room = match kind {
            // There is one.
            Message::Response { .. } => None,
            Message::Request { .. } => match self.requests.clone().try_acquire_owned() {
                Ok(room) => Some(room),
                Err(_) => return false,
            },
            Message::Notification { .. } => match self.room().await {
                Some(room) => Some(room),
                None => return false,
            },
        };
        self.messages.send((message, room)).is_ok()
    }

    /// Room for a notification. A reader that reads slowly is waited for once, until it has read again.
    async fn room(&self) -> Option<OwnedSemaphorePermit> {
        let notifications = self.notifications.clone();
        let room = match self.is_slow.load(Ordering::Relaxed) {
            true => notifications.try_acquire_owned().ok(),
            false => tokio::select! {
                room = timeout(limits::READER_TIME, notifications.acquire_owned()) => room.ok().and_then(Result::ok),
                () = self.messages.closed() => return None,
            },
        };
        self.is_slow.store(room.is_none(), Ordering::Relaxed);
        room
    }
}

impl Stream {
    /// Opens the stream of a session.
    pub(super) async fn open(
        backend: &Arc<Backend>,
        caller: &Caller,
        headers: HeaderMap,
    ) -> Result<Self, BackendError> {
        let mut of_stream = headers.clone();
        of_stream.remove(header::CONTENT_TYPE);
        of_stream.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let Head { response, deadline } =
            backend.send(caller, http::Method::GET, of_stream, Bytes::new()).await?;
        match response.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                return Err(BackendError::Unauthenticated(status));
            }
            status if !status.is_success() => return Err(BackendError::Status(status)),
            _ if !events::is_stream(response.headers()) => return Err(BackendError::Malformed),
            _ => {}
        }
        let mut events = Events::new(response.into_body(), backend.budget_of(caller));
        let first = tokio::time::timeout_at(deadline, events.event()).await;
        let first =
            first.map_err(|_| BackendError::Timeout(backend.timeout))??.ok_or(BackendError::Broken)?;
        let announced = first.data().filter(|_| first.kind() == Some(b"endpoint"));
        let announced =
            announced.and_then(|data| std::str::from_utf8(data).ok()).ok_or(BackendError::Malformed)?;
        let endpoint = endpoint(&backend.uri, announced.trim()).ok_or(BackendError::Malformed)?;
        let shared = Arc::new(Shared { heard: events.heard.clone(), ..Shared::default() });
        let (backend, uri) = (backend.clone(), endpoint.clone());
        let post: Post = Arc::new(move |caller, headers, body| {
            let (backend, uri) = (backend.clone(), uri.clone());
            async move {
                let (method, time) = (http::Method::POST, backend.request_time());
                let head = backend.send_within(time, &uri, &caller, method, headers, body).await?;
                match head.response.status() {
                    status if status.is_success() => Ok(()),
                    StatusCode::NOT_FOUND => Err(BackendError::SessionLost),
                    status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                        Err(BackendError::Unauthenticated(status))
                    }
                    status => Err(BackendError::Status(status)),
                }
            }
            .boxed()
        });
        let (caller, declining) = (caller.clone(), post.clone());
        let decline = move |answer: Bytes| declining(caller.clone(), headers.clone(), answer);
        let reader = tokio::spawn(read(events, shared.clone(), decline));
        Ok(Self { id: Uuid::new_v4().to_string().into(), endpoint, shared, reader, post })
    }

    /// Sends a request, to which the backend may respond nothing at all for this long. Returns the messages for it.
    pub(super) async fn request(
        &self,
        caller: &Caller,
        headers: HeaderMap,
        id: &str,
        body: Bytes,
        silence: Duration,
    ) -> Result<Inbox, BackendError> {
        if self.has_ended() {
            return Err(BackendError::SessionLost);
        }
        let (mut inbox, body) = self.inbox(id, body);
        let posting = (self.post)(caller.clone(), headers.clone(), body);
        let sent = timeout(silence, inbox.send(posting)).await;
        let mut sent = sent.unwrap_or(Err(BackendError::Timeout(silence)));
        // Some servers use the status for other errors, and what they have processed must not be sent again.
        if sent == Err(BackendError::SessionLost) && !self.has_ended() {
            let ping = (self.post)(caller.clone(), headers, Bytes::from_static(PING));
            let is_lost = timeout(silence, ping).await == Ok(Err(BackendError::SessionLost));
            sent =
                sent.map_err(|lost| if is_lost { lost } else { BackendError::Status(StatusCode::NOT_FOUND) });
        }
        // One that was rejected gets no messages.
        if matches!(
            sent,
            Err(BackendError::SessionLost | BackendError::Unauthenticated(_) | BackendError::Status(_))
        ) {
            self.shared.waiting().remove(id);
        }
        sent.map(|()| inbox)
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
    fn inbox(&self, id: &str, body: Bytes) -> (Inbox, Bytes) {
        let (reader, inbox) = self.shared.outlet(limits::WAITING_NOTIFICATIONS);
        let (body, token) = match with_own_token(&body) {
            Some((body, token)) => (body, Some(token)),
            None => (body, None),
        };
        self.shared.in_flight().insert(id.to_owned(), Waiting { reader, token });
        (inbox, body)
    }

    /// What is for no request.
    pub(super) fn listen(&self) -> Inbox {
        let (outlet, inbox) = self.shared.outlet(limits::STREAM_QUEUE);
        *self.shared.listener() = Some(outlet);
        inbox
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Shared {
    fn outlet(&self, notifications: usize) -> (Outlet, Inbox) {
        Outlet::new(notifications, self.heard.subscribe())
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests that the backend may still be at. Those that were given up have no reader.
    fn in_flight(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        let mut waiting = self.waiting();
        waiting.retain(|_, request| request.reader.may_get_messages());
        waiting
    }

    fn listener(&self) -> MutexGuard<'_, Option<Outlet>> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message where it belongs. Returns the answer to a request of the backend that belongs to nobody.
    async fn dispatch(&self, message: CountedBytes) -> Option<Bytes> {
        let envelope = Envelope::parse(&message).ok()?;
        let kind = envelope.message();
        let (reader, message) = self.reader(&envelope, &message).unzip();
        let is_put = match reader.zip(message) {
            Some((reader, message)) => reader.put(message, kind).await,
            None => false,
        };
        if is_put { None } else { declined(&envelope) }
    }

    /// Who reads a message, and the message for this reader. Progress names its request; what else is no response belongs to the
    /// only request in flight, or to none. What may belong to one that was given up reaches nobody. A ping is answered without
    /// anybody.
    fn reader(&self, envelope: &Envelope<'_>, message: &CountedBytes) -> Option<(Outlet, CountedBytes)> {
        let mut waiting = self.in_flight();
        let reader = match (envelope.message(), envelope.method()) {
            (Message::Response { id, .. }, _) => waiting.remove(id?.raw().as_str())?.reader,
            (_, Some(Method::Ping)) => return None,
            (_, Some(Method::Progress)) => return progress(envelope, message, &waiting),
            (_, method) => {
                let (readers, given_up): (Vec<&Outlet>, Vec<&Outlet>) =
                    waiting.values().map(|request| &request.reader).partition(|reader| reader.has_reader());
                if !given_up.is_empty() && !method.is_some_and(is_about_session) {
                    return None;
                }
                match readers[..] {
                    [only] => only.clone(),
                    _ => self.listener().clone()?,
                }
            }
        };
        Some((reader, message.clone()))
    }
}

/// Whether a notification is about no request.
fn is_about_session(method: Method) -> bool {
    matches!(
        method,
        Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged
            | Method::ResourcesUpdated
    )
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
) -> Option<(Outlet, CountedBytes)> {
    let token = envelope.params()?.get("progressToken")?;
    let request = waiting.get(token.as_str())?;
    let own = Raw::spelled(request.token.as_deref()?)?;
    let remade = Edits::of(message).replace(token, Json::Raw(own)).bytes().ok()?;
    Some((request.reader.clone(), message.remade(remade)))
}

/// Reads the stream to its end. `decline` sends the answer to a request that belongs to nobody.
async fn read(mut events: Events, shared: Arc<Shared>, decline: impl Fn(Bytes) -> Posting + Send) {
    let mut declining = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(declined) = declining.next() => {
                if let Err(error) = declined {
                    debug!(%error, "failed to respond to a backend");
                }
            }
            message = events.next(), if declining.len() < limits::INPUTS => match message {
                Ok(Some(message)) => declining.extend(shared.dispatch(message).await.map(&decline)),
                Ok(None) | Err(_) => break,
            },
        }
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

    #[tokio::test(start_paused = true)]
    async fn requests_that_were_given_up_leave_nothing_behind() {
        let stream = stream();
        for number in 0..100 {
            drop(stream.inbox(&number.to_string(), Bytes::new()));
        }
        tokio::time::advance(limits::GIVEN_UP_TIME).await;
        let _last = stream.inbox("100", Bytes::new());
        assert_eq!(stream.shared.waiting().len(), 1);
    }

    const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;

    #[tokio::test(start_paused = true)]
    async fn what_may_be_for_a_request_that_was_given_up_reaches_nobody() {
        let stream = stream();
        let (mut listener, (given_up, _)) = (stream.listen(), stream.inbox("1", Bytes::new()));
        drop(given_up);
        let (mut other, _) = stream.inbox("2", Bytes::new());
        let log = || CountedBytes::from(Bytes::from_static(LOG.as_bytes()));
        let question = br#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#;
        assert_eq!(stream.shared.dispatch(log()).await, None);
        assert!(
            stream.shared.dispatch(Bytes::from_static(question).into()).await.is_some(),
            "it is declined"
        );
        assert!(other.next().now_or_never().is_none() && listener.next().now_or_never().is_none());
        tokio::time::advance(limits::GIVEN_UP_TIME).await;
        stream.shared.dispatch(log()).await;
        assert!(other.next().now_or_never().is_some(), "now it is for the only request");
    }

    #[tokio::test]
    async fn what_arrives_on_the_stream_is_read_before_the_request_has_its_own_response() {
        let stream = stream();
        let caller = Caller::default();
        let call = stream.request(&caller, HeaderMap::new(), "1", Bytes::new(), limits::BACKEND_TIME);
        let response = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let (inbox, _) = tokio::join!(call, stream.shared.dispatch(response.clone().into()));
        let message = inbox.unwrap().next().await.unwrap().unwrap();
        assert_eq!(message.into_bytes(), response);
    }

    #[tokio::test]
    async fn progress_reaches_its_own_request_also_if_others_have_the_same_token() {
        let stream = stream();
        let call = |id: u64| {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a","_meta":{{"progressToken":"mine"}}}}}}"#
            );
            let (inbox, sent) = stream.inbox(&id.to_string(), body.into());
            assert!(String::from_utf8(sent.to_vec()).unwrap().contains(&format!(r#""progressToken":{id}"#)));
            inbox
        };
        let mut calls = [call(1), call(2)];
        let notification = |token: &str, progress: u64| {
            let params = format!(r#"{{"progressToken":{token},"progress":{progress}}}"#);
            Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
        };
        for message in [notification("2", 7), notification("1", 5), notification("3", 9)] {
            assert_eq!(stream.shared.dispatch(message.into()).await, None);
        }
        for (call, progress) in calls.iter_mut().zip([5, 7]) {
            let received = call.next().await.unwrap().unwrap();
            assert_eq!(received.into_bytes(), notification(r#""mine""#, progress));
        }
    }

    fn stream() -> Stream {
        let reader = tokio::spawn(std::future::pending());
        // Nothing that is sent has a response.
        let post: Post = Arc::new(|_, _, _| std::future::pending().boxed());
        Stream { id: "".into(), endpoint: Uri::default(), shared: Arc::default(), reader, post }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_loses_notifications_and_delays_others_once() {
        let stream = stream();
        let (mut slow, _) = stream.inbox("1", Bytes::new());
        let message = |text: &str| CountedBytes::from(Bytes::copy_from_slice(text.as_bytes()));
        let started = tokio::time::Instant::now();
        for _ in 0..10 * limits::WAITING_NOTIFICATIONS {
            assert_eq!(stream.shared.dispatch(message(LOG)).await, None);
        }
        assert_eq!(started.elapsed().as_secs(), limits::READER_TIME.as_secs());
        let question = |id: usize| {
            message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{}}}}"#))
        };
        for id in 0..limits::INPUTS {
            assert_eq!(stream.shared.dispatch(question(id)).await, None);
        }
        let declined = stream.shared.dispatch(question(99)).await.unwrap();
        assert!(declined.starts_with(br#"{"jsonrpc":"2.0","id":99,"error""#));
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(stream.shared.dispatch(message(response)).await, None);
        for _ in 0..limits::WAITING_NOTIFICATIONS + limits::INPUTS {
            slow.next().await.unwrap().unwrap();
        }
        let last = slow.next().await.unwrap().unwrap();
        assert_eq!(last.into_bytes(), response);
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
