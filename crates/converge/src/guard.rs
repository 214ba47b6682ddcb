//! A guard against writers that change our fields back again and again.
//!
//! A field that another writer changes is restored at once, a few times. If it is changed back each time, right after our write,
//! it is left alone for a while, and each time twice as long. Everything else of the object is applied as usual: without
//! that field, which then belongs to the other writer. A writer that changes another field each time is answered a few times at
//! once as well; from then on, what it changes is restored together, every [`TOGETHER`]. An object that cannot be restored, because a
//! write fails, is left alone as a whole in the same way.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::core::DynamicObject;
use serde_json::{Map, Value, json};

use crate::{
    Child, Digest, Error,
    fields::{union, without},
};

/// A change within this time after our write is a reaction to it.
const REACTION: Duration = Duration::from_secs(10);
/// How many reactions in a row are ordinary drift, for which nothing is read.
const ORDINARY: u32 = 2;
/// How long fields wait to be restored together, once an object was restored too often.
const TOGETHER: Duration = Duration::from_secs(15);
/// The first and the longest time for which a field is left alone.
const FIRST_PAUSE: Duration = Duration::from_secs(4);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// After this time without a further change back, a field counts as ours.
const CALM: Duration = Duration::from_secs(600);
/// How many objects are remembered before those that were written long ago are dropped.
const REMEMBERED: usize = 10_000;
/// How many fields a report lists.
const LISTED: usize = 3;

/// How often what another writer changes again and again is restored at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restores {
    /// The same field.
    pub of_a_field: u32,
    /// Any fields of the same object.
    pub of_an_object: u32,
}

impl Default for Restores {
    fn default() -> Self {
        Self { of_a_field: 3, of_an_object: 4 }
    }
}

/// Fields that another writer changes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contention {
    /// What happens to which fields, and by whom.
    pub message: String,
    /// When to look at the object again.
    pub again: Duration,
}

/// The objects that were written, by kind, namespace, name and part.
pub(crate) struct Guard {
    restores: Restores,
    objects: Mutex<HashMap<String, Object>>,
}

struct Object {
    /// What was desired when it was last written.
    desired: Digest,
    sent: Instant,
    /// How many reactions there were in a row.
    reactions: u32,
    /// The fields that were ours after a write, from the first reaction on.
    fields: Option<Value>,
    /// How often fields were lost.
    losses: u32,
    /// When fields are restored together next, once that is too often.
    together: Instant,
    disputes: BTreeMap<Path, Dispute>,
    failed: Failed,
}

/// Writes that failed, each after another writer had changed the object.
#[derive(Default)]
struct Failed {
    count: u32,
    /// When the last one failed.
    last: Option<Instant>,
    /// The resourceVersion before it.
    version: String,
    error: String,
    /// Until when the object is left alone, unless it was written since.
    until: Option<Instant>,
}

/// The keys of managed fields that lead to a field. The empty path is the whole object.
type Path = Vec<String>;

struct Dispute {
    /// The other writer.
    manager: String,
    /// How often it was changed back.
    losses: u32,
    /// The last change back.
    lost: Instant,
    /// Until when the field is left alone, unless it was applied since.
    until: Option<Instant>,
}

/// The live state of an object that another writer may have changed.
pub(crate) struct Reaction<'a> {
    pub(crate) live: &'a DynamicObject,
    /// The fields that are ours now.
    pub(crate) owned: Value,
    /// Our own name.
    pub(crate) manager: &'a str,
}

impl Object {
    fn new(desired: Digest, now: Instant) -> Self {
        Self {
            desired,
            sent: now,
            reactions: 0,
            fields: None,
            losses: 0,
            together: now,
            disputes: BTreeMap::new(),
            failed: Failed::default(),
        }
    }

    /// Counts a loss of any kind. If there were too many, returns when what is lost now may be restored.
    fn count_loss(&mut self, restores: Restores, now: Instant) -> Option<Instant> {
        self.losses = self.losses.saturating_add(1);
        if self.losses <= restores.of_an_object {
            return None;
        }
        if self.together <= now {
            self.together = now + TOGETHER;
        }
        Some(self.together)
    }

    /// Counts a write that failed, and decides until when the object is left alone.
    fn fail(&mut self, version: &str, error: &Error, restores: Restores, now: Instant) {
        let together = self.count_loss(restores, now);
        let failed = &mut self.failed;
        failed.count = failed.count.saturating_add(1);
        (failed.last, failed.version, failed.error) = (Some(now), version.to_owned(), error.to_string());
        let further = failed.count.saturating_sub(restores.of_an_object);
        let earliest = if further > 0 { now + pause(further) } else { now };
        failed.until = together.map(|together| next_of(together, earliest));
    }

    /// Counts a loss of these fields, and decides until when each is left alone.
    fn lose(&mut self, lost: &[Path], writer_of: impl Fn(&Path) -> String, restores: Restores, now: Instant) {
        // One that is left alone, or is to be applied next, is not lost again.
        let is_waiting =
            |path: &&Path| self.disputes.get(*path).is_some_and(|dispute| dispute.until.is_some());
        let lost: Vec<&Path> = lost.iter().filter(|path| !is_waiting(path)).collect();
        if lost.is_empty() {
            return;
        }
        let together = self.count_loss(restores, now);
        for path in lost {
            let dispute = self.disputes.entry(path.clone()).or_insert_with(|| Dispute {
                manager: String::new(),
                losses: 0,
                lost: now,
                until: None,
            });
            dispute.losses = dispute.losses.saturating_add(1);
            (dispute.lost, dispute.manager) = (now, writer_of(path));
            let further = dispute.losses.saturating_sub(restores.of_a_field);
            let own = (further > 0).then(|| now + pause(further));
            dispute.until = match together {
                Some(together) => Some(next_of(together, own.unwrap_or(now))),
                None => own,
            };
        }
    }
}

impl Guard {
    pub(crate) fn new(restores: Restores) -> Self {
        Self { restores, objects: Mutex::default() }
    }

    /// The child without the fields that are left alone. `None` if that is all of it.
    pub(crate) fn effective(&self, child: &Child, part: &str) -> Option<Child> {
        let objects = self.lock();
        let Some(object) = objects.get(&key(child, part)) else { return Some(child.clone()) };
        let now = Instant::now();
        if object.desired == child.digest() && object.failed.until.is_some_and(|until| until > now) {
            return None;
        }
        let is_left = |dispute: &&Dispute| dispute.until.is_some_and(|until| until > now);
        let left: Vec<&Path> =
            object.disputes.iter().filter(|(_, dispute)| is_left(dispute)).map(|(path, _)| path).collect();
        if left.iter().any(|path| path.is_empty()) {
            return None;
        }
        let set = left.into_iter().map(set_of).reduce(union);
        Some(set.map_or_else(|| child.clone(), |set| child.without(&set)))
    }

    /// Whether the same state was written a moment ago, and another writer has reacted to it more than a few times, so that
    /// it must be found out who changes what.
    pub(crate) fn is_suspicious(&self, child: &Child, part: &str) -> bool {
        let mut objects = self.lock();
        let Some(object) = objects.get_mut(&key(child, part)) else { return false };
        let is_reaction = object.desired == child.digest() && object.sent.elapsed() < REACTION;
        object.reactions = if is_reaction { object.reactions.saturating_add(1) } else { 0 };
        object.reactions > ORDINARY || !object.disputes.is_empty()
    }

    /// Records what another writer has changed since our last write. Without a live object, it has deleted it.
    pub(crate) fn record_reaction(&self, child: &Child, part: &str, live: Option<&Reaction<'_>>) {
        let mut objects = self.lock();
        let Some(object) = objects.get_mut(&key(child, part)) else { return };
        let lost = match live {
            None => vec![Path::new()],
            Some(live) => {
                let lost = object.fields.as_ref().and_then(|fields| without(fields, Some(&live.owned)));
                lost.map(|lost| paths(&lost)).unwrap_or_default()
            }
        };
        let writer_of = |path: &Path| live.map(|live| live.writer_of(path)).unwrap_or_default();
        object.lose(&lost, writer_of, self.restores, Instant::now());
    }

    /// Records a write and its result, the fields that are ours now.
    pub(crate) fn record_write(
        &self,
        child: &Child,
        part: &str,
        is_suspicious: bool,
        fields: impl FnOnce() -> Value,
    ) {
        let mut objects = self.lock();
        let now = Instant::now();
        if objects.len() >= REMEMBERED {
            objects.retain(|_, object| object.sent.elapsed() < REACTION || !object.disputes.is_empty());
        }
        let object = objects.entry(key(child, part)).or_insert_with(|| Object::new(child.digest(), now));
        if object.desired != child.digest() {
            object.failed = Failed::default();
        }
        (object.desired, object.sent, object.failed.until) = (child.digest(), now, None);
        for dispute in object.disputes.values_mut() {
            dispute.until = dispute.until.filter(|until| *until > now);
        }
        // Fields that are left alone were not sent, and are lost already.
        let left = object.disputes.iter().filter(|(_, dispute)| dispute.until.is_some());
        let left = left.map(|(path, _)| set_of(path));
        object.fields = (is_suspicious || !object.disputes.is_empty()).then(|| left.fold(fields(), union));
    }

    /// Records a write to an object of this resourceVersion that failed, and returns whether the object is left alone from now on.
    pub(crate) fn record_failure(&self, child: &Child, part: &str, version: &str, error: &Error) -> bool {
        let mut objects = self.lock();
        let now = Instant::now();
        // What was never written fails for its own sake, however often the object changes: then the error itself is reported.
        let Some(object) =
            objects.get_mut(&key(child, part)).filter(|object| object.desired == child.digest())
        else {
            return false;
        };
        // Otherwise nothing has changed it: then it is retried as any object is.
        if object.failed.version != version {
            object.fail(version, error, self.restores, now);
        }
        object.failed.until.is_some_and(|until| until > now)
    }

    /// The fields of the child that another writer changes back.
    pub(crate) fn contention(&self, child: &Child, part: &str) -> Option<Contention> {
        let mut objects = self.lock();
        let object = objects.get_mut(&key(child, part))?;
        let now = Instant::now();
        object.disputes.retain(|_, dispute| dispute.until.is_some() || now < dispute.lost + CALM);
        let has_failed = object.failed.last.is_some_and(|last| now < last + CALM);
        if object.disputes.is_empty() && !has_failed {
            (object.losses, object.failed) = (0, Failed::default());
        }
        let is_contended = |dispute: &Dispute| {
            dispute.until.is_some()
                || dispute.losses > self.restores.of_a_field
                || object.losses > self.restores.of_an_object
        };
        let contended: Vec<_> = object.disputes.iter().filter(|(_, dispute)| is_contended(dispute)).collect();
        let (kind, name) = (child.kind.kind, &child.name);
        if let Some(until) = object.failed.until.filter(|until| *until > now) {
            let error = &object.failed.error;
            let message =
                format!("{kind} {name} is changed again and again, and cannot be restored: {error}");
            return Some(Contention { message, again: until.saturating_duration_since(now) });
        }
        let again =
            contended.iter().map(|(_, dispute)| dispute.until.unwrap_or(dispute.lost + CALM)).min()?;
        let mut shown: Vec<String> = contended.iter().take(LISTED).map(|(path, _)| text(path)).collect();
        if contended.len() > LISTED {
            shown.push(format!("{} more", contended.len() - LISTED));
        }
        let mut managers: Vec<&str> = contended
            .iter()
            .map(|(_, dispute)| dispute.manager.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        managers.sort_unstable();
        managers.dedup();
        let by = if managers.is_empty() { "another writer".into() } else { managers.join(", ") };
        let message = match contended.iter().any(|(path, _)| path.is_empty()) {
            true => format!("{kind} {name} is deleted again and again"),
            false => format!("{kind} {name}: {by} changes {} back again and again", shown.join(", ")),
        };
        Some(Contention { message, again: again.saturating_duration_since(now) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Object>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(child: &Child, part: &str) -> String {
    format!("{}/{}/{}/{part}", child.kind.kind, child.namespace, child.name)
}

fn pause(further: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(further.saturating_sub(1))).min(LONGEST_PAUSE)
}

/// The first of the times at which fields are restored together, from `first` on, that is not before `earliest`.
fn next_of(first: Instant, earliest: Instant) -> Instant {
    let missing = earliest.saturating_duration_since(first).as_millis();
    let rounds = missing.div_ceil(TOGETHER.as_millis());
    first + TOGETHER.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX))
}

/// The paths of all leaves of a set.
fn paths(set: &Value) -> Vec<Path> {
    fn collect(set: &Value, path: &mut Path, all: &mut Vec<Path>) {
        let fields = set.as_object();
        if fields.is_none_or(Map::is_empty) {
            return all.push(path.clone());
        }
        for (key, inner) in fields.into_iter().flatten() {
            path.push(key.clone());
            collect(inner, path, all);
            path.pop();
        }
    }
    let mut all = Vec::new();
    collect(set, &mut Vec::new(), &mut all);
    all
}

/// The set with this leaf alone.
fn set_of(path: &Path) -> Value {
    path.iter().rev().fold(json!({}), |inner, key| json!({key: inner}))
}

/// The path as users write it: `spec.template.spec.containers[mcp].image`.
fn text(path: &Path) -> String {
    let mut text = String::new();
    for key in path {
        if let Some(name) = key.strip_prefix("f:") {
            let plain = !name.contains(['.', '/']);
            match plain {
                true if text.is_empty() => text.push_str(name),
                true => text.push_str(&format!(".{name}")),
                false => text.push_str(&format!("[{name}]")),
            }
        } else if let Some(keys) = key.strip_prefix("k:") {
            let keys: Value = serde_json::from_str(keys).unwrap_or_default();
            let values: Vec<String> = keys
                .as_object()
                .into_iter()
                .flat_map(|keys| keys.values())
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                .collect();
            text.push_str(&format!("[{}]", values.join(",")));
        }
    }
    text
}

impl Reaction<'_> {
    /// The manager that owns the field now. One that removed it owns nothing there; then it is the last other writer.
    fn writer_of(&self, path: &Path) -> String {
        let entries = self.live.metadata.managed_fields.iter().flatten();
        let others: Vec<&ManagedFieldsEntry> =
            entries.filter(|entry| entry.manager.as_deref() != Some(self.manager)).collect();
        let has = |entry: &ManagedFieldsEntry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            fields.is_some_and(|fields| path.iter().try_fold(fields, |fields, key| fields.get(key)).is_some())
        };
        let time = |entry: &&&ManagedFieldsEntry| entry.time.as_ref().map(|time| time.0);
        let owner = others.iter().filter(|entry| has(entry)).max_by_key(time);
        let writer = owner.or_else(|| others.iter().max_by_key(time));
        writer.and_then(|entry| entry.manager.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use std::collections::BTreeSet;

    #[test]
    fn a_field_is_restored_a_few_times_at_once_and_then_less_and_less_often() {
        let pauses: Vec<u64> = (1..=12).map(|further| pause(further).as_secs()).collect();
        assert_eq!(pauses, [4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, 600]);
    }

    /// How often an object is written in a minute in which another writer changes one of its fields again and again, with these pauses.
    fn writes_in_a_minute(changed: impl Fn(u32) -> Path, pause: impl Fn(u32) -> u64) -> u32 {
        let start = Instant::now();
        let mut object = Object::new(Digest::of(&json!({})), start);
        // Those of which nothing is read, and the one after which the fields are known.
        let mut writes = ORDINARY + 1;
        let mut now = start;
        for change in 0.. {
            now += Duration::from_millis(pause(change));
            if now > start + Duration::from_secs(60) {
                return writes;
            }
            // Each time at which a field need not wait any longer is one write, of all such fields.
            let due = |dispute: &mut Dispute| dispute.until.take_if(|until| *until <= now);
            let due: BTreeSet<Instant> = object.disputes.values_mut().filter_map(due).collect();
            let path = changed(change);
            object.lose(std::slice::from_ref(&path), |_| "another".into(), Restores::default(), now);
            let at_once = object.disputes[&path].until.is_none();
            writes += due.len() as u32 + u32::from(at_once);
        }
        writes
    }

    #[test]
    fn another_writer_causes_a_dozen_writes_in_a_minute_whatever_fields_it_changes_and_when() {
        for fields in [1, 2, 3, 7, 1000] {
            // Regularly, at random, and with long pauses now and then, as on a busy machine.
            let pauses: [fn(u32) -> u64; 4] = [
                |_| 250,
                |change| 200 + u64::from(change * 7919 % 331),
                |change| if change % 5 == 0 { 1400 } else { 120 },
                |change| 30 + u64::from(change * 104_729 % 2111),
            ];
            for (number, pause) in pauses.into_iter().enumerate() {
                let writes = writes_in_a_minute(|change| vec![format!("f:{}", change % fields)], pause);
                assert!(
                    (5..=12).contains(&writes),
                    "{writes} writes for {fields} fields with pauses {number}"
                );
            }
        }
    }

    #[test]
    fn fields_that_wait_are_restored_together() {
        let start = Instant::now();
        let seconds = |wait| next_of(start, start + Duration::from_secs(wait)) - start;
        assert_eq!([0, 4, 15, 16].map(|wait| seconds(wait).as_secs()), [0, 15, 15, 30]);
    }

    fn child(replicas: u32) -> Child {
        let kind = Kind::of::<k8s_openapi::api::apps::v1::Deployment>();
        Child::from_value(kind, "ns".into(), "one".into(), json!({"spec": {"replicas": replicas}}))
    }

    #[test]
    fn what_was_never_written_fails_for_its_own_sake_however_often_the_object_changes() {
        let guard = Guard::new(Restores::default());
        let error =
            Error::Foreign { kind: "Deployment", name: "one".into(), owner: "MCPServer other".into() };
        let fails = |child: &Child, versions: std::ops::Range<u32>| {
            versions.map(|version| guard.record_failure(child, "", &version.to_string(), &error)).last()
        };
        assert_eq!(fails(&child(1), 0..100), Some(false));
        guard.record_write(&child(1), "", false, || json!({}));
        assert_eq!(fails(&child(2), 100..200), Some(false), "another state is a new write");
        assert!(guard.contention(&child(2), "").is_none());
        // A state that was written, and cannot be restored.
        assert_eq!(fails(&child(1), 200..300), Some(true));
        assert!(guard.contention(&child(1), "").is_some());
        // The same version again is an ordinary retry.
        let guard = Guard::new(Restores::default());
        guard.record_write(&child(1), "", false, || json!({}));
        let retried = (0..100).map(|_| guard.record_failure(&child(1), "", "7", &error)).last();
        assert_eq!(retried, Some(false));
    }

    #[test]
    fn paths_are_those_of_the_leaves_and_read_as_users_write_them() {
        let set = json!({
            "f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}},
            "f:spec": {"f:containers": {r#"k:{"name":"mcp"}"#: {".": {}, "f:image": {}}}},
        });
        let all = paths(&set);
        let texts: Vec<String> = all.iter().map(text).collect();
        assert_eq!(
            texts,
            ["metadata.labels[app.kubernetes.io/name]", "spec.containers[mcp]", "spec.containers[mcp].image"]
        );
        assert_eq!(all.iter().map(set_of).reduce(union), Some(set));
    }
}
