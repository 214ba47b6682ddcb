//! The configuration file of a client: a backup, and a replacement at once.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

/// The end of the name of a backup.
const BACKUP: &str = ".skep-backup";

/// A file with the text that it had.
pub(super) struct ConfigFile {
    path: PathBuf,
    pub(super) text: String,
}

impl ConfigFile {
    /// Reads it. A missing file is empty.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        // A link stays a link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let text = text_of(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { path, text })
    }

    /// Replaces the text, and keeps the previous one in a backup, whose path is returned.
    pub(super) fn replace(&self, text: &str) -> anyhow::Result<Option<PathBuf>> {
        let failed = || format!("cannot write {}", self.path.display());
        let new = self.beside(".skep-new");
        let mut file = File::create(&new).with_context(failed)?;
        let backup = self.path.exists().then(|| self.beside(BACKUP));
        if let Some(backup) = &backup {
            file.set_permissions(fs::metadata(&self.path)?.permissions()).with_context(failed)?;
            fs::copy(&self.path, backup).with_context(|| format!("cannot write {}", backup.display()))?;
        }
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
        let is_same = text_of(&self.path).is_ok_and(|now| now == self.text);
        if !is_same {
            fs::remove_file(&new).ok();
        }
        ensure!(is_same, "{} has just been changed by another program: try again", self.path.display());
        fs::rename(&new, &self.path).with_context(failed)?;
        Ok(backup)
    }

    fn beside(&self, end: &str) -> PathBuf {
        let mut name = OsString::from(self.path.file_name().unwrap_or_default());
        name.push(end);
        self.path.with_file_name(name)
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}
