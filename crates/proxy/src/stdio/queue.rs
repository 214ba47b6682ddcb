//! The queue of lines for the server.
//!
//! Lines of clients wait in their requests while too many are queued. Lines of the bridge itself cannot wait, as the
//! reader of the server's output sends them, and must not be lost either: a subscription would never end, or a request
//! that its client has cancelled would go on. So they have their own, larger bound. All stay in order.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::limits;

/// Where lines are put.
#[derive(Clone)]
pub(super) struct Queue {
    lines: mpsc::UnboundedSender<Queued>,
    places: Arc<Semaphore>,
    own: Arc<AtomicUsize>,
}

/// A line that waits for the server.
struct Queued {
    line: Bytes,
    _place: Place,
}

/// What a line occupies for as long as it is queued.
enum Place {
    Client(#[expect(dead_code, reason = "it is released when it is dropped")] OwnedSemaphorePermit),
    Own(Arc<AtomicUsize>),
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Own(own) = self {
            own.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Where lines are taken from.
pub(super) struct QueuedLines(mpsc::UnboundedReceiver<Queued>);

/// The line was not queued: the server has ended, or reads nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotQueued;

/// A queue.
pub(super) fn queue() -> (Queue, QueuedLines) {
    let (lines, queued) = mpsc::unbounded_channel();
    let places = Arc::new(Semaphore::new(limits::STDIO_QUEUE));
    (Queue { lines, places, own: Arc::default() }, QueuedLines(queued))
}

impl Queue {
    /// Adds a line, and waits while too many are queued.
    pub(super) async fn put(&self, line: Vec<u8>) -> Result<(), NotQueued> {
        let place = tokio::select! {
            place = self.places.clone().acquire_owned() => place.map_err(|_| NotQueued)?,
            () = self.lines.closed() => return Err(NotQueued),
        };
        self.send(line, Place::Client(place))
    }

    /// Adds a line of the bridge itself, without waiting.
    pub(super) fn push(&self, line: Vec<u8>) -> Result<(), NotQueued> {
        let queued = self.own.fetch_add(1, Ordering::Relaxed);
        let place = Place::Own(self.own.clone());
        if queued >= limits::STDIO_OWN_QUEUE {
            return Err(NotQueued);
        }
        self.send(line, place)
    }

    fn send(&self, line: Vec<u8>, place: Place) -> Result<(), NotQueued> {
        self.lines.send(Queued { line: line.into(), _place: place }).map_err(|_| NotQueued)
    }
}

impl QueuedLines {
    /// The next line, or nothing when there will be none.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.0.recv().await.map(|queued| queued.line)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn lines_of_clients_wait_and_those_of_the_bridge_are_bounded_and_all_stay_in_order() {
        let (queue, mut lines) = queue();
        for _ in 0..limits::STDIO_QUEUE {
            queue.put(b"client".to_vec()).now_or_never().unwrap().unwrap();
        }
        let mut waiting = Box::pin(queue.put(b"late".to_vec()));
        assert!((&mut waiting).now_or_never().is_none());
        let own = (0..).take_while(|_| queue.push(b"own".to_vec()).is_ok()).count();
        assert_eq!(own, limits::STDIO_OWN_QUEUE);
        for _ in 0..limits::STDIO_QUEUE {
            assert_eq!(lines.next().await.unwrap(), "client");
        }
        waiting.await.unwrap();
        for _ in 0..own {
            assert_eq!(lines.next().await.unwrap(), "own");
        }
        assert_eq!(lines.next().await.unwrap(), "late");
        assert_eq!(queue.push(Vec::new()), Ok(()), "reading makes room");
        drop(lines);
        assert_eq!((queue.put(Vec::new()).await, queue.push(Vec::new())), (Err(NotQueued), Err(NotQueued)));
    }
}
