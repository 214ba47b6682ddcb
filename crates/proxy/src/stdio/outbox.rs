//! The queue of a stream. It is bounded, and its reader is disconnected when it is too slow.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use skep_gateway::body::{Budget, CountedBytes};
use skep_mcp::{Rejection, sse};
use tokio::sync::mpsc;

use crate::limits;

/// A message for a waiting client.
pub(super) enum Reply {
    /// A message of the server, with the ids of this client.
    Message(CountedBytes),
    /// A message of the server to many clients, as the event that all of them get.
    Event(Event),
    /// The response, which is the last.
    Answer(CountedBytes),
    /// There will be no response, for this reason.
    Rejected(Rejection),
}

/// A message as an event, encoded once.
#[derive(Clone)]
pub(super) struct Event {
    pub(super) message: Bytes,
    pub(super) encoded: CountedBytes,
}

impl Event {
    pub(super) fn of(message: &Bytes) -> Self {
        Self { message: message.clone(), encoded: sse::encoded("message", message).into() }
    }
}

/// Where replies are put. The reader's end comes when it is dropped.
pub(super) struct Outbox {
    replies: mpsc::Sender<Reply>,
    shared: Arc<Shared>,
    /// What its client may have. The bridge itself, which reads at once, has no such bound.
    memory: Option<Budget>,
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
    /// Why a reply was lost.
    lost: OnceLock<Lost>,
}

/// Why the reader gets nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// It has disconnected, or is too slow.
    Reader,
    /// The memory is used up, or its client's part of it.
    Memory,
}

impl From<Lost> for Rejection {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Reader => Self::SlowReader,
            Lost::Memory => Self::Unavailable("memory"),
        }
    }
}

/// A queue of a client with this memory.
pub(super) fn outbox(memory: Option<Budget>) -> (Outbox, Inbox) {
    let (sender, receiver) = mpsc::channel(limits::STREAM_EVENTS);
    let shared = Arc::<Shared>::default();
    (Outbox { replies: sender, shared: shared.clone(), memory }, Inbox { replies: receiver, shared })
}

impl Outbox {
    /// Adds a reply, if there is room. It never waits: others have messages in the same stream of the server.
    pub(super) fn push(&self, reply: Reply) -> Result<(), Lost> {
        let size = reply.size();
        let before = self.shared.queued.fetch_add(size, Ordering::Relaxed);
        // One that is larger than the bound may pass alone: the server's lines have their own bound.
        let room = before == 0 || before + size <= limits::STREAM_BYTES;
        let sent = match room {
            true => self
                .counted(reply, before + size)
                .and_then(|reply| self.replies.try_send(reply).map_err(|_| Lost::Reader)),
            false => Err(Lost::Reader),
        };
        if let Err(lost) = sent {
            self.shared.queued.fetch_sub(size, Ordering::Relaxed);
            self.shared.lost.set(lost).ok();
        }
        sent
    }

    /// The reply, which counts until it is in the client's connection, unless little is queued.
    fn counted(&self, reply: Reply, queued: usize) -> Result<Reply, Lost> {
        let Some(memory) = self.memory.as_ref().filter(|_| queued > limits::STREAM_UNCOUNTED) else {
            return Ok(reply);
        };
        let counted = |bytes: CountedBytes| {
            if bytes.are_counted() {
                return Ok(bytes);
            }
            let share = memory.take(bytes.len()).map_err(|_| Lost::Memory)?;
            Ok(CountedBytes::new(bytes.into_bytes(), share))
        };
        Ok(match reply {
            Reply::Message(message) => Reply::Message(counted(message)?),
            Reply::Answer(answer) => Reply::Answer(counted(answer)?),
            Reply::Event(event) => Reply::Event(Event { encoded: counted(event.encoded)?, ..event }),
            Reply::Rejected(rejection) => Reply::Rejected(rejection),
        })
    }
}

impl Inbox {
    /// The next reply, or nothing when there will be none.
    pub(super) async fn next(&mut self) -> Option<Reply> {
        let reply = self.replies.recv().await?;
        self.shared.queued.fetch_sub(reply.size(), Ordering::Relaxed);
        Some(reply)
    }

    /// Why a reply was lost: then there is none after those that were queued.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.shared.lost.get().copied()
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
        Reply::Message(Bytes::from(vec![b'x'; size]).into())
    }

    #[tokio::test]
    async fn the_number_and_the_size_of_queued_replies_are_bounded() {
        let (by_number, _reader) = outbox(None);
        let pushed =
            (0..limits::STREAM_EVENTS * 2).take_while(|_| by_number.push(message(1)).is_ok()).count();
        assert_eq!(pushed, limits::STREAM_EVENTS);

        let (by_size, mut reader) = outbox(None);
        assert_eq!(by_size.push(message(limits::STREAM_BYTES * 2)), Ok(()), "one alone may be larger");
        assert_eq!(by_size.push(message(1)), Err(Lost::Reader));
        assert!(reader.next().await.is_some());
        assert_eq!(by_size.push(message(1)), Ok(()), "reading makes room");
    }

    #[tokio::test]
    async fn what_a_client_does_not_read_counts_until_it_has_been_sent() {
        let budget = Budget::new(1 << 20);
        let is_free = || budget.take(1 << 20).is_ok();
        let (small, _reader) = outbox(Some(budget.clone()));
        small.push(message(limits::STREAM_UNCOUNTED)).unwrap();
        assert!(is_free(), "most messages cost nothing");
        let (large, mut reader) = outbox(Some(budget.clone()));
        large.push(message(1 << 19)).unwrap();
        let Some(Reply::Message(taken)) = reader.next().await else { panic!() };
        let sent = taken.remade(vec![b'y'; 1 << 19]).into_bytes();
        drop(taken);
        assert!(!is_free(), "it is in the connection");
        assert_eq!(large.push(message(1 << 20)), Err(Lost::Memory));
        assert_eq!(reader.lost(), Some(Lost::Memory));
        drop(sent);
        assert!(is_free());
    }
}
