//! The stream of what changes.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use skep_gateway::{
    http::{Body, events},
    middleware::{Call, CallLog, Traffic},
};
use tokio::{
    sync::{
        OwnedSemaphorePermit,
        broadcast::{self, error::RecvError},
        watch,
    },
    time::{Instant, Interval, MissedTickBehavior, interval, timeout},
};
use tokio_stream::{
    StreamMap,
    wrappers::{BroadcastStream, errors::BroadcastStreamRecvError},
};

use super::Line;
use crate::{CallLogs, Console, Key, access::Viewer, limits, objects::Change, responses::error};

/// The stream for a request with this query.
pub(super) fn stream(console: &Console, viewer: Viewer, query: &str) -> Response<Body> {
    let Some(wanted) = Wanted::of(query) else {
        return error(StatusCode::BAD_REQUEST, "calls must be all, or KIND/NAMESPACE/NAME");
    };
    let Ok(place) = console.streams.clone().try_acquire_owned() else {
        return error(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: close one");
    };
    let mut ticks = interval(limits::TRAFFIC_TIME);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut closing = console.is_closing.subscribe();
    let mut state = State {
        changes: console.objects.changes(),
        versions: console.calls.versions(),
        logs: console.calls.clone(),
        viewer,
        wanted,
        calls: StreamMap::new(),
        backlog: VecDeque::new(),
        traffic: BTreeMap::new(),
        ticks,
        last: Instant::now(),
        _place: place,
    };
    state.listen();
    state.backlog = state.last_calls();
    let pieces = stream::unfold(state, |mut state| async {
        let piece = state.next().await?;
        state.last = Instant::now();
        Some((Ok(Bytes::from(piece)), state))
    });
    let closed = async move {
        let closing = closing.wait_for(|closing| *closing);
        timeout(limits::STREAM_TIME, closing).await.ok();
    };
    // A first comment, so that the page knows at once that it is connected.
    let first = stream::iter([Ok(Bytes::from_static(b": connected\n\n"))]);
    events::response(Body::Made(first.chain(pieces.take_until(Box::pin(closed))).boxed()))
}

/// Whose calls are wanted.
enum Wanted {
    None,
    One(Key),
    All,
}

impl Wanted {
    fn of(query: &str) -> Option<Self> {
        match query.split('&').find_map(|pair| pair.strip_prefix("calls=")) {
            None | Some("") => Some(Self::None),
            Some("all") => Some(Self::All),
            Some(path) => {
                let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
                Key::in_path(&path).map(Self::One)
            }
        }
    }

    fn includes(&self, key: &Key) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => one == key,
            Self::All => true,
        }
    }
}

/// What a stream has sent, and what it waits for.
struct State {
    changes: broadcast::Receiver<Change>,
    versions: watch::Receiver<u64>,
    logs: Arc<CallLogs>,
    viewer: Viewer,
    wanted: Wanted,
    calls: StreamMap<Key, BroadcastStream<Arc<Call>>>,
    /// The last calls before the stream began.
    backlog: VecDeque<(Key, Arc<Call>)>,
    /// The figures that were sent.
    traffic: BTreeMap<Key, Traffic>,
    ticks: Interval,
    last: Instant,
    _place: OwnedSemaphorePermit,
}

#[derive(Serialize)]
struct CallOf<'a> {
    #[serde(flatten)]
    key: &'a Key,
    #[serde(flatten)]
    call: &'a Call,
}

impl State {
    /// Listens to the logs that are wanted.
    fn listen(&mut self) {
        for (key, log) in self.logs.all() {
            if self.wanted.includes(&key) && !self.calls.contains_key(&key) {
                self.calls.insert(key, BroadcastStream::new(log.watch()));
            }
        }
    }

    /// The last calls of all servers that are wanted, oldest first.
    fn last_calls(&self) -> VecDeque<(Key, Arc<Call>)> {
        let wanted = self.logs.all().into_iter().filter(|(key, _)| self.wanted.includes(key));
        let calls = wanted.flat_map(|(key, log)| log.last().into_iter().map(move |call| (key.clone(), call)));
        let mut calls: Vec<_> = calls.collect();
        calls.sort_by_key(|(_, call)| call.time);
        calls.drain(..calls.len().saturating_sub(limits::BACKLOG));
        calls.into()
    }

    /// The next event as text.
    async fn next(&mut self) -> Option<String> {
        while let Some((key, call)) = self.backlog.pop_front() {
            if self.viewer.may_see_calls(&key).await {
                return Some(event("call", &CallOf { key: &key, call: &call }));
            }
        }
        loop {
            tokio::select! {
                change = self.changes.recv() => match change {
                    Ok(Change::Applied(object)) if self.viewer.may_see(&object.key).await => {
                        let traffic = self.logs.traffic(&object.key);
                        return Some(event("object", &Line { summary: &object.summary, traffic }));
                    }
                    Ok(Change::Deleted(key)) if self.viewer.may_see(&key).await => {
                        return Some(event("deleted", &key));
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return Some(event("resync", &json!({}))),
                    Err(RecvError::Closed) => return None,
                },
                Some((key, call)) = self.calls.next() => match call {
                    Ok(call) if self.viewer.may_see_calls(&key).await => {
                        return Some(event("call", &CallOf { key: &key, call: &call }));
                    }
                    Ok(_) => {}
                    // The page shows the last calls, and has lost some in between.
                    Err(BroadcastStreamRecvError::Lagged(_)) => {}
                },
                Ok(()) = self.versions.changed() => self.listen(),
                _ = self.ticks.tick() => {
                    let changed = self.changed_traffic().await;
                    if !changed.is_empty() {
                        return Some(event("traffic", &changed));
                    }
                    if self.last.elapsed() >= limits::KEEP_ALIVE_TIME {
                        return Some(":\n\n".to_owned());
                    }
                }
            }
        }
    }

    /// The figures that differ from those that were sent.
    async fn changed_traffic(&mut self) -> Vec<serde_json::Value> {
        let now = self.logs.all().into_iter().map(|(key, log): (Key, Arc<CallLog>)| (key, log.traffic()));
        let mut changed = Vec::new();
        for (key, traffic) in now {
            // Without calls, nothing is to be sent at first.
            let before = self.traffic.insert(key.clone(), traffic).unwrap_or_default();
            if before != traffic && self.viewer.may_see(&key).await {
                changed.push(json!({
                    "kind": key.kind, "namespace": key.namespace, "name": key.name, "traffic": traffic,
                }));
            }
        }
        changed
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    // JSON has no line breaks, so the data is one line.
    format!("event: {name}\ndata: {}\n\n", serde_json::to_string(data).unwrap_or_default())
}
