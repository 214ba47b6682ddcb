//! A folder of one's own for as long as it is needed.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// What the names of all folders begin with.
const PREFIX: &str = "skep-run-";

/// The folder, which only its user can look into, and which goes with this value.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                // Somebody else's, or of a process that had the same number and was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path)),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Where a file is here that has this absolute path in a pod.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        let names =
            Path::new(path).components().filter(|name| matches!(name, std::path::Component::Normal(_)));
        self.0.join(names.collect::<PathBuf>())
    }

    pub(super) fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let place = self.place(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(place, content)
    }

    /// Writes what somebody else is to read to whom this very file is given: nobody comes to it through the folder.
    pub(super) fn write_for_others(&self, path: &str, content: &[u8]) -> io::Result<()> {
        self.write(path, content)?;
        fs::set_permissions(self.place(path), Permissions::from_mode(0o644))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Whether this is the folder of some process of this program.
pub(super) fn is_ours(path: &Path) -> bool {
    path.parent() == Some(&std::env::temp_dir())
        && path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
}
