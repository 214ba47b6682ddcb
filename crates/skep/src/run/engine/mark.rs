//! What tells the containers of this process from those of others, and from those that nobody wants any more.

use std::{io, path::Path};

use super::super::folder::{self, Folder};

/// The label with the machine that a container was started from.
pub(super) const HOST: &str = "dev.skep.run.host";
/// The label with the file that is locked for as long as the container is wanted.
pub(super) const LOCK: &str = "dev.skep.run.lock";

/// The locked file of a folder. It goes with this value, and the lock goes with the process in any case.
pub(super) struct Mark {
    lock: String,
    host: String,
    _folder: Folder,
}

impl Mark {
    pub(super) fn new() -> io::Result<Self> {
        let folder = Folder::new()?;
        let lock = folder.lock().to_string_lossy().into_owned();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self { lock, host, _folder: folder })
    }

    pub(super) fn lock(&self) -> &str {
        &self.lock
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Whether nobody wants the containers with this file any more.
    pub(super) fn is_left(&self, lock: &str) -> bool {
        !lock.is_empty() && lock != self.lock && folder::is_left(Path::new(lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_left_when_it_is_gone() {
        let (mine, other) = (Mark::new().unwrap(), Mark::new().unwrap());
        let lock = other.lock().to_owned();
        assert!(!mine.is_left(mine.lock()), "its own");
        assert!(!mine.is_left(""), "none");
        assert!(!mine.is_left(&lock), "it is held");
        drop(other);
        assert!(mine.is_left(&lock));
    }
}
