//! The last calls of an endpoint, and how many there are, for people who watch it.
//!
//! A call is recorded when its response has ended. Those who watch look from time to time at what is kept: nothing wakes them,
//! and no call waits for them, however many they are. One who is too slow misses calls. Neither arguments nor results are
//! recorded. Of users of an authorization server, their connections to providers are shown as well.

mod connections;
mod page;
mod traffic;

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::telemetry::{Failure, failure};
use crate::{
    http::{Ended, Observer},
    limits,
    message::Exchange,
    truncate::truncate,
};
use connections::Known;
pub use page::{CALLS_EVENT, CONNECTIONS_EVENT, COUNTS_EVENT, CallsPage};
use traffic::Counters;
pub use traffic::{Counts, Traffic};

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Its number, from 1 on, in the order in which calls ended.
    pub id: u64,
    /// When it began.
    pub time: Timestamp,
    /// The method of MCP, or of HTTP if there is no message.
    pub method: Box<str>,
    /// What it names: a tool, a prompt, or a resource.
    pub target: Box<str>,
    /// The subject of the caller. Empty if the caller was not authenticated.
    pub caller: Box<str>,
    /// The status of the response. None if the client did not wait for it.
    pub status: Option<u16>,
    /// The code of a JSON-RPC error.
    pub error: Option<i64>,
    /// Whether it failed, in whatever way.
    pub failed: bool,
    /// How long it took, in milliseconds.
    pub ms: f64,
    /// The middleware that responded, by its type. Empty if it was the server.
    pub decided_by: Cow<'static, str>,
}

/// The calls of an endpoint.
pub struct CallLog {
    /// The number of the last call.
    number: AtomicU64,
    recorded: Mutex<Recorded>,
    connections: Known,
}

struct Recorded {
    last: VecDeque<Arc<Call>>,
    counters: Counters,
    /// What other processes have counted, by their addresses.
    others: BTreeMap<String, Counts>,
}

impl CallLog {
    /// A log without calls.
    pub fn new() -> Self {
        let counters = Counters::new(Instant::now());
        let recorded = Recorded { last: VecDeque::new(), counters, others: BTreeMap::new() };
        Self { number: AtomicU64::new(0), recorded: Mutex::new(recorded), connections: Known::default() }
    }

    /// The last calls, oldest first.
    pub fn last(&self) -> Vec<Arc<Call>> {
        self.lock().last.iter().cloned().collect()
    }

    /// The calls after the one of this number, oldest first, as far as they are kept.
    pub fn since(&self, number: u64) -> Vec<Arc<Call>> {
        if self.number() == number {
            return Vec::new();
        }
        let recorded = self.lock();
        let start = recorded.last.partition_point(|call| call.id <= number);
        recorded.last.range(start..).cloned().collect()
    }

    /// The number of the last call.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// The calls of the last minute.
    pub fn traffic(&self) -> Traffic {
        let mut recorded = self.lock();
        let own = recorded.counters.counts(Instant::now());
        Traffic::of(recorded.others.values().chain([&own]))
    }

    /// The same as it is counted here.
    pub fn counts(&self) -> Counts {
        self.lock().counters.counts(Instant::now())
    }

    /// Adds a call that another process has recorded, and may have made up.
    pub fn add(&self, call: Call) {
        let cut = |text: &str| Box::from(&*truncate(text));
        let Call { method, target, caller, decided_by, .. } = &call;
        let (method, target, caller) = (cut(method), cut(target), cut(caller));
        let decided_by = truncate(decided_by).into_owned().into();
        self.push(&mut self.lock(), Call { method, target, caller, decided_by, ..call });
    }

    /// What another process has counted, or that it has ended.
    pub fn set_counts(&self, process: &str, counts: Option<Counts>) {
        let others = &mut self.lock().others;
        match counts {
            Some(counts) => others.insert(process.to_owned(), counts),
            None => others.remove(process),
        };
    }

    fn record(&self, call: Call, duration: Duration) {
        let mut recorded = self.lock();
        recorded.counters.record(Instant::now(), duration, call.failed);
        self.push(&mut recorded, call);
    }

    fn push(&self, recorded: &mut Recorded, mut call: Call) {
        // Written by the holder of the lock alone.
        call.id = self.number() + 1;
        if recorded.last.len() == limits::LAST_CALLS {
            recorded.last.pop_front();
        }
        self.number.store(call.id, Ordering::Relaxed);
        recorded.last.push_back(Arc::new(call));
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for CallLog {
    fn default() -> Self {
        Self::new()
    }
}

/// The call log as a part of the chain.
pub(crate) struct Calls(pub(super) Arc<CallLog>);

impl Calls {
    /// Records the call when its response has ended. A stream that only the client ends is none.
    pub(super) fn observer(&self, exchange: &Exchange, status: StatusCode) -> Option<Box<dyn Observer>> {
        (!(exchange.listens() && status.is_success())).then(|| {
            Box::new(Pending { log: self.0.clone(), call: call(exchange), started: exchange.started }) as _
        })
    }

    /// Records a call whose client disconnected before the response.
    pub(super) fn abandoned(&self, exchange: &Exchange) {
        let duration = exchange.started.elapsed();
        self.0.record(Call { failed: true, ms: milliseconds(duration), ..call(exchange) }, duration);
    }
}

/// A call whose response is in flight.
struct Pending {
    log: Arc<CallLog>,
    call: Call,
    started: Instant,
}

impl Observer for Pending {
    fn prefix(&self) -> usize {
        limits::PARSED_PREFIX
    }

    fn ended(self: Box<Self>, end: Ended) {
        let Self { log, call, started } = *self;
        let (failure, duration) = (failure(&end), started.elapsed());
        let error = match failure {
            Some(Failure::Rpc(code)) => Some(code),
            _ => None,
        };
        let ms = milliseconds(duration);
        let call = Call { status: Some(end.status.as_u16()), error, failed: failure.is_some(), ms, ..call };
        log.record(call, duration);
    }
}

/// What is known before the response.
fn call(exchange: &Exchange) -> Call {
    let message = exchange.message.as_ref();
    let method = message.map_or(exchange.method.as_str(), |message| message.method_name.as_str());
    let target = message.and_then(|message| message.target.as_deref()).unwrap_or_default();
    let caller = exchange.caller.identity.as_ref().filter(|identity| !identity.is_local);
    let elapsed = exchange.started.elapsed();
    Call {
        id: 0,
        time: Timestamp::now().saturating_sub(elapsed).unwrap_or_default(),
        method: truncate(method).into(),
        target: truncate(target).into(),
        caller: caller.map(|identity| truncate(&identity.subject).into()).unwrap_or_default(),
        status: None,
        error: None,
        failed: false,
        ms: 0.0,
        decided_by: exchange.rejected_by.unwrap_or_default().into(),
    }
}

/// Rounded to microseconds, so that it is short as text.
fn milliseconds(duration: Duration) -> f64 {
    f64::from(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)) / 1000.0
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn call(target: &str) -> Call {
        Call {
            id: 0,
            time: Timestamp::UNIX_EPOCH,
            method: "tools/call".into(),
            target: target.into(),
            caller: "alice".into(),
            status: Some(200),
            error: None,
            failed: false,
            ms: 1.5,
            decided_by: "".into(),
        }
    }

    #[test]
    fn the_last_calls_are_kept_and_one_who_looks_late_misses_the_others() {
        let log = CallLog::new();
        let count = 3 * limits::LAST_CALLS as u64;
        for number in 1..=count {
            log.record(call(&number.to_string()), Duration::from_millis(1));
        }
        let ids = |calls: Vec<Arc<Call>>| calls.iter().map(|call| call.id).collect::<Vec<_>>();
        let kept: Vec<_> = (count - limits::LAST_CALLS as u64 + 1..=count).collect();
        assert_eq!(ids(log.last()), kept);
        assert_eq!(ids(log.since(0)), kept);
        assert_eq!(ids(log.since(count - 2)), [count - 1, count]);
        assert!(log.since(count).is_empty());
    }

    #[test]
    fn calls_of_other_processes_are_numbered_here_and_their_texts_are_bounded() {
        let log = CallLog::new();
        log.record(call("own"), Duration::from_millis(1));
        log.add(Call { id: 77, ..call(&"x".repeat(1 << 20)) });
        let last = log.last();
        assert_eq!(last.iter().map(|call| call.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(last[1].target.len(), limits::LABEL_BYTES);
        // It is not counted here: the other process does.
        let before = log.traffic().per_second;
        log.set_counts("other", Some(log.counts()));
        assert_eq!(log.traffic().per_second, 2.0 * before);
        log.set_counts("other", None);
        assert_eq!(log.traffic().per_second, before);
    }

    #[test]
    fn a_call_is_written_as_the_page_reads_it() {
        let json = serde_json::to_value(call("echo")).unwrap();
        let expected = serde_json::json!({
            "id": 0, "time": "1970-01-01T00:00:00Z", "method": "tools/call", "target": "echo", "caller": "alice",
            "status": 200, "error": null, "failed": false, "ms": 1.5, "decidedBy": "",
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<Call>(json).unwrap(), call("echo"));
    }
}
