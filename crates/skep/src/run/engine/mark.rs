//! Labels that identify the containers of this process, and abandoned ones.

use std::{io, path::Path};

use super::super::folder::{self, Folder};

/// The label with the host that started a container.
pub(super) const HOST: &str = "dev.skep.run.host";
/// The label with the file that is locked while the container is in use.
pub(super) const LOCK: &str = "dev.skep.run.lock";

/// The locked file of a folder. It is removed with this value, and the lock ends with the process in any case.
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

    /// Whether the containers with this file are abandoned.
    pub(super) fn is_abandoned(&self, lock: &str) -> bool {
        !lock.is_empty() && lock != self.lock && folder::is_abandoned(Path::new(lock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_abandoned_when_it_is_dropped() {
        let (mine, other) = (Mark::new().unwrap(), Mark::new().unwrap());
        let lock = other.lock().to_owned();
        assert!(!mine.is_abandoned(mine.lock()), "its own");
        assert!(!mine.is_abandoned(""), "none");
        assert!(!mine.is_abandoned(&lock), "it is held");
        drop(other);
        assert!(mine.is_abandoned(&lock));
    }
}
