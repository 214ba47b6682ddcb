//! The endpoints for messages that a server of 2024 has announced on its open streams.
//!
//! Requests to a remote server carry credentials of the proxy. So messages are sent to these endpoints only: a caller that
//! chose the path could use the credentials for anything at the server's host.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The longest path that is remembered.
const LONGEST: usize = 1024;

/// The announced paths, each with the number of streams that announced it.
#[derive(Clone, Default)]
pub(super) struct Announced(Arc<Mutex<HashMap<Box<str>, usize>>>);

/// A path that is announced for as long as this exists.
pub(super) struct Announcement {
    announced: Announced,
    path: Box<str>,
}

impl Announced {
    /// Announces a path. There are as many as there are streams.
    pub(super) fn add(&self, path: &str) -> Option<Announcement> {
        if path.len() > LONGEST {
            return None;
        }
        *self.lock().entry(path.into()).or_default() += 1;
        Some(Announcement { announced: self.clone(), path: path.into() })
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        self.lock().contains_key(path)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let mut paths = self.announced.lock();
        if let Some(streams) = paths.get_mut(&self.path) {
            *streams -= 1;
            if *streams == 0 {
                paths.remove(&self.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_announced_for_as_long_as_one_of_its_streams_is_open() {
        let announced = Announced::default();
        let (one, other) = (announced.add("/messages"), announced.add("/messages"));
        drop(one);
        assert!(announced.contains("/messages") && !announced.contains("/api"));
        drop(other);
        assert!(!announced.contains("/messages") && announced.lock().is_empty());
        assert!(announced.add(&"/x".repeat(LONGEST)).is_none());
    }
}
