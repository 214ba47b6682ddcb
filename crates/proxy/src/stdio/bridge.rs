//! The bridge: many clients share the server's one stream.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use skep_gateway::{
    Turns,
    body::{Budget, CountedBytes, Share},
    identity::Holder,
    message::Exchange,
};
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
    /// One client initializes the server at a time, and one of each caller waits for that.
    turns: Turns<Holder>,
    request_time: Duration,
}

/// The client of a request, as far as limits are concerned.
pub(super) struct Client {
    /// Whose requests are counted.
    pub(super) holder: Holder,
    /// What it may have of it.
    pub(super) memory: Budget,
}

impl Client {
    pub(super) fn of(exchange: &Exchange) -> Self {
        Self { holder: exchange.holder(), memory: exchange.memory() }
    }

    /// The share of a message that is kept.
    fn share(&self, bytes: usize) -> Result<Share, Rejection> {
        let mut share = self.memory.share();
        share.grow(bytes).map_err(|_| Rejection::Unavailable("memory"))?;
        Ok(share)
    }
}

/// The response to a request.
pub(super) enum Forwarded {
    /// It is known at once.
    Answer(CountedBytes),
    /// The server sends it.
    Waiting(Waiting),
}

impl Bridge {
    pub(super) fn new(request_time: Duration) -> Arc<Self> {
        let (status, _) = watch::channel(Status::Starting);
        let (router, turns) = (Mutex::default(), Turns::new(1, 1));
        let tool_changes = watch::Sender::new(0);
        Arc::new(Self { router, status, tool_changes, turns, request_time })
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
        client: &Client,
    ) -> Result<Forwarded, Rejection> {
        let share = client.share(envelope.bytes().len())?;
        let (reply, inbox) = outbox(Some(client.memory.clone()));
        let pulse = Pulse::new();
        let (session, holder) = (session.cloned(), Some(client.holder));
        let requester = Requester { session, holder, carries, reply, pulse: pulse.clone() };
        let (queue, outgoing) =
            self.when_open(|router, queue| (queue, router.request(envelope, requester))).await?;
        match outgoing? {
            Outgoing::Response(answer) => Ok(Forwarded::Answer(Bytes::from(answer).into())),
            Outgoing::Request(request) => {
                let mut waiting = Waiting::new(self.clone(), request.number, inbox, pulse, envelope);
                self.put(&queue, request.line(envelope)?, Some(share)).await?;
                waiting.sent();
                Ok(Forwarded::Waiting(waiting))
            }
        }
    }

    /// Sends a notification or a response, unless it is not for the server.
    pub(super) async fn send<'a>(
        &self,
        envelope: &Envelope<'a>,
        client: &Client,
        route: impl FnOnce(&mut Router) -> Option<Replaced<'a>> + Send,
    ) -> Result<(), Rejection> {
        let share = client.share(envelope.bytes().len())?;
        let (queue, replaced) = self.when_open(|router, queue| (queue, route(router))).await?;
        match replaced.and_then(|replaced| replaced.in_message(envelope.bytes())) {
            Some(message) => self.put(&queue, line_of(message), Some(share)).await,
            None => Ok(()),
        }
    }

    /// The response to an `initialize`: the server's for the first, and a copy of it for others.
    ///
    /// Once it has its turn, it is completed also when the client has disconnected: a server must not be initialized twice.
    pub(super) async fn initialize(
        self: &Arc<Self>,
        request: &Bytes,
        client: Client,
    ) -> Result<CountedBytes, Rejection> {
        let envelope = Envelope::parse(request)?;
        if let Some(answer) = self.known_answer(&envelope, &client) {
            return answer;
        }
        let turn = timeout(self.request_time, self.turns.take(client.holder));
        let turn = turn.await.map_err(|_| Rejection::Timeout)?;
        // Another client has initialized it meanwhile.
        if let Some(answer) = self.known_answer(&envelope, &client) {
            return answer;
        }
        let share = client.share(request.len())?;
        let (bridge, request) = (self.clone(), CountedBytes::new(request.clone(), share));
        let task = tokio::spawn(async move {
            let _turn = turn;
            bridge.initialize_once(&request, &client).await
        });
        task.await.map_err(|_| Rejection::Internal)?
    }

    /// The response to a client that connects later.
    fn known_answer(
        &self,
        envelope: &Envelope<'_>,
        client: &Client,
    ) -> Option<Result<CountedBytes, Rejection>> {
        let answer = self.router().handshake.as_ref()?.answer(envelope);
        Some(answer.ok_or(Rejection::Internal).and_then(|answer| {
            let share = client.share(answer.len())?;
            Ok(CountedBytes::new(answer.into(), share))
        }))
    }

    async fn initialize_once(
        self: &Arc<Self>,
        request: &[u8],
        client: &Client,
    ) -> Result<CountedBytes, Rejection> {
        let envelope = Envelope::parse(request)?;
        let Forwarded::Waiting(waiting) = self.request(&envelope, None, Carries::Answer, client).await?
        else {
            return Err(Rejection::Internal);
        };
        let answer = waiting.answer().await?.ok_or(Rejection::Internal)?;
        if let Some(handshake) = Handshake::of(request, &answer) {
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
        let (reply, inbox) = outbox(None);
        let pulse = Pulse::new();
        let (carries, beats) = (Carries::Answer, pulse.clone());
        let requester = Requester { session: None, holder: None, carries, reply, pulse: beats };
        let outgoing = self.router().request(&envelope, requester)?;
        let Outgoing::Request(numbered) = outgoing else { return Err(Rejection::Internal) };
        let mut waiting = Waiting::new(self.clone(), numbered.number, inbox, pulse, &envelope);
        self.put(queue, numbered.line(&envelope)?, None).await?;
        waiting.sent();
        let answer = waiting.answer().await?.ok_or(Rejection::Unreachable)?;
        let mut handshake = Handshake::of(&request, &answer).ok_or(Rejection::Unreachable)?;
        handshake.initialized.clone_from(&initialized);
        self.router().handshake = Some(handshake);
        if let Some(initialized) = initialized {
            self.put(queue, line_of(initialized.to_vec()), None).await?;
        }
        self.restore_subscriptions(queue).await
    }

    /// Restores subscriptions and the log level, however many there are: it waits while the server reads.
    async fn restore_subscriptions(&self, queue: &Queue) -> Result<(), Rejection> {
        let uris = self.router().subscriptions();
        for uri in uris {
            let line = self.router().subscription(&uri);
            if let Some(line) = line {
                self.put(queue, line, None).await?;
            }
        }
        let level = self.router().log_level();
        match level {
            Some(line) => self.put(queue, line, None).await,
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
    async fn put(&self, queue: &Queue, line: Vec<u8>, share: Option<Share>) -> Result<(), Rejection> {
        match timeout(self.request_time, queue.put(line, share)).await {
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
pub(super) fn last(reply: Reply) -> Option<Result<CountedBytes, Rejection>> {
    match reply {
        Reply::Message(_) | Reply::Event(_) => None,
        Reply::Answer(answer) => Some(Ok(answer)),
        Reply::Rejected(rejection) => Some(Err(rejection)),
    }
}
