//! All runs of a user. Each has a folder with a file that it locks, its state, and its log if it runs in the background.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
    time::{Duration, Instant},
};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::{record::ServerRecord, state};

/// The name of the locked file.
const LOCK: &str = "lock";
/// The name of the file with the state.
const STATE: &str = "state.json";
/// The name of the file with the output.
const LOG: &str = "log";
/// How long a run in the background waits for its lock, which the process that started it still has.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the lock is tried.
const PAUSE: Duration = Duration::from_millis(50);

/// A run, as `skep ls` shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunRecord {
    pub(super) name: String,
    pub(super) pid: u32,
    /// Whether it runs in the background.
    pub(super) detached: bool,
    /// When it was started.
    pub(super) started: String,
    /// The files, packages and images that it runs.
    pub(super) sources: Vec<String>,
    /// The address of its console, with the token in it. The folder is the user's alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) console: String,
    pub(super) servers: Vec<ServerRecord>,
}

/// The folder of this run. Nothing is left of a run in the foreground.
pub(super) struct RunFolder {
    path: PathBuf,
    _lock: File,
    record: RunRecord,
}

impl RunFolder {
    /// Takes a folder for a run in the foreground, with a number after its name if another run has it.
    pub(super) fn take(name: &str, sources: &[String]) -> io::Result<Self> {
        Self::first_free(name, |name| {
            // The log of a run in the background is kept until the user removes it.
            let has_log = state::runs().join(name).join(LOG).exists();
            if has_log { Ok(None) } else { Self::try_take(name, sources) }
        })
    }

    /// Takes a folder for a run in the background, in place of one of the same name that has ended.
    pub(super) fn prepare(name: &str, sources: &[String]) -> io::Result<Self> {
        Self::first_free(name, |name| Self::try_take(name, sources))
    }

    fn first_free(name: &str, take: impl Fn(&str) -> io::Result<Option<Self>>) -> io::Result<Self> {
        remove_abandoned();
        let numbered = (2u32..).map(|number| format!("{name}-{number}"));
        let mut names = [name.to_owned()].into_iter().chain(numbered);
        names
            .find_map(|name| take(&name).transpose())
            .unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
    }

    /// Takes the folder that another process has prepared for this run in the background.
    pub(super) fn resume(name: &str, sources: &[String]) -> io::Result<Self> {
        let start = Instant::now();
        loop {
            if let Some(mut folder) = Self::try_take(name, sources)? {
                folder.record.detached = true;
                return Ok(folder);
            }
            if start.elapsed() > PATIENCE {
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    format!("another run has the name {name}"),
                ));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_take(name: &str, sources: &[String]) -> io::Result<Option<Self>> {
        let path = state::runs().join(name);
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        let opened = File::options().create(true).truncate(false).write(true).open(path.join(LOCK));
        let lock = match opened {
            // Another process has taken it for an abandoned one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::try_take(name, sources),
            opened => opened?,
        };
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            locked => locked?,
        }
        // Its last owner may have removed it in the meantime.
        let is_same = fs::metadata(path.join(LOCK))
            .is_ok_and(|now| lock.metadata().is_ok_and(|own| own.ino() == now.ino()));
        if !is_same {
            return Self::try_take(name, sources);
        }
        let record = RunRecord {
            name: name.to_owned(),
            pid: process::id(),
            detached: false,
            started: jiff::Timestamp::now().to_string(),
            sources: sources.to_vec(),
            console: String::new(),
            servers: Vec::new(),
        };
        Ok(Some(Self { path, _lock: lock, record }))
    }

    pub(super) fn name(&self) -> &str {
        &self.record.name
    }

    /// The same for a run with this console.
    pub(super) fn with_console(mut self, url: &str) -> Self {
        url.clone_into(&mut self.record.console);
        self
    }

    /// Whether it is in the background.
    pub(super) fn is_detached(&self) -> bool {
        self.record.detached
    }

    /// A new log.
    pub(super) fn create_log(&self) -> io::Result<File> {
        fs::remove_file(self.path.join(STATE)).ok();
        File::create(self.path.join(LOG))
    }

    /// Leaves the folder to a run in the background, which waits for it.
    pub(super) fn hand_over(mut self) -> Run {
        self.record.detached = true;
        Run { path: self.path.clone() }
    }

    /// Stores the states of the servers.
    pub(super) fn write(&mut self, servers: Vec<ServerRecord>) {
        if servers == self.record.servers {
            return;
        }
        self.record.servers = servers;
        // Replaced at once, so that no reader sees half of it. Without it, only `skep ls` is out of date.
        let new = self.path.join("new-state.json");
        let text = serde_json::to_vec(&self.record).unwrap_or_default();
        fs::write(&new, text).and_then(|()| fs::rename(new, self.path.join(STATE))).ok();
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.record.detached {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

/// Some run, which may have ended.
pub(super) struct Run {
    path: PathBuf,
}

impl Run {
    /// All runs, sorted by name.
    pub(super) fn all() -> Vec<Self> {
        let entries = fs::read_dir(state::runs()).into_iter().flatten().flatten();
        let mut runs: Vec<Self> = entries.map(|entry| Self { path: entry.path() }).collect();
        runs.sort_by(|one, other| one.path.cmp(&other.path));
        runs
    }

    pub(super) fn find(name: &str) -> anyhow::Result<Self> {
        let run = Self::all().into_iter().find(|run| run.path.file_name().is_some_and(|own| own == name));
        run.with_context(|| format!("there is no run {name}: skep ls --all lists all"))
    }

    /// Its state, once it has one.
    pub(super) fn record(&self) -> Option<RunRecord> {
        serde_json::from_slice(&fs::read(self.path.join(STATE)).ok()?).ok()
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    pub(super) fn is_running(&self) -> bool {
        is_locked(&self.path)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

fn is_locked(folder: &Path) -> bool {
    let lock = File::open(folder.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Removes what is left of killed runs in the foreground. Others have a log that the user may read.
fn remove_abandoned() {
    for run in Run::all() {
        if !run.is_running() && !run.log().exists() {
            run.remove().ok();
        }
    }
}
