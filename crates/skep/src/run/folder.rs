//! Private folders of a run.
//!
//! Each contains a file that is locked while the folder is in use. A folder whose file is not locked belongs to a process that was
//! killed, and the next process removes it.

use std::{
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::state;

/// The prefix of the names of all folders.
const PREFIX: &str = "skep-run-";
/// The name of the locked file. It gets this name once it is locked.
const LOCK: &str = "lock";

/// A folder that only its user can read. It is removed when this value is dropped.
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        Self::within(&state::files())
    }

    fn within(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                // Of another user, or of a killed process with the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            let new = path.join("new-lock");
            let lock = File::create(&new)?;
            lock.lock()?;
            fs::rename(new, path.join(LOCK))?;
            return Ok(Self { path, _lock: lock });
        }
    }

    /// The locked file.
    pub(super) fn lock(&self) -> PathBuf {
        self.path.join(LOCK)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The local path of a file with this absolute path in a pod.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        let names =
            Path::new(path).components().filter(|name| matches!(name, std::path::Component::Normal(_)));
        self.path.join(names.collect::<PathBuf>())
    }

    pub(super) fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let place = self.place(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(place, content)
    }

    /// Writes a file that another user may read if it is bind-mounted: the folder itself is not accessible.
    pub(super) fn write_for_others(&self, path: &str, content: &[u8]) -> io::Result<()> {
        self.write(path, content)?;
        fs::set_permissions(self.place(path), Permissions::from_mode(0o644))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.path).ok();
    }
}

/// Whether no process holds the lock of a folder any more. A lock that cannot be opened belongs to another user.
pub(super) fn is_abandoned(lock: &Path) -> bool {
    match File::open(lock) {
        Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes the folders of processes that have ended.
pub(super) fn remove_leftovers() {
    remove_leftovers_within(&state::files());
}

fn remove_leftovers_within(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let lock = entry.path().join(LOCK);
        // A folder without the file is being created, or is something else.
        if is_ours && lock.exists() && is_abandoned(&lock) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_folder_is_removed() {
        let parent = Folder::within(&std::env::temp_dir()).unwrap();
        let (held, abandoned) =
            (Folder::within(parent.path()).unwrap(), Folder::within(parent.path()).unwrap());
        let lock = abandoned.lock();
        assert!(!is_abandoned(&lock), "it is held");
        drop(abandoned);
        assert!(is_abandoned(&lock), "its lock is released");
        // After a kill, the folder stays and the file is not locked. The other folders have no such file or name.
        let folder = |name: &str, file: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            File::create(path.join(file)).unwrap();
            path
        };
        let killed = folder("skep-run-1-0", LOCK);
        let (new, other) = (folder("skep-run-1-1", "new-lock"), folder("other", LOCK));
        assert!(is_abandoned(&killed.join(LOCK)));
        remove_leftovers_within(parent.path());
        let there = [held.path(), &killed, &new, &other].map(Path::exists);
        assert_eq!(there, [true, false, true, true]);
    }
}
