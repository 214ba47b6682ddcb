//! What tells the containers of this process from those of others, and from those that nobody wants any more.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use super::super::folder::{self, Folder};

/// The label with the machine that a container was started from.
pub(super) const HOST: &str = "dev.skep.run.host";
/// The label with the file that is locked for as long as the container is wanted.
pub(super) const LOCK: &str = "dev.skep.run.lock";

const FILE: &str = "lock";

/// A locked file in a folder of its own. Both go with this value, and the lock goes with the process in any case.
pub(super) struct Mark {
    lock: String,
    host: String,
    _file: File,
    _folder: Folder,
}

impl Mark {
    pub(super) fn new() -> io::Result<Self> {
        let folder = Folder::new()?;
        let path = folder.place(FILE);
        let file = File::create(&path)?;
        file.lock()?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Ok(Self { lock: path.to_string_lossy().into_owned(), host, _file: file, _folder: folder })
    }

    pub(super) fn lock(&self) -> &str {
        &self.lock
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Whether nobody holds this file of another process any more. One that cannot be looked at is somebody else's.
    pub(super) fn is_left(&self, lock: &str) -> bool {
        if lock.is_empty() || lock == self.lock {
            return false;
        }
        match File::open(lock) {
            Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// Removes the file of a process that is gone, with its folder.
pub(super) fn forget(lock: &str) {
    let folder = Path::new(lock).parent().filter(|path| folder::is_ours(path));
    if let Some(folder) = folder {
        fs::remove_dir_all(folder).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_left_when_its_process_is_gone() {
        let (mine, other) = (Mark::new().unwrap(), Mark::new().unwrap());
        let lock = other.lock().to_owned();
        assert!(!mine.is_left(mine.lock()), "its own");
        assert!(!mine.is_left(&lock), "it is held");
        drop(other);
        assert!(mine.is_left(&lock), "its folder is gone");
        // As when a process is killed: the folder stays, and nobody holds the file.
        let killed = Folder::new().unwrap();
        let lock = killed.place(FILE);
        File::create(&lock).unwrap();
        let lock = lock.to_str().unwrap();
        assert!(mine.is_left(lock));
        forget(lock);
        assert!(!Path::new(lock).exists());
    }
}
