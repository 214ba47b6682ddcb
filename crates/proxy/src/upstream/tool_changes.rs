//! Announcements of other tools on the streams of clients that listen to a server.
//!
//! The proxy has no stream of its own for them. It looks for the name of the notification in what passes through, which is not
//! parsed here: a text that only mentions the name has the lists read once more, and no harm is done.

use futures::{Stream, StreamExt};
use memchr::memmem::Finder;
use tokio::sync::watch;

const NAME: &[u8] = b"notifications/tools/list_changed";

/// Counts the announcements.
#[derive(Clone)]
pub(super) struct ToolChanges(watch::Sender<u64>);

impl ToolChanges {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    /// The same stream, of which every piece is looked at.
    pub(super) fn counted<S, P, E>(&self, pieces: S) -> impl Stream<Item = S::Item> + use<S, P, E>
    where
        S: Stream<Item = Result<P, E>>,
        P: AsRef<[u8]>,
    {
        let (changes, mut search) = (self.0.clone(), Search::new());
        pieces.inspect(move |piece| {
            if piece.as_ref().is_ok_and(|piece| search.finds(piece.as_ref())) {
                changes.send_modify(|count| *count += 1);
            }
        })
    }
}

/// Looks for the name in a stream, also where it is in two pieces.
struct Search {
    finder: Finder<'static>,
    /// The end of what has been seen, in which the name may begin.
    tail: Vec<u8>,
}

impl Search {
    fn new() -> Self {
        Self { finder: Finder::new(NAME), tail: Vec::with_capacity(2 * NAME.len()) }
    }

    fn finds(&mut self, piece: &[u8]) -> bool {
        let (start, kept) = (&piece[..piece.len().min(NAME.len() - 1)], NAME.len() - 1);
        self.tail.extend_from_slice(start);
        let found = self.finder.find(&self.tail).is_some() || self.finder.find(piece).is_some();
        if piece.len() >= kept {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - kept..]);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(kept));
        }
        if found {
            // What was found is not found again with the next piece.
            self.tail.clear();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_found_wherever_a_stream_is_cut() {
        let text = [b"data: {\"method\":\"", NAME, b"\"}\n\n: and more, until nothing is left"].concat();
        for size in 1..text.len() {
            let mut search = Search::new();
            let found = text.chunks(size).filter(|piece| search.finds(piece)).count();
            assert_eq!(found, 1, "in pieces of {size}");
        }
        let mut search = Search::new();
        assert!(!search.finds(b"notifications/tools/list") && !search.finds(b" and not _changed"));
        assert!(!search.finds(b"notifications/prompts/list_changed"));
        assert!(search.finds(&text) && search.finds(&text));
    }
}
