//! Temporary folders.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio, id},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context, Result};

/// Waits like the guards of [`crate::process`], then for these to end, and removes the folder.
const JANITOR: &str = r#"
trap '' INT TERM HUP
cat
while ! rm -rf "$1" 2>/dev/null; do sleep 0.2; done
"#;

/// A folder for the files of one control plane, or of one Redis.
pub(crate) struct Scratch {
    path: PathBuf,
    janitor: Child,
}

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("skep-test-{}-{number}", id()));
        fs::create_dir(&path).with_context(|| format!("cannot create the folder {path:?}"))?;
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start sh")?;
        Ok(Self { path, janitor })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        self.janitor.wait().ok();
    }
}
