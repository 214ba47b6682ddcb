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
use skep_auth::Place;
use skep_gateway::{
    Connections,
    http::{Body, events},
    middleware::{Call, Traffic},
};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{Instant, Interval, MissedTickBehavior, interval, timeout},
};

use super::Line;
use crate::{
    CallLogs, Console, Key, access::Viewer, calls::Viewing, limits, objects::Change, responses::error,
};

/// The stream for a request with this query.
pub(super) fn stream(console: &Console, viewer: Viewer, query: &str) -> Response<Body> {
    let Some(wanted) = Wanted::of(query) else {
        return error(StatusCode::BAD_REQUEST, "calls must be all, or KIND/NAMESPACE/NAME");
    };
    let Some(place) = console.streams.take_for(viewer.name().to_owned()) else {
        return error(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open: close one");
    };
    let ticks = |time| {
        let mut ticks = interval(time);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    };
    let mut closing = console.is_closing.subscribe();
    let mut state = State {
        changes: console.objects.changes(),
        logs: console.calls.clone(),
        viewer,
        wanted,
        seen: BTreeMap::new(),
        calls: VecDeque::new(),
        traffic: BTreeMap::new(),
        connections: None,
        call_ticks: ticks(limits::CALLS_TIME),
        traffic_ticks: ticks(limits::TRAFFIC_TIME),
        last: Instant::now(),
        _viewing: console.calls.view(),
        _place: place,
    };
    state.look();
    state.calls.drain(..state.calls.len().saturating_sub(limits::BACKLOG));
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
    logs: Arc<CallLogs>,
    viewer: Viewer,
    wanted: Wanted,
    /// The number of the last call that was seen, of each log.
    seen: BTreeMap<Key, u64>,
    /// Those that are to be sent.
    calls: VecDeque<(Key, Arc<Call>)>,
    /// The figures that were sent.
    traffic: BTreeMap<Key, Traffic>,
    /// The connections of users that were sent, of the one server whose calls are wanted.
    connections: Option<Connections>,
    call_ticks: Interval,
    traffic_ticks: Interval,
    last: Instant,
    _viewing: Viewing,
    _place: Place<String>,
}

#[derive(Serialize)]
struct CallOf<'a> {
    #[serde(flatten)]
    key: &'a Key,
    #[serde(flatten)]
    call: &'a Call,
}

impl State {
    /// Looks for new calls of all servers that are wanted, oldest first.
    fn look(&mut self) {
        let mut found = Vec::new();
        for (key, log) in self.logs.all() {
            if !self.wanted.includes(&key) {
                continue;
            }
            let seen = self.seen.entry(key.clone()).or_default();
            for call in log.since(*seen) {
                *seen = call.id;
                found.push((key.clone(), call));
            }
        }
        found.sort_by_key(|(_, call)| call.time);
        self.calls.extend(found);
    }

    /// The next event as text.
    async fn next(&mut self) -> Option<String> {
        loop {
            while let Some((key, call)) = self.calls.pop_front() {
                if self.viewer.may_see_calls(&key).await {
                    return Some(event("call", &CallOf { key: &key, call: &call }));
                }
            }
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
                _ = self.call_ticks.tick() => self.look(),
                _ = self.traffic_ticks.tick() => {
                    let changed = self.changed_traffic().await;
                    if !changed.is_empty() {
                        return Some(event("traffic", &changed));
                    }
                    if let Some(changed) = self.changed_connections().await {
                        return Some(changed);
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
        let now = self.logs.all().into_iter().map(|(key, log)| (key, log.traffic()));
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

    /// The connections of users, if they differ from those that were sent.
    async fn changed_connections(&mut self) -> Option<String> {
        let Wanted::One(key) = &self.wanted else { return None };
        let connections = self.logs.find(key)?.connections().await;
        if connections == self.connections || !self.viewer.may_see_calls(key).await {
            return None;
        }
        let changed = event("connections", &json!({"key": key, "connections": connections}));
        self.connections = connections;
        Some(changed)
    }
}

fn event(name: &str, data: &impl Serialize) -> String {
    // JSON has no line breaks, so the data is one line.
    format!("event: {name}\ndata: {}\n\n", serde_json::to_string(data).unwrap_or_default())
}
