//! A guard against writers that change our fields back again and again.
//!
//! A field that another writer changes is restored at once, a few times. If it is changed back each time, right after our write,
//! it is left alone for a while, and each time twice as long. Everything else of the object is applied as usual: without
//! that field, which then belongs to the other writer. A writer that changes another field each time is answered a few times at
//! once as well; from then on, what it changes is restored together, every [`TOGETHER`]. An object that cannot be restored, because a
//! write fails, is left alone as a whole in the same way.
//!
//! What decides what runs, and with which rights, is never left alone for long: a wrong value must not outlive the attack. And a field
//! is left alone only while the same value is desired, in an object that exists, for the same owner.
//!
//! Another operator writes under our own name: it takes no field from us, only the values change. An object that it writes again and
//! again is left alone as a whole.

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
    observed::ownable,
    owned::owned,
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
/// The longest time for which a field is left alone that decides what runs, and with which rights.
const LONGEST_RISK: Duration = Duration::from_secs(30);
/// After this time without a further change back, a field counts as ours.
const CALM: Duration = Duration::from_secs(600);
/// The same for a field that decides what runs: a change now and then is restored at once.
const CALM_RISK: Duration = Duration::from_secs(60);
/// How many objects are remembered before those that were written long ago are dropped.
const REMEMBERED: usize = 10_000;
/// How many fields a report lists.
const LISTED: usize = 3;
/// How long a report stays as it is. Who reports it writes it each time that it changes, and a writer that is never content changes
/// another field each time.
const REPORTED: Duration = CALM;

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

/// What is reported, in the order in which one replaces another at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subjects {
    Fields,
    Failure,
    Existence,
    Name,
}

/// The last report about an object.
struct Report {
    about: Subjects,
    message: String,
    at: Instant,
}

/// A part of an object that is written for an owner, whose uid this is.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) child: &'a Child,
    pub(crate) name: &'static str,
    pub(crate) owner: &'a str,
}

impl Part<'_> {
    fn key(&self) -> String {
        let Self { child, name, owner } = self;
        format!("{}/{}/{}/{name}/{owner}", child.kind.kind, child.namespace, child.name)
    }
}

/// The parts of objects that were written.
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
    /// What was ours after a write, from the first reaction on.
    written: Option<Written>,
    /// How often fields were lost.
    losses: u32,
    /// When fields are restored together next, once that is too often.
    together: Instant,
    disputes: BTreeMap<Subject, Dispute>,
    failed: Failed,
    reported: Option<Report>,
}

/// What is ours after a write.
pub(crate) struct Written {
    /// Our fields.
    pub(crate) fields: Value,
    /// The whole object.
    pub(crate) object: Value,
}

impl Written {
    /// Whether someone else has written under our own name since: other writers take fields from us, and change none of ours.
    fn is_overwritten(&self, live: &Reaction<'_>) -> bool {
        let now = whole(live.live);
        let is_changed = |path: &Path| {
            let has = |set: &Value| path.iter().try_fold(set, |set, key| set.get(key)).is_some();
            let field = set_of(path);
            has(&live.owned) && owned(&self.object, &field) != owned(&now, &field)
        };
        without(&live.owned, Some(&self.fields)).is_some() || paths(&self.fields).iter().any(is_changed)
    }
}

/// What the dispute is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// The object, which is deleted again and again.
    Existence,
    /// Our own name, under which someone else writes.
    Name,
    /// A field.
    Field(Path),
}

impl Subject {
    /// The desired value.
    fn desired(&self, child: &Child) -> Digest {
        match self {
            Self::Existence | Self::Name => child.digest(),
            Self::Field(path) => Digest::of(&owned(child.body(), &set_of(path)).unwrap_or_default()),
        }
    }

    /// Whether it decides what runs, or with which rights.
    fn is_risk(&self, part: Part<'_>) -> bool {
        let is_metadata = |path: &Path| path.first().is_some_and(|first| first == "f:metadata");
        part.name.is_empty() && matches!(self, Self::Field(path) if !is_metadata(path))
    }

    fn calm(&self, part: Part<'_>) -> Duration {
        if self.is_risk(part) { CALM_RISK } else { CALM }
    }
}

/// Writes that failed, each after another writer had changed the object.
#[derive(Default)]
struct Failed {
    count: u32,
    /// When the last one failed.
    last: Option<Instant>,
    /// The [version](crate::Meta::version) before it.
    version: String,
    error: String,
    /// Until when the object is left alone, unless it was written since.
    until: Option<Instant>,
}

/// The keys of managed fields that lead to a field.
type Path = Vec<String>;

struct Dispute {
    /// What is desired.
    desired: Digest,
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
            written: None,
            losses: 0,
            together: now,
            disputes: BTreeMap::new(),
            failed: Failed::default(),
            reported: None,
        }
    }

    /// The report about these, which is the last one if it was made a moment ago.
    fn report(&mut self, about: Subjects, message: String, now: Instant) -> String {
        let last = self.reported.take();
        let last = last.filter(|last| last.about >= about && now < last.at + REPORTED);
        let report = last.unwrap_or(Report { about, message, at: now });
        self.reported.insert(report).message.clone()
    }

    /// What is contended, and until when at least.
    fn contention(
        &self,
        part: Part<'_>,
        restores: Restores,
        now: Instant,
    ) -> Option<(Subjects, String, Instant)> {
        let (kind, name) = (part.child.kind.kind, &part.child.name);
        if let Some(until) = self.failed.until.filter(|until| *until > now) {
            let error = &self.failed.error;
            let message =
                format!("{kind} {name} is changed again and again, and cannot be restored: {error}");
            return Some((Subjects::Failure, message, until));
        }
        let is_contended = |dispute: &Dispute| {
            dispute.until.is_some()
                || dispute.losses > restores.of_a_field
                || self.losses > restores.of_an_object
        };
        let contended: Vec<_> = self.disputes.iter().filter(|(_, dispute)| is_contended(dispute)).collect();
        let end = |(subject, dispute): &(&Subject, &Dispute)| {
            dispute.until.unwrap_or(dispute.lost + subject.calm(part))
        };
        let until = contended.iter().map(end).min()?;
        let is_about = |subject: Subject| contended.iter().any(|(about, _)| **about == subject);
        if is_about(Subject::Existence) {
            return Some((Subjects::Existence, format!("{kind} {name} is deleted again and again"), until));
        }
        if is_about(Subject::Name) {
            let message = format!(
                "{kind} {name}: another operator writes it as well, with other settings; only one operator may watch a namespace"
            );
            return Some((Subjects::Name, message, until));
        }
        let fields: Vec<&Path> = contended
            .iter()
            .filter_map(|(subject, _)| match subject {
                Subject::Field(path) => Some(path),
                Subject::Existence | Subject::Name => None,
            })
            .collect();
        let mut shown: Vec<String> = fields.iter().take(LISTED).map(|path| text(path)).collect();
        if fields.len() > LISTED {
            shown.push(format!("{} more", fields.len() - LISTED));
        }
        let mut managers: Vec<&str> = contended
            .iter()
            .map(|(_, dispute)| dispute.manager.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        managers.sort_unstable();
        managers.dedup();
        let by = if managers.is_empty() { "another writer".into() } else { managers.join(", ") };
        let message = format!("{kind} {name}: {by} changes {} back again and again", shown.join(", "));
        Some((Subjects::Fields, message, until))
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
        let earliest = if further > 0 { now + pause(further, LONGEST_PAUSE) } else { now };
        failed.until = together.map(|together| next_of(together, earliest));
    }

    /// Ends the pauses of what is desired anew: with another value, or in an object that does not exist. How often it was changed
    /// back still counts.
    fn end_pauses(&mut self, child: &Child, exists: bool) {
        for (subject, dispute) in &mut self.disputes {
            let desired = subject.desired(child);
            if desired != dispute.desired || !exists && *subject != Subject::Existence {
                (dispute.desired, dispute.until) = (desired, None);
            }
        }
    }

    /// Counts a loss of these, and decides until when each is left alone.
    fn lose(
        &mut self,
        part: Part<'_>,
        lost: Vec<Subject>,
        writer_of: impl Fn(&Path) -> String,
        restores: Restores,
        now: Instant,
    ) {
        // One that is left alone, or is to be applied next, is not lost again.
        let is_waiting =
            |subject: &Subject| self.disputes.get(subject).is_some_and(|dispute| dispute.until.is_some());
        let lost: Vec<Subject> = lost.into_iter().filter(|subject| !is_waiting(subject)).collect();
        if lost.is_empty() {
            return;
        }
        // One that is deleted is created as a whole, so no fields can wait for each other.
        let is_deleted = lost.contains(&Subject::Existence);
        let together = if is_deleted { None } else { self.count_loss(restores, now) };
        for subject in lost {
            let longest = if subject.is_risk(part) { LONGEST_RISK } else { LONGEST_PAUSE };
            let manager = match &subject {
                Subject::Field(path) => writer_of(path),
                Subject::Existence | Subject::Name => String::new(),
            };
            let desired = subject.desired(part.child);
            let dispute = self.disputes.entry(subject).or_insert_with(|| Dispute {
                desired,
                manager: String::new(),
                losses: 0,
                lost: now,
                until: None,
            });
            dispute.losses = dispute.losses.saturating_add(1);
            (dispute.lost, dispute.manager) = (now, manager);
            let further = dispute.losses.saturating_sub(restores.of_a_field);
            let own = (further > 0).then(|| now + pause(further, longest));
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

    /// The child without the fields that are left alone. `None` if that is all of it. One that does not exist is never created
    /// without some of its fields.
    pub(crate) fn effective(&self, part: Part<'_>, exists: bool) -> Option<Child> {
        let child = part.child;
        let mut objects = self.lock();
        let Some(object) = objects.get_mut(&part.key()) else { return Some(child.clone()) };
        let now = Instant::now();
        object.end_pauses(child, exists);
        let has_failed = exists && object.failed.until.is_some_and(|until| until > now);
        if has_failed && object.desired == child.digest() {
            return None;
        }
        let is_left = |dispute: &&Dispute| dispute.until.is_some_and(|until| until > now);
        let mut set = None;
        for (subject, _) in object.disputes.iter().filter(|(_, dispute)| is_left(dispute)) {
            let Subject::Field(path) = subject else { return None };
            set = Some(set.map_or_else(|| set_of(path), |set| union(set, set_of(path))));
        }
        Some(set.map_or_else(|| child.clone(), |set| child.without(&set)))
    }

    /// Whether the same state was written a moment ago, and another writer has reacted to it more than a few times, so that
    /// it must be found out who changes what.
    pub(crate) fn is_suspicious(&self, part: Part<'_>) -> bool {
        let mut objects = self.lock();
        let Some(object) = objects.get_mut(&part.key()) else { return false };
        let is_reaction = object.desired == part.child.digest() && object.sent.elapsed() < REACTION;
        object.reactions = if is_reaction { object.reactions.saturating_add(1) } else { 0 };
        object.reactions > ORDINARY || !object.disputes.is_empty()
    }

    /// Records what another writer has changed since our last write. Without a live object, it has deleted it.
    pub(crate) fn record_reaction(&self, part: Part<'_>, live: Option<&Reaction<'_>>) {
        let mut objects = self.lock();
        let Some(object) = objects.get_mut(&part.key()) else { return };
        object.end_pauses(part.child, live.is_some());
        let lost = match (live, &object.written) {
            (None, _) => vec![Subject::Existence],
            (Some(_), None) => Vec::new(),
            (Some(live), Some(written)) if written.is_overwritten(live) => vec![Subject::Name],
            (Some(live), Some(written)) => {
                let lost = without(&written.fields, Some(&live.owned)).map(|lost| paths(&lost));
                lost.unwrap_or_default().into_iter().map(Subject::Field).collect()
            }
        };
        let writer_of = |path: &Path| live.map(|live| live.writer_of(path)).unwrap_or_default();
        object.lose(part, lost, writer_of, self.restores, Instant::now());
    }

    /// Records a write and its result, what is ours now.
    pub(crate) fn record_write(
        &self,
        part: Part<'_>,
        is_suspicious: bool,
        written: impl FnOnce() -> Written,
    ) {
        let child = part.child;
        let mut objects = self.lock();
        let now = Instant::now();
        if objects.len() >= REMEMBERED {
            forget_half(&mut objects);
        }
        let object = objects.entry(part.key()).or_insert_with(|| Object::new(child.digest(), now));
        if object.desired != child.digest() {
            object.failed = Failed::default();
        }
        (object.desired, object.sent, object.failed.until) = (child.digest(), now, None);
        for dispute in object.disputes.values_mut() {
            dispute.until = dispute.until.filter(|until| *until > now);
        }
        // Fields that are left alone were not sent, and are lost already.
        let left = object.disputes.iter().filter(|(_, dispute)| dispute.until.is_some());
        let left = left.filter_map(|(subject, _)| match subject {
            Subject::Field(path) => Some(set_of(path)),
            Subject::Existence | Subject::Name => None,
        });
        object.written = (is_suspicious || !object.disputes.is_empty()).then(|| {
            let Written { fields, object } = written();
            Written { fields: left.fold(fields, union), object }
        });
    }

    /// Records a write that failed, to an object of this [version](crate::Meta::version), and returns whether the object is left alone
    /// from now on.
    pub(crate) fn record_failure(&self, part: Part<'_>, version: &str, error: &Error) -> bool {
        let mut objects = self.lock();
        let now = Instant::now();
        // What was never written fails for its own sake, however often the object changes: then the error itself is reported.
        let Some(object) =
            objects.get_mut(&part.key()).filter(|object| object.desired == part.child.digest())
        else {
            return false;
        };
        // Otherwise nobody has changed it: then it is retried as any object is.
        if object.failed.version != version {
            object.fail(version, error, self.restores, now);
        }
        object.failed.until.is_some_and(|until| until > now)
    }

    /// The fields of the child that another writer changes back.
    pub(crate) fn contention(&self, part: Part<'_>) -> Option<Contention> {
        let mut objects = self.lock();
        let object = objects.get_mut(&part.key())?;
        let now = Instant::now();
        object
            .disputes
            .retain(|subject, dispute| dispute.until.is_some() || now < dispute.lost + subject.calm(part));
        let has_failed = object.failed.last.is_some_and(|last| now < last + CALM);
        if object.disputes.is_empty() && !has_failed {
            (object.losses, object.failed) = (0, Failed::default());
        }
        let Some((about, message, until)) = object.contention(part, self.restores, now) else {
            object.reported = None;
            return None;
        };
        let message = object.report(about, message, now);
        Some(Contention { message, again: until.saturating_duration_since(now) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Object>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the objects that were written longest ago: their owners may be gone.
fn forget_half(objects: &mut HashMap<String, Object>) {
    let mut times: Vec<Instant> = objects.values().map(|object| object.sent).collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    objects.retain(|_, object| object.sent > median);
}

fn pause(further: u32, longest: Duration) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(further.saturating_sub(1))).min(longest)
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

/// A live object as one value, with the metadata that can be owned.
pub(crate) fn whole(object: &DynamicObject) -> Value {
    let mut value = object.data.clone();
    value["metadata"] = json!(ownable(&object.metadata));
    value
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
    use std::collections::BTreeSet;

    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::Kind;

    #[test]
    fn a_field_is_restored_a_few_times_at_once_and_then_less_and_less_often() {
        let pauses = |longest| (1..=12).map(|further| pause(further, longest).as_secs()).collect::<Vec<_>>();
        assert_eq!(pauses(LONGEST_PAUSE), [4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, 600]);
        assert_eq!(pauses(LONGEST_RISK)[..5], [4, 8, 16, 30, 30]);
    }

    /// How often an object is written in a minute in which another writer changes one of its fields again and again, with these pauses.
    fn writes_in_a_minute(changed: impl Fn(u32) -> Path, pause: impl Fn(u32) -> u64) -> u32 {
        let start = Instant::now();
        let child = child(1);
        let mut object = Object::new(child.digest(), start);
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
            let subject = Subject::Field(changed(change));
            object.lose(part(&child), vec![subject.clone()], |_| "another".into(), Restores::default(), now);
            let at_once = object.disputes[&subject].until.is_none();
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
        let body =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": replicas, "paused": true}});
        Child::from_value(Kind::of::<Deployment>(), "ns".into(), "one".into(), body)
    }

    fn part(child: &Child) -> Part<'_> {
        Part { child, name: "", owner: "u" }
    }

    /// Our fields of [`child`], but for those that another writer has taken.
    fn fields(lost: &[&str]) -> Value {
        let mut set = json!({
            "f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}, "f:paused": {}},
        });
        for field in lost {
            set["f:spec"].as_object_mut().unwrap().remove(*field);
        }
        set
    }

    fn live(child: &Child) -> DynamicObject {
        serde_json::from_value(child.body().clone()).unwrap()
    }

    fn written(child: &Child) -> Written {
        Written { fields: fields(&[]), object: whole(&live(child)) }
    }

    /// The guard after another writer has taken `spec.replicas` so often that the field is left alone.
    fn after_a_fight(child: &Child) -> Guard {
        let guard = Guard::new(Restores::default());
        for _ in 0..10 {
            guard.record_write(part(child), true, || written(child));
            let (live, owned) = (live(child), fields(&["f:replicas"]));
            guard.record_reaction(part(child), Some(&Reaction { live: &live, owned, manager: "us" }));
        }
        let effective = guard.effective(part(child), true).unwrap();
        assert_eq!(effective.body()["spec"], json!({"paused": true}));
        guard
    }

    #[test]
    fn a_field_is_left_alone_only_while_the_same_value_is_desired() {
        let guard = after_a_fight(&child(1));
        let changed = guard.effective(part(&child(2)), true).unwrap();
        assert_eq!(changed.body()["spec"], json!({"replicas": 2, "paused": true}));
    }

    #[test]
    fn a_writer_that_changes_another_field_each_time_is_reported_once() {
        let child = child(1);
        let guard = Guard::new(Restores::default());
        let mut reports = Vec::new();
        for round in 0..20 {
            guard.record_write(part(&child), true, || written(&child));
            let lost = ["f:replicas", "f:paused"][round % 2];
            let (live, owned) = (live(&child), fields(&[lost]));
            guard.record_reaction(part(&child), Some(&Reaction { live: &live, owned, manager: "us" }));
            // Each time the last fields are due again.
            guard.lock().values_mut().flat_map(|object| object.disputes.values_mut()).for_each(|dispute| {
                dispute.until = None;
            });
            reports.extend(guard.contention(part(&child)).map(|contention| contention.message));
        }
        assert!(reports.len() > 10, "{reports:#?}");
        reports.dedup();
        assert_eq!(reports.len(), 1, "{reports:#?}");
        // What is worse is reported at once.
        for _ in 0..10 {
            guard.record_write(part(&child), true, || written(&child));
            guard.record_reaction(part(&child), None);
        }
        let message = guard.contention(part(&child)).unwrap().message;
        assert!(message.contains("is deleted again and again"), "{message}");
    }

    #[test]
    fn an_object_that_does_not_exist_is_created_as_a_whole() {
        let child = child(1);
        let guard = after_a_fight(&child);
        guard.record_reaction(part(&child), None);
        assert_eq!(guard.effective(part(&child), false), Some(child.clone()));
        // It may be known to be missing without a look.
        assert_eq!(after_a_fight(&child).effective(part(&child), false), Some(child));
    }

    #[test]
    fn an_object_of_a_new_owner_of_the_same_name_inherits_no_dispute() {
        let child = child(1);
        let guard = after_a_fight(&child);
        let new = Part { owner: "new", ..part(&child) };
        assert_eq!(guard.effective(new, true), Some(child.clone()));
    }

    #[test]
    fn what_decides_what_runs_is_restored_within_half_a_minute_and_a_label_may_wait_for_ten() {
        let child = child(1);
        let longest = |path: &[&str]| {
            let subject = Subject::Field(path.iter().map(|key| (*key).to_owned()).collect());
            let mut object = Object::new(child.digest(), Instant::now());
            let now = Instant::now();
            for _ in 0..20 {
                object.lose(part(&child), vec![subject.clone()], |_| String::new(), Restores::default(), now);
                object.disputes.values_mut().for_each(|dispute| dispute.until = None);
            }
            object.lose(part(&child), vec![subject.clone()], |_| String::new(), Restores::default(), now);
            object.disputes[&subject].until.unwrap() - now
        };
        assert!(longest(&["f:spec", "f:replicas"]) <= LONGEST_RISK + TOGETHER);
        assert!(longest(&["f:metadata", "f:labels", "f:a"]) >= LONGEST_PAUSE);
    }

    #[test]
    fn another_operator_under_our_own_name_is_noticed_by_the_values_and_stops_us() {
        let (ours, theirs) = (child(1), child(2));
        let guard = Guard::new(Restores::default());
        for round in 0..4 {
            assert!(guard.effective(part(&ours), true).is_some(), "restored at once in round {round}");
            guard.record_write(part(&ours), true, || written(&ours));
            let live = live(&theirs);
            let reaction = Reaction { live: &live, owned: fields(&[]), manager: "us" };
            guard.record_reaction(part(&ours), Some(&reaction));
        }
        assert_eq!(guard.effective(part(&ours), true), None);
        let message = guard.contention(part(&ours)).unwrap().message;
        assert!(message.contains("another operator writes it as well"), "{message}");
    }

    #[test]
    fn objects_are_forgotten_in_the_order_of_their_last_write() {
        let guard = Guard::new(Restores::default());
        let owners: Vec<String> = (0..=REMEMBERED).map(|number| number.to_string()).collect();
        let child = child(1);
        for owner in &owners {
            guard.record_write(Part { owner, ..part(&child) }, true, || written(&child));
        }
        let objects = guard.lock();
        assert!(objects.len() <= REMEMBERED / 2 + 1, "{}", objects.len());
        assert!(objects.contains_key(&Part { owner: &owners[REMEMBERED], ..part(&child) }.key()));
    }

    #[test]
    fn what_was_never_written_fails_for_its_own_sake_however_often_the_object_changes() {
        let guard = Guard::new(Restores::default());
        let error =
            Error::Foreign { kind: "Deployment", name: "one".into(), owner: "MCPServer other".into() };
        let fails = |child: &Child, versions: std::ops::Range<u32>| {
            versions.map(|version| guard.record_failure(part(child), &version.to_string(), &error)).last()
        };
        assert_eq!(fails(&child(1), 0..100), Some(false));
        guard.record_write(part(&child(1)), false, || written(&child(1)));
        assert_eq!(fails(&child(2), 100..200), Some(false), "another state is a new write");
        assert!(guard.contention(part(&child(2))).is_none());
        // A state that was written, and cannot be restored.
        assert_eq!(fails(&child(1), 200..300), Some(true));
        assert!(guard.contention(part(&child(1))).is_some());
        assert!(guard.effective(part(&child(1)), true).is_none());
        assert!(guard.effective(part(&child(1)), false).is_some(), "a missing object is created");
        // The same version again is an ordinary retry.
        let guard = Guard::new(Restores::default());
        guard.record_write(part(&child(1)), false, || written(&child(1)));
        let retried = (0..100).map(|_| guard.record_failure(part(&child(1)), "7", &error)).last();
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
