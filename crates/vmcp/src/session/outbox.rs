//! The stream of a session for messages that belong to no request. There is at most one: a new stream takes over what waits for the
//! client, as the connection of the one before may be dead without a sign.

use std::{
    collections::VecDeque,
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::limits;

/// The sender's end of a client's stream.
#[derive(Default)]
pub(crate) struct Outbox(Mutex<Option<Arc<Stream>>>);

/// The messages of a stream. It ends if the client reads too slowly: it must see that it has missed something.
pub(crate) struct Queue(Arc<Stream>);

#[derive(Default)]
struct Stream {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

/// The messages that wait for the client.
#[derive(Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
    has_ended: bool,
}

impl Queue {
    /// The next message, or nothing when the stream has ended. It may be dropped and called again.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            {
                let mut waiting = self.0.lock();
                if let Some(message) = waiting.messages.pop_front() {
                    waiting.bytes -= message.len();
                    return Some(message);
                }
                if waiting.has_ended {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Completes when the stream gets no more messages, as when another takes its place.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let stream = self.0.clone();
        async move {
            loop {
                let mut changed = pin!(stream.changed.notified());
                changed.as_mut().enable();
                if stream.lock().has_ended {
                    return;
                }
                changed.await;
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

impl Outbox {
    /// Opens the stream, in place of another.
    pub(crate) fn open(&self) -> Queue {
        let mut stream = self.lock();
        let waiting = stream.take().map(|before| before.take()).unwrap_or_default();
        let new = Arc::new(Stream { waiting: Mutex::new(waiting), changed: Notify::new() });
        *stream = Some(new.clone());
        Queue(new)
    }

    pub(crate) fn send(&self, message: Bytes) {
        let mut stream = self.lock();
        if stream.as_ref().is_some_and(|stream| !stream.put(message)) {
            *stream = None;
        }
    }

    /// Ends the stream. The client may open another.
    pub(crate) fn close(&self) {
        if let Some(stream) = self.lock().take() {
            stream.end(&mut stream.lock());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Stream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Adds a message, if there is room for it. The stream ends otherwise. Returns whether it is open.
    fn put(&self, message: Bytes) -> bool {
        let mut waiting = self.lock();
        let bytes = waiting.bytes.saturating_add(message.len());
        // One that is large alone is sent.
        let has_room =
            waiting.messages.len() < limits::STREAM_QUEUE && bytes <= limits::STREAM_BYTES.max(message.len());
        if !has_room || waiting.has_ended {
            self.end(&mut waiting);
            return false;
        }
        waiting.bytes = bytes;
        waiting.messages.push_back(message);
        drop(waiting);
        self.changed.notify_waiters();
        true
    }

    /// Ends the stream, and returns what waits for the client.
    fn take(&self) -> Waiting {
        let mut waiting = self.lock();
        let has_ended = waiting.has_ended;
        let taken = mem::take(&mut *waiting);
        self.end(&mut waiting);
        // A client that has missed something has seen the end of that stream, or will.
        if has_ended { Waiting::default() } else { taken }
    }

    fn end(&self, waiting: &mut Waiting) {
        waiting.has_ended = true;
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: Bytes = Bytes::from_static(b"{}");

    #[tokio::test]
    async fn a_slow_client_loses_its_stream_and_can_open_another() {
        let outbox = Outbox::default();
        let mut slow = outbox.open();
        for _ in 0..=limits::STREAM_QUEUE {
            outbox.send(MESSAGE);
        }
        let mut count = 0;
        while slow.next().await.is_some() {
            count += 1;
        }
        assert_eq!(count, limits::STREAM_QUEUE);
        let mut other = outbox.open();
        outbox.send(MESSAGE);
        assert_eq!(other.next().await, Some(MESSAGE));
    }

    #[tokio::test]
    async fn a_queue_is_bounded_in_bytes_too() {
        let outbox = Outbox::default();
        let mut queue = outbox.open();
        let large = Bytes::from(vec![b' '; limits::STREAM_BYTES]);
        outbox.send(large.clone());
        assert_eq!(queue.next().await.map(|message| message.len()), Some(large.len()));
        outbox.send(large.clone());
        outbox.send(MESSAGE);
        assert!(queue.next().await.is_some() && queue.next().await.is_none(), "it has lost the stream");
    }

    #[tokio::test]
    async fn a_new_stream_takes_over_the_messages_of_the_last() {
        let outbox = Outbox::default();
        let mut silent = outbox.open();
        outbox.send(MESSAGE);
        let ended = silent.ended();
        let mut new = outbox.open();
        outbox.send(Bytes::from_static(b"[]"));
        ended.await;
        assert_eq!(silent.next().await, None);
        drop(silent);
        assert_eq!((new.next().await, new.next().await), (Some(MESSAGE), Some(Bytes::from_static(b"[]"))));
        drop(new);
        outbox.send(MESSAGE);
        let mut last = outbox.open();
        outbox.close();
        assert_eq!(last.next().await, None, "messages without a stream are dropped");
    }
}
