//! The queue of a stream. It is bounded, and its reader is disconnected when it is too slow.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use bytes::Bytes;
use skep_mcp::{Rejection, sse};
use tokio::sync::mpsc;

use crate::limits;

/// A message for a waiting client.
#[derive(Debug)]
pub(super) enum Reply {
    /// A message of the server, with the ids of this client.
    Message(Bytes),
    /// A message of the server to many clients, as the event that all of them get.
    Event(Event),
    /// The response, which is the last.
    Answer(Bytes),
    /// There will be no response, for this reason.
    Rejected(Rejection),
}

/// A message as an event, encoded once.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) message: Bytes,
    pub(super) encoded: Bytes,
}

impl Event {
    pub(super) fn of(message: &Bytes) -> Self {
        Self { message: message.clone(), encoded: sse::encoded("message", message) }
    }
}

/// Where replies are put. The reader's end comes when it is dropped.
pub(super) struct Outbox {
    replies: mpsc::Sender<Reply>,
    shared: Arc<Shared>,
}

/// Where replies are taken from.
pub(super) struct Inbox {
    replies: mpsc::Receiver<Reply>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The size of what is queued.
    queued: AtomicUsize,
    /// Whether a reply was lost, as its reader is too slow.
    lost: AtomicBool,
}

/// The reader has disconnected, or is too slow. It gets nothing more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost;

/// A queue.
pub(super) fn outbox() -> (Outbox, Inbox) {
    let (sender, receiver) = mpsc::channel(limits::STREAM_EVENTS);
    let shared = Arc::<Shared>::default();
    (Outbox { replies: sender, shared: shared.clone() }, Inbox { replies: receiver, shared })
}

impl Outbox {
    /// Adds a reply, if there is room. It never waits: others have messages in the same stream of the server.
    pub(super) fn push(&self, reply: Reply) -> Result<(), Lost> {
        let size = reply.size();
        let before = self.shared.queued.fetch_add(size, Ordering::Relaxed);
        // One that is larger than the bound may pass alone: the server's lines have their own bound.
        let room = before == 0 || before + size <= limits::STREAM_BYTES;
        if room && self.replies.try_send(reply).is_ok() {
            return Ok(());
        }
        self.shared.queued.fetch_sub(size, Ordering::Relaxed);
        self.shared.lost.store(true, Ordering::Relaxed);
        Err(Lost)
    }
}

impl Inbox {
    /// The next reply, or nothing when there will be none.
    pub(super) async fn next(&mut self) -> Option<Reply> {
        let reply = self.replies.recv().await?;
        self.shared.queued.fetch_sub(reply.size(), Ordering::Relaxed);
        Some(reply)
    }

    /// Whether the reader was too slow for a reply: then there is none after those that were queued.
    pub(super) fn has_lost(&self) -> bool {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Reply {
    fn size(&self) -> usize {
        match self {
            Self::Message(bytes) | Self::Answer(bytes) => bytes.len(),
            Self::Event(event) => event.encoded.len(),
            Self::Rejected(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(size: usize) -> Reply {
        Reply::Message(vec![b'x'; size].into())
    }

    #[tokio::test]
    async fn the_number_and_the_size_of_queued_replies_are_bounded() {
        let (by_number, _reader) = outbox();
        let pushed =
            (0..limits::STREAM_EVENTS * 2).take_while(|_| by_number.push(message(1)).is_ok()).count();
        assert_eq!(pushed, limits::STREAM_EVENTS);

        let (by_size, mut reader) = outbox();
        assert_eq!(by_size.push(message(limits::STREAM_BYTES * 2)), Ok(()), "one alone may be larger");
        assert_eq!(by_size.push(message(1)), Err(Lost));
        assert!(reader.next().await.is_some());
        assert_eq!(by_size.push(message(1)), Ok(()), "reading makes room");
    }
}
