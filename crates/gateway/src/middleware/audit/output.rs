//! Writing the log, by a thread of its own: a pipe that is not read, or a disk that hangs, must freeze no request.
//!
//! Entries wait in a bounded queue. While it is full, entries are lost; they are counted, and once there is room again,
//! an entry of the type `audit_entries_lost` has their number.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::error;

use crate::{faults, limits};

/// The queue.
pub(super) struct Output {
    lines: SyncSender<String>,
    queued: Arc<Queued>,
}

#[derive(Default)]
struct Queued {
    lines: AtomicUsize,
    bytes: AtomicUsize,
    /// Entries that found no room since the last one that did.
    lost: AtomicU64,
}

impl Output {
    pub(super) fn new(output: Box<dyn Write + Send>) -> std::io::Result<Self> {
        let (lines, received) = sync_channel(limits::AUDIT_ENTRIES);
        let queued = Arc::<Queued>::default();
        let thread = thread::Builder::new().name("audit-log".into());
        thread.spawn({
            let queued = queued.clone();
            move || write(output, &received, &queued)
        })?;
        Ok(Self { lines, queued })
    }

    /// Queues an entry. A log that cannot be written stops no request, and is reported in the log of the proxy.
    pub(super) fn write(&self, entry: &Value) {
        let lost = self.queued.lost.swap(0, Ordering::Relaxed);
        if lost > 0 && !self.queue(&lost_entries(lost)) {
            self.queued.lost.fetch_add(lost, Ordering::Relaxed);
        }
        if !self.queue(entry) {
            faults::AUDIT_ENTRIES_LOST.inc();
            if self.queued.lost.fetch_add(1, Ordering::Relaxed) == 0 {
                error!("audit entries are lost: the audit log is not written fast enough");
            }
        }
    }

    fn queue(&self, entry: &Value) -> bool {
        let mut line = entry.to_string();
        line.push('\n');
        let size = line.len();
        if self.queued.bytes.fetch_add(size, Ordering::Relaxed) + size > limits::AUDIT_BYTES {
            self.queued.bytes.fetch_sub(size, Ordering::Relaxed);
            return false;
        }
        self.queued.lines.fetch_add(1, Ordering::Relaxed);
        if self.lines.try_send(line).is_err() {
            self.queued.remove(size);
            return false;
        }
        true
    }

    /// Waits until all entries have been written, within a limit.
    pub(super) async fn flush(&self) {
        let deadline = Instant::now() + limits::FLUSH_TIME;
        while self.queued.lines.load(Ordering::Relaxed) > 0 {
            if Instant::now() > deadline {
                return error!("timeout writing the last audit entries");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Queued {
    fn remove(&self, size: usize) {
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        self.lines.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lost_entries(count: u64) -> Value {
    let now = Timestamp::now().to_string();
    json!({
        "time": now, "level": "AUDIT", "msg": "audit_event", "audit_id": uuid::Uuid::new_v4().to_string(),
        "type": "audit_entries_lost", "logged_at": now, "outcome": "error", "metadata": {"extra": {"count": count}},
    })
}

/// Writes entries until there will be none.
fn write(mut output: Box<dyn Write + Send>, lines: &Receiver<String>, queued: &Queued) {
    let mut is_failing = false;
    for line in lines {
        let written = output.write_all(line.as_bytes()).and_then(|()| output.flush());
        queued.remove(line.len());
        match written {
            Ok(()) => is_failing = false,
            Err(error) => {
                faults::AUDIT_ENTRIES_LOST.inc();
                if !is_failing {
                    error!(%error, "failed to write the audit log");
                }
                is_failing = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Condvar, Mutex},
    };

    use super::*;

    /// A pipe that is not read until it is opened.
    #[derive(Clone, Default)]
    struct Pipe(Arc<Shared>);

    #[derive(Default)]
    struct Shared {
        state: Mutex<State>,
        opened: Condvar,
    }

    #[derive(Default)]
    struct State {
        is_open: bool,
        written: Vec<u8>,
    }

    impl Pipe {
        fn open(&self) {
            self.0.state.lock().unwrap().is_open = true;
            self.0.opened.notify_all();
        }

        fn entries(&self) -> Vec<Value> {
            let text = String::from_utf8(self.0.state.lock().unwrap().written.clone()).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        }
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let Shared { state, opened } = &*self.0;
            let mut state = opened.wait_while(state.lock().unwrap(), |state| !state.is_open).unwrap();
            state.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_log_that_is_not_read_freezes_nothing_and_what_it_loses_is_counted() {
        let pipe = Pipe::default();
        let output = Output::new(Box::new(pipe.clone())).unwrap();
        let before = faults::AUDIT_ENTRIES_LOST.get();
        let written = limits::AUDIT_ENTRIES + 1_000;
        for number in 0..written {
            output.write(&json!({"number": number}));
        }
        pipe.open();
        output.flush().await;
        output.write(&json!({"number": "after"}));
        output.flush().await;
        let entries = pipe.entries();
        let kept = entries.iter().filter(|entry| entry["number"].is_u64()).count();
        let lost = faults::AUDIT_ENTRIES_LOST.get() - before;
        assert_eq!(kept as u64 + lost, written as u64);
        assert!(lost > 0);
        let [.., report, last] = &entries[..] else { panic!("{entries:?}") };
        assert_eq!(
            (&report["type"], &report["metadata"]["extra"]["count"]),
            (&json!("audit_entries_lost"), &json!(lost))
        );
        assert_eq!(last, &json!({"number": "after"}));
    }

    #[tokio::test]
    async fn the_size_of_queued_entries_is_bounded() {
        let pipe = Pipe::default();
        let output = Output::new(Box::new(pipe.clone())).unwrap();
        let large = json!({"data": "x".repeat(limits::AUDIT_BYTES / 3)});
        let queued = (0..10).take_while(|_| output.queue(&large)).count();
        assert_eq!(queued, 2);
        pipe.open();
        output.flush().await;
        assert!(output.queue(&large), "writing makes room");
        output.flush().await;
    }
}
