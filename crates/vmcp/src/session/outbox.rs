//! The stream of a session for messages that belong to no request. There is one at most.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::limits;

/// Where messages for a client's stream are put.
#[derive(Default)]
pub(crate) struct Outbox(Mutex<Option<Stream>>);

struct Stream {
    sender: mpsc::Sender<Bytes>,
    /// How many bytes wait for the client.
    waiting: Arc<AtomicUsize>,
}

/// The messages of a stream. It ends if the client reads too slowly: it must see that it has missed something.
pub(crate) struct Queue {
    messages: mpsc::Receiver<Bytes>,
    waiting: Arc<AtomicUsize>,
}

impl Queue {
    /// The next message, or nothing when the stream has ended. It may be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let message = self.messages.recv().await?;
        self.waiting.fetch_sub(message.len(), Ordering::Relaxed);
        Some(message)
    }
}

impl Outbox {
    /// Opens the stream, unless there is one.
    pub(crate) fn open(&self) -> Option<Queue> {
        let mut stream = self.lock();
        if stream.as_ref().is_some_and(Stream::is_open) {
            return None;
        }
        let (sender, messages) = mpsc::channel(limits::STREAM_QUEUE);
        let waiting = Arc::new(AtomicUsize::new(0));
        *stream = Some(Stream { sender, waiting: waiting.clone() });
        Some(Queue { messages, waiting })
    }

    pub(crate) fn send(&self, message: Bytes) {
        let mut stream = self.lock();
        if stream.as_ref().is_some_and(|stream| !stream.put(message)) {
            *stream = None;
        }
    }

    /// Ends the stream. The client may open another.
    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Stream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Adds a message, and returns whether there was room for it.
    fn put(&self, message: Bytes) -> bool {
        let waiting = self.waiting.fetch_add(message.len(), Ordering::Relaxed);
        // One that is large alone is sent.
        waiting.saturating_add(message.len()) <= limits::STREAM_BYTES.max(message.len())
            && self.sender.try_send(message).is_ok()
    }

    fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_too_slowly_loses_its_stream_and_can_open_another() {
        let outbox = Outbox::default();
        let mut slow = outbox.open().unwrap();
        assert!(outbox.open().is_none(), "there is one stream");
        for _ in 0..=limits::STREAM_QUEUE {
            outbox.send(Bytes::from_static(b"{}"));
        }
        let mut count = 0;
        while slow.next().await.is_some() {
            count += 1;
        }
        assert_eq!(count, limits::STREAM_QUEUE);
        assert!(outbox.open().is_some());
    }

    #[tokio::test]
    async fn what_waits_for_a_client_is_bounded_in_bytes_too() {
        let outbox = Outbox::default();
        let mut queue = outbox.open().unwrap();
        let large = Bytes::from(vec![b' '; limits::STREAM_BYTES]);
        outbox.send(large.clone());
        assert_eq!(queue.next().await.map(|message| message.len()), Some(large.len()));
        outbox.send(large.clone());
        outbox.send(Bytes::from_static(b"{}"));
        assert!(queue.next().await.is_some() && queue.next().await.is_none(), "it has lost the stream");
    }
}
