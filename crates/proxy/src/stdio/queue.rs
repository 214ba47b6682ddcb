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
use skep_gateway::body::Share;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::limits;

/// Where lines are put.
#[derive(Clone)]
pub(super) struct Queue {
    lines: mpsc::UnboundedSender<Queued>,
    places: Arc<Semaphore>,
    own: Arc<AtomicUsize>,
}

/// A line that waits for the server. It has its place until this is dropped.
pub(super) struct Queued {
    pub(super) line: Bytes,
    _place: Place,
}

/// What a line occupies for as long as it is queued.
enum Place {
    #[expect(dead_code, reason = "they are released when they are dropped")]
    Client(OwnedSemaphorePermit, Option<Share>),
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
    /// Adds a line, and waits while too many are queued. It takes its share of memory until the server has read it, also if its client
    /// leaves.
    pub(super) async fn put(&self, line: Vec<u8>, share: Option<Share>) -> Result<(), NotQueued> {
        let place = tokio::select! {
            place = self.places.clone().acquire_owned() => place.map_err(|_| NotQueued)?,
            () = self.lines.closed() => return Err(NotQueued),
        };
        self.send(line, Place::Client(place, share))
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
    pub(super) async fn next(&mut self) -> Option<Queued> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use skep_gateway::body::Budget;

    use super::*;

    #[tokio::test]
    async fn lines_of_clients_wait_and_those_of_the_bridge_are_bounded_and_all_stay_in_order() {
        let (queue, mut lines) = queue();
        for _ in 0..limits::STDIO_QUEUE {
            queue.put(b"client".to_vec(), None).now_or_never().unwrap().unwrap();
        }
        let mut waiting = Box::pin(queue.put(b"late".to_vec(), None));
        assert!((&mut waiting).now_or_never().is_none());
        let own = (0..).take_while(|_| queue.push(b"own".to_vec()).is_ok()).count();
        assert_eq!(own, limits::STDIO_OWN_QUEUE);
        for _ in 0..limits::STDIO_QUEUE {
            assert_eq!(lines.next().await.unwrap().line, "client");
        }
        waiting.await.unwrap();
        for _ in 0..own {
            assert_eq!(lines.next().await.unwrap().line, "own");
        }
        assert_eq!(lines.next().await.unwrap().line, "late");
        assert_eq!(queue.push(Vec::new()), Ok(()), "reading makes room");
        drop(lines);
        assert_eq!(
            (queue.put(Vec::new(), None).await, queue.push(Vec::new())),
            (Err(NotQueued), Err(NotQueued))
        );
    }

    #[tokio::test]
    async fn a_line_takes_its_share_until_the_server_has_read_it() {
        let memory = Budget::new(1 << 20);
        let is_free = || memory.take(1 << 20).is_ok();
        let (queue, mut lines) = queue();
        queue.put(vec![b'x'; 1 << 20], memory.take(1 << 20).ok()).await.unwrap();
        assert!(!is_free(), "also if its client has left");
        let written = lines.next().await.unwrap();
        assert!(!is_free());
        drop(written);
        assert!(is_free());
    }
}
