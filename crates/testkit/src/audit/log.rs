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
/// How much of a line has the id and the stage of a request. It is ASCII.
const HEAD: usize = 192;
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
        let mut log = Self { file: folder.join(LOG), start: 0 };
        log.start = log.end_of_the_last_line();
        log
    }

    /// The API server may be writing a line.
    fn end_of_the_last_line(&self) -> u64 {
        const TAIL: u64 = 1 << 20;
        let mut log = File::open(&self.file).expect("the audit log");
        let length = log.metadata().expect("its length").len();
        let from = length.saturating_sub(TAIL);
        log.seek(SeekFrom::Start(from)).expect("the audit log can be read from there");
        let mut tail = Vec::new();
        log.take(length - from).read_to_end(&mut tail).expect("the audit log can be read");
        tail.iter().rposition(|byte| *byte == b'\n').map_or(from, |end| from + end as u64 + 1)
    }

    /// The lines of all requests whose effects can be seen until now.
    pub(super) async fn lines(&self) -> Vec<String> {
        self.complete().await.lines().map(Into::into).collect()
    }

    /// The same, once: the next call returns what comes after.
    pub(super) async fn take_lines(&mut self) -> Vec<String> {
        let text = self.complete().await;
        self.start += text.len() as u64;
        text.lines().map(Into::into).collect()
    }

    /// The API server logs a write before it starts and when it is complete, and anything before its response ends. So nothing is missing
    /// once all that has started is complete.
    async fn complete(&self) -> String {
        let deadline = Instant::now() + COMPLETE_WITHIN;
        let mut text = self.read();
        let started: HashSet<String> = incomplete(&text).into_iter().map(Into::into).collect();
        while incomplete(&text).into_iter().any(|request| started.contains(request)) {
            assert!(Instant::now() < deadline, "the API server does not complete a write");
            tokio::time::sleep(Duration::from_millis(2)).await;
            text = self.read();
        }
        text
    }

    /// What is logged, but for a line that is half written.
    fn read(&self) -> String {
        let mut log = File::open(&self.file).expect("the audit log");
        log.seek(SeekFrom::Start(self.start)).expect("the audit log can be read from there");
        let mut bytes = Vec::new();
        log.read_to_end(&mut bytes).expect("the audit log can be read");
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(end);
        String::from_utf8(bytes).expect("the audit log is text, from the start of a line on")
    }
}

/// The ids of the requests that have started and are not complete.
fn incomplete(text: &str) -> HashSet<&str> {
    let mut requests = HashSet::new();
    for line in text.lines() {
        if line == ENDED {
            requests.clear();
        }
        match id_and_stage(line) {
            Some((id, "RequestReceived")) => {
                requests.insert(id);
            }
            Some((id, "ResponseComplete" | "Panic")) => {
                requests.remove(id);
            }
            _ => {}
        }
    }
    requests
}

/// They are the first fields of an event, and the only ones that are read of most: the rest may be long.
fn id_and_stage(line: &str) -> Option<(&str, &str)> {
    let head = line.get(..HEAD)?;
    let value = |name: &str| head.split_once(name)?.1.split('"').next();
    Some((value(r#""auditID":""#)?, value(r#""stage":""#)?))
}
