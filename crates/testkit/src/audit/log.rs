//! The file that the API server writes.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use kube::Client;

use crate::User;

/// The name of the log in the folder of a control plane.
pub(crate) const LOG: &str = "audit.log";

/// The audit log from some point on.
pub(super) struct Log {
    file: PathBuf,
    folder: PathBuf,
    start: u64,
    admin: Arc<OnceLock<Client>>,
}

impl Log {
    /// The log of the control plane with this folder, from now on.
    pub(super) fn start(folder: &Path, admin: Arc<OnceLock<Client>>) -> Self {
        let mut log = Self { file: folder.join(LOG), folder: folder.into(), start: 0, admin };
        log.start = log.end();
        log
    }

    /// The lines of all requests that were answered until now.
    pub(super) async fn lines(&self) -> Vec<String> {
        // Twice: a request is logged right after its response, so one that was answered just before the first marker may
        // not be logged yet; it is when the second marker is.
        self.reach_marker().await;
        self.reach_marker().await;
        let text = self.read(self.start);
        // The last line may be half written.
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        text[..complete].lines().map(Into::into).collect()
    }

    /// The same, once: the next call returns what comes after.
    pub(super) async fn take_lines(&mut self) -> Vec<String> {
        let lines = self.lines().await;
        self.start += lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>();
        lines
    }

    /// Makes a request that differs from all others, and waits until it is logged.
    async fn reach_marker(&self) {
        static MARKERS: AtomicUsize = AtomicUsize::new(0);
        let name = format!("marker-{}-{}", process::id(), MARKERS.fetch_add(1, Ordering::Relaxed));
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        let from = self.end();
        let request = http::Request::get(&path).body(Vec::new()).expect("a request");
        let admin = self.admin.get_or_init(|| User::admin(&self.folder).client());
        // Not found, which is logged as well.
        admin.request_text(request).await.ok();
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.read(from).contains(&name) {
            assert!(Instant::now() < deadline, "the API server does not write its audit log");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn end(&self) -> u64 {
        self.file.metadata().expect("the audit log").len()
    }

    fn read(&self, from: u64) -> String {
        let mut log = File::open(&self.file).expect("the audit log");
        log.seek(SeekFrom::Start(from)).expect("the audit log can be read from there");
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).expect("the audit log can be read");
        // A character may be half written, in the last line alone.
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
