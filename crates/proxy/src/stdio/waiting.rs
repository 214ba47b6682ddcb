//! Waiting for the response to a request.

use std::sync::Arc;

use skep_gateway::body::CountedBytes;
use skep_mcp::{Envelope, Method, Rejection};
use tokio::time::{Instant, sleep_until};

use super::{
    bridge::{Bridge, is_endless, last},
    inflight::Pulse,
    outbox::{Inbox, Reply},
};
use crate::limits;

/// A client that waits. When this is dropped, the request is cancelled.
pub(super) struct Waiting {
    bridge: Arc<Bridge>,
    number: u64,
    inbox: Inbox,
    pulse: Arc<Pulse>,
    /// When it ends at the latest.
    end: Option<Instant>,
    /// What is sent to the server when the client does not wait any more.
    leave: Leave,
    /// Whether the server may know of it.
    is_sent: bool,
    over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Nothing: until 2025-11-25, a connection that ends means nothing.
    Silently,
    /// That the request is cancelled, which is what it means since.
    Cancel,
}

impl Waiting {
    pub(super) fn new(
        bridge: Arc<Bridge>,
        number: u64,
        inbox: Inbox,
        pulse: Arc<Pulse>,
        envelope: &Envelope<'_>,
    ) -> Self {
        let end = (!is_endless(envelope)).then(|| Instant::now() + limits::LONGEST_REQUEST);
        let modern = envelope.meta().protocol_version().is_some();
        let leave = if modern && envelope.method() != Some(Method::Initialize) {
            Leave::Cancel
        } else {
            Leave::Silently
        };
        Self { bridge, number, inbox, pulse, end, leave, is_sent: false, over: false }
    }

    /// The request is in the server's queue.
    pub(super) fn sent(&mut self) {
        self.is_sent = true;
    }

    /// Whether only its client ends it.
    pub(super) fn is_endless(&self) -> bool {
        self.end.is_none()
    }

    /// The next reply. After the response, or the reason why there is none, nothing follows.
    ///
    /// It may be dropped and called again.
    pub(super) async fn next(&mut self) -> Option<Reply> {
        if self.over {
            return None;
        }
        loop {
            let deadline = self.end.map(|end| end.min(self.pulse.last() + self.bridge.request_time()));
            let late = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                reply = self.inbox.next() => {
                    self.over = !matches!(reply, Some(Reply::Message(_) | Reply::Event(_)));
                    return reply.or_else(|| Some(Reply::Rejected(self.inbox.lost()?.into())));
                }
                () = late => {}
            }
            let now = Instant::now();
            if self.end.is_some_and(|end| now >= end)
                || (!self.is_endless() && now >= self.pulse.last() + self.bridge.request_time())
            {
                self.over = true;
                self.bridge.router().cancel(self.number);
                return Some(Reply::Rejected(Rejection::Timeout));
            }
        }
    }

    /// The response alone. Nothing if the client has cancelled the request.
    pub(super) async fn answer(mut self) -> Result<Option<CountedBytes>, Rejection> {
        while let Some(reply) = self.next().await {
            if let Some(answer) = last(reply) {
                return answer.map(Some);
            }
        }
        Ok(None)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut router = self.bridge.router();
        match self.leave {
            _ if !self.is_sent => drop(router.remove_request(self.number)),
            Leave::Silently => drop(router.abandon(self.number, limits::LONGEST_REQUEST)),
            Leave::Cancel => router.cancel(self.number),
        }
    }
}
