//! The last calls of an endpoint, and how many there are, for people who watch it.
//!
//! A call is recorded when its response has ended. Nothing waits for those who watch: one who is too slow loses calls, and
//! learns how many. Neither arguments nor results are recorded.

mod traffic;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::broadcast;

use super::telemetry::{Failure, failure};
use crate::{
    http::{Ended, Observer},
    limits,
    message::Exchange,
    truncate::truncate,
};
use traffic::Counters;
pub use traffic::Traffic;

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    pub decided_by: &'static str,
}

/// The calls of an endpoint.
pub struct CallLog {
    recorded: Mutex<Recorded>,
    watchers: broadcast::Sender<Arc<Call>>,
}

struct Recorded {
    last: VecDeque<Arc<Call>>,
    number: u64,
    counters: Counters,
}

impl CallLog {
    /// A log without calls.
    pub fn new() -> Self {
        let recorded = Recorded { last: VecDeque::new(), number: 0, counters: Counters::new(Instant::now()) };
        Self { recorded: Mutex::new(recorded), watchers: broadcast::Sender::new(limits::LAST_CALLS) }
    }

    /// The last calls, oldest first.
    pub fn last(&self) -> Vec<Arc<Call>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).last.iter().cloned().collect()
    }

    /// The calls from now on.
    pub fn watch(&self) -> broadcast::Receiver<Arc<Call>> {
        self.watchers.subscribe()
    }

    /// The calls of the last minute.
    pub fn traffic(&self) -> Traffic {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).counters.traffic(Instant::now())
    }

    fn record(&self, mut call: Call, duration: Duration) {
        let call = {
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.number += 1;
            call.id = recorded.number;
            recorded.counters.record(Instant::now(), duration, call.failed);
            let call = Arc::new(call);
            if recorded.last.len() == limits::LAST_CALLS {
                recorded.last.pop_front();
            }
            recorded.last.push_back(call.clone());
            call
        };
        if self.watchers.receiver_count() > 0 {
            // All watchers may have left meanwhile.
            self.watchers.send(call).ok();
        }
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
    let caller = exchange.identity.as_ref().filter(|identity| !identity.is_local);
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
        decided_by: exchange.rejected_by.unwrap_or_default(),
    }
}

/// Rounded to microseconds, so that it is short as text.
fn milliseconds(duration: Duration) -> f64 {
    f64::from(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)) / 1000.0
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast::error::TryRecvError;

    use super::*;

    fn call(target: &str) -> Call {
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
            decided_by: "",
        }
    }

    #[test]
    fn the_last_calls_are_kept_and_one_who_does_not_read_delays_none() {
        let log = CallLog::new();
        let (mut slow, count) = (log.watch(), 3 * limits::LAST_CALLS as u64);
        for number in 1..=count {
            log.record(call(&number.to_string()), Duration::from_millis(1));
        }
        let last = log.last();
        assert_eq!((last.len(), last.last().map(|call| call.id)), (limits::LAST_CALLS, Some(count)));
        assert_eq!(slow.try_recv().unwrap_err(), TryRecvError::Lagged(count - limits::LAST_CALLS as u64));
        assert_eq!(slow.try_recv().unwrap().id, count - limits::LAST_CALLS as u64 + 1);
    }

    #[test]
    fn a_call_is_written_as_the_page_reads_it() {
        let json = serde_json::to_value(call("echo")).unwrap();
        let expected = serde_json::json!({
            "id": 0, "time": "1970-01-01T00:00:00Z", "method": "tools/call", "target": "echo", "caller": "alice",
            "status": 200, "error": null, "failed": false, "ms": 1.5, "decidedBy": "",
        });
        assert_eq!(json, expected);
    }
}
