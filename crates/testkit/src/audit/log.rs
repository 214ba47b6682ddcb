//! The file that the API server writes.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The name of the log in the folder of a control plane.
pub(crate) const LOG: &str = "audit.log";
/// The line after the last one of an API server that has ended: what it did not complete, it never will.
const ENDED: &str = "ended";
/// An API server ends a request after a minute.
const COMPLETE_WITHIN: Duration = Duration::from_secs(90);

/// Creates the log of a control plane.
pub(crate) fn create(folder: &Path) -> std::io::Result<()> {
    fs::write(folder.join(LOG), "")
}

/// Records that the API server has ended.
pub(crate) fn record_end(folder: &Path) {
    let mut log = File::options().append(true).open(folder.join(LOG)).expect("the audit log");
    // Its last line may be half written.
    write!(log, "\n{ENDED}\n").expect("the audit log can be written");
}

/// The audit log from some point on.
pub(super) struct Log {
    file: PathBuf,
    start: u64,
}

impl Log {
    /// The log of the control plane with this folder, from now on.
    pub(super) fn start(folder: &Path) -> Self {
        let file = folder.join(LOG);
        let start = file.metadata().expect("the audit log").len();
        Self { file, start }
    }

    /// The lines of all requests whose effects can be seen until now.
    pub(super) async fn lines(&self) -> Vec<String> {
        lines(&self.complete().await)
    }

    /// The same, once: the next call returns what comes after.
    pub(super) async fn take_lines(&mut self) -> Vec<String> {
        let bytes = self.complete().await;
        self.start += bytes.len() as u64;
        lines(&bytes)
    }

    /// The API server logs a write before it starts and when it is complete, and anything before its response ends. So nothing is missing
    /// once all that has started is complete.
    async fn complete(&self) -> Vec<u8> {
        let deadline = Instant::now() + COMPLETE_WITHIN;
        let mut bytes = self.read();
        let started = incomplete(&lines(&bytes));
        while !incomplete(&lines(&bytes)).is_disjoint(&started) {
            assert!(Instant::now() < deadline, "the API server does not complete a write");
            tokio::time::sleep(Duration::from_millis(2)).await;
            bytes = self.read();
        }
        bytes
    }

    /// What is logged, but for a line that is half written.
    fn read(&self) -> Vec<u8> {
        let mut log = File::open(&self.file).expect("the audit log");
        log.seek(SeekFrom::Start(self.start)).expect("the audit log can be read from there");
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).expect("the audit log can be read");
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(end);
        bytes
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    // The first one may be a part of a line.
    String::from_utf8_lossy(bytes).lines().map(Into::into).collect()
}

/// The ids of the requests that have started and are not complete.
fn incomplete(lines: &[String]) -> HashSet<String> {
    let mut requests = HashSet::new();
    for line in lines {
        if line == ENDED {
            requests.clear();
        }
        // They are the first fields of each event.
        let (Some(id), Some(stage)) = (value(line, r#""auditID":""#), value(line, r#""stage":""#)) else {
            continue;
        };
        match stage {
            "RequestReceived" => {
                requests.insert(id.to_owned());
            }
            "ResponseComplete" | "Panic" => {
                requests.remove(id);
            }
            _ => {}
        }
    }
    requests
}

/// The text from there to the next quote.
fn value<'a>(line: &'a str, from: &str) -> Option<&'a str> {
    line.split_once(from)?.1.split('"').next()
}
