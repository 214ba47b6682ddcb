//! The bridge: many clients share the server's one stream.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use skep_mcp::{Envelope, Method, Rejection, stdio::line_of};
use tokio::{sync::watch, time::timeout};

use super::{
    handshake::Handshake,
    inflight::{Carries, Pulse, SessionKey},
    outbox::{Reply, outbox},
    outgoing::{Outgoing, Requester},
    queue::{NotQueued, Queue},
    replaced::Replaced,
    router::{Link, Router},
    waiting::Waiting,
};
use crate::limits;

/// The state of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It is starting.
    Starting,
    /// It is available.
    Ready,
    /// It failed to start, and is started again later.
    Down,
}

/// Connects many clients to one server.
pub(super) struct Bridge {
    router: Mutex<Router>,
    status: watch::Sender<Status>,
    /// Counts how often the server has announced other tools.
    tool_changes: watch::Sender<u64>,
    /// One client initializes the server at a time.
    turn: tokio::sync::Mutex<()>,
    request_time: Duration,
}

/// The response to a request.
pub(super) enum Forwarded {
    /// It is known at once.
    Answer(Bytes),
    /// The server sends it.
    Waiting(Waiting),
}

impl Bridge {
    pub(super) fn new(request_time: Duration) -> Arc<Self> {
        let (status, _) = watch::channel(Status::Starting);
        let (router, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        let tool_changes = watch::Sender::new(0);
        Arc::new(Self { router, status, tool_changes, turn, request_time })
    }

    pub(super) fn router(&self) -> MutexGuard<'_, Router> {
        self.router.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> Status {
        *self.status.borrow()
    }

    pub(super) fn set_status(&self, status: Status) {
        self.status.send_replace(status);
    }

    /// The server has announced that its tools changed.
    pub(super) fn announce_tools(&self) {
        self.tool_changes.send_modify(|count| *count += 1);
    }

    pub(super) fn tool_changes(&self) -> watch::Receiver<u64> {
        self.tool_changes.subscribe()
    }

    pub(super) fn request_time(&self) -> Duration {
        self.request_time
    }

    /// Sends a request.
    pub(super) async fn request(
        self: &Arc<Self>,
        envelope: &Envelope<'_>,
        session: Option<&SessionKey>,
        carries: Carries,
    ) -> Result<Forwarded, Rejection> {
        let (reply, inbox) = outbox();
        let pulse = Pulse::new();
        let requester = Requester { session: session.cloned(), carries, reply, pulse: pulse.clone() };
        let (queue, outgoing) =
            self.when_open(|router, queue| (queue, router.request(envelope, requester))).await?;
        match outgoing? {
            Outgoing::Response(answer) => Ok(Forwarded::Answer(answer.into())),
            Outgoing::Request(request) => {
                let waiting = Waiting::new(self.clone(), request.number, inbox, pulse, envelope);
                self.put(&queue, request.line(envelope)?).await?;
                Ok(Forwarded::Waiting(waiting))
            }
        }
    }

    /// Sends a notification or a response, unless it is not for the server.
    pub(super) async fn send<'a>(
        &self,
        envelope: &Envelope<'a>,
        route: impl FnOnce(&mut Router) -> Option<Replaced<'a>> + Send,
    ) -> Result<(), Rejection> {
        let (queue, replaced) = self.when_open(|router, queue| (queue, route(router))).await?;
        match replaced.and_then(|replaced| replaced.in_message(envelope.bytes())) {
            Some(message) => self.put(&queue, line_of(message)).await,
            None => Ok(()),
        }
    }

    /// The response to an `initialize`: the server's for the first, and a copy of it for others.
    ///
    /// It is completed also when the client has disconnected: a server must not be initialized twice.
    pub(super) fn initialize(
        self: &Arc<Self>,
        request: Bytes,
    ) -> impl Future<Output = Result<Bytes, Rejection>> + Send + use<> {
        let bridge = self.clone();
        async move {
            let task = tokio::spawn(async move { bridge.initialize_once(request).await });
            task.await.map_err(|_| Rejection::Internal)?
        }
    }

    async fn initialize_once(self: Arc<Self>, request: Bytes) -> Result<Bytes, Rejection> {
        let envelope = Envelope::parse(&request)?;
        let _turn = self.turn.lock().await;
        let known = {
            let router = self.router();
            router.handshake.as_ref().map(|handshake| handshake.answer(&envelope))
        };
        if let Some(answer) = known {
            return answer.map(Bytes::from).ok_or(Rejection::Internal);
        }
        let Forwarded::Waiting(waiting) = self.request(&envelope, None, Carries::Answer).await? else {
            return Err(Rejection::Internal);
        };
        let answer = waiting.answer().await?.ok_or(Rejection::Internal)?;
        if let Some(handshake) = Handshake::of(&request, &answer) {
            self.router().handshake = Some(handshake);
        }
        Ok(answer)
    }

    /// Initializes a restarted server like the first time, before any request of a client.
    pub(super) async fn initialize_again(self: &Arc<Self>, queue: &Queue) -> Result<(), Rejection> {
        let kept = {
            let router = self.router();
            router.handshake.as_ref().map(|known| (known.request.clone(), known.initialized.clone()))
        };
        let Some((request, initialized)) = kept else { return Ok(()) };
        let envelope = Envelope::parse(&request)?;
        let (reply, inbox) = outbox();
        let pulse = Pulse::new();
        let requester = Requester { session: None, carries: Carries::Answer, reply, pulse: pulse.clone() };
        let outgoing = self.router().request(&envelope, requester)?;
        let Outgoing::Request(numbered) = outgoing else { return Err(Rejection::Internal) };
        let waiting = Waiting::new(self.clone(), numbered.number, inbox, pulse, &envelope);
        self.put(queue, numbered.line(&envelope)?).await?;
        let answer = waiting.answer().await?.ok_or(Rejection::Unreachable)?;
        let mut handshake = Handshake::of(&request, &answer).ok_or(Rejection::Unreachable)?;
        handshake.initialized.clone_from(&initialized);
        self.router().handshake = Some(handshake);
        if let Some(initialized) = initialized {
            self.put(queue, skep_mcp::stdio::line_of(initialized.to_vec())).await?;
        }
        self.restore_subscriptions(queue).await
    }

    /// Restores subscriptions and the log level, however many there are: it waits while the server reads.
    async fn restore_subscriptions(&self, queue: &Queue) -> Result<(), Rejection> {
        let uris = self.router().subscriptions();
        for uri in uris {
            let line = self.router().subscription(&uri);
            if let Some(line) = line {
                self.put(queue, line).await?;
            }
        }
        let level = self.router().log_level();
        match level {
            Some(line) => self.put(queue, line).await,
            None => Ok(()),
        }
    }

    /// Waits until clients may use the server, and then uses the router.
    async fn when_open<T>(
        &self,
        use_router: impl FnOnce(&mut Router, Queue) -> T + Send,
    ) -> Result<T, Rejection> {
        let mut status = self.status.subscribe();
        let waited = timeout(limits::STDIO_START_TIME, async {
            loop {
                {
                    let mut router = self.router();
                    if let Link::Open(queue) = &router.link {
                        let queue = queue.clone();
                        return Ok(use_router(&mut router, queue));
                    }
                }
                // It only waits while the server is starting.
                let now = status.wait_for(|status| *status != Status::Starting).await.map(|now| *now).ok();
                if now != Some(Status::Ready) {
                    return Err(Rejection::Unavailable("the MCP server is"));
                }
                tokio::task::yield_now().await;
            }
        });
        waited.await.unwrap_or(Err(Rejection::Unavailable("the MCP server is")))
    }

    /// Puts a line into the server's queue, and waits while that is full.
    async fn put(&self, queue: &Queue, line: Vec<u8>) -> Result<(), Rejection> {
        match timeout(self.request_time, queue.put(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(NotQueued)) => Err(Rejection::Unreachable),
            Err(_) => Err(Rejection::Timeout),
        }
    }
}

/// Whether a request has no timeout: only its client ends it.
pub(super) fn is_endless(envelope: &Envelope<'_>) -> bool {
    envelope.method() == Some(Method::SubscriptionsListen)
}

/// A reply for a client that gets one response.
pub(super) fn last(reply: Reply) -> Option<Result<Bytes, Rejection>> {
    match reply {
        Reply::Message(_) | Reply::Event(_) => None,
        Reply::Answer(answer) => Some(Ok(answer)),
        Reply::Rejected(rejection) => Some(Err(rejection)),
    }
}
