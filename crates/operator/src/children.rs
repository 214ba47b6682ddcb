//! Children of any kind that this operator makes: one row per kind, or several where objects of one kind are watched by
//! different labels.

use kube::core::DynamicObject;
use skep_converge::{Kind, Meta, Observed};
use skep_world::{Reader, Watched, World};

use crate::watched::{
    ConfigMaps, Deployments, Kept, ManagedDeployments, ManagedStatefulSets, RoleBindings, Roles, Secrets,
    ServiceAccounts, Services, StatefulSets, owner_key,
};

/// A child as it is.
pub(crate) struct ChildEntry {
    pub(crate) name: String,
    pub(crate) meta: Meta,
    pub(crate) observed: Observed,
}

/// What can be done with children of one kind.
struct Row {
    kind: Kind,
    selector: Option<&'static str>,
    get: fn(&mut Reader, &str) -> Option<ChildEntry>,
    owned: fn(&mut Reader, &str) -> Vec<ChildEntry>,
    learn: fn(&World, &DynamicObject),
    /// Whether a child goes when it is not wanted any more.
    pruned: bool,
}

impl Row {
    const fn of<W: Watched<Kept = Kept<F>>, F>() -> Self {
        Self {
            kind: W::KIND,
            selector: W::SELECTOR,
            get: get_of::<W, F>,
            owned: owned_of::<W, F>,
            learn: World::learn::<W>,
            pruned: true,
        }
    }

    /// Whether the watch brings this object. One that it does not bring would never be heard of again.
    fn watches(&self, object: &DynamicObject) -> bool {
        let Some((key, value)) = self.selector.and_then(|selector| selector.split_once('=')) else {
            return true;
        };
        object.metadata.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|label| label == value)
    }
}

const ROWS: [Row; 10] = [
    Row::of::<Deployments, _>(),
    Row::of::<ManagedDeployments, _>(),
    Row::of::<Services, _>(),
    Row::of::<ServiceAccounts, _>(),
    Row::of::<Roles, _>(),
    Row::of::<RoleBindings, _>(),
    Row::of::<ConfigMaps, _>(),
    // They are made once, and are wanted as long as their owner is there.
    Row { pruned: false, ..Row::of::<Secrets, _>() },
    // Proxies make these, so what they are is for proxies to say.
    Row { pruned: false, ..Row::of::<StatefulSets, _>() },
    Row::of::<ManagedStatefulSets, _>(),
];

fn rows(kind: Kind) -> impl Iterator<Item = &'static Row> {
    debug_assert!(ROWS.iter().any(|row| row.kind == kind), "{} is made but has no row", kind.kind);
    ROWS.iter().filter(move |row| row.kind == kind)
}

/// The child of that kind and name, in the newest state that is known.
pub(crate) fn get(reader: &mut Reader, kind: Kind, name: &str) -> Option<ChildEntry> {
    let newer =
        |one: ChildEntry, other: ChildEntry| if one.meta.is_older_than(&other.meta) { other } else { one };
    rows(kind).filter_map(|row| (row.get)(reader, name)).reduce(newer)
}

/// Takes in how a child is after a write.
pub(crate) fn learn(world: &World, kind: Kind, object: &DynamicObject) {
    for row in rows(kind).filter(|row| row.watches(object)) {
        (row.learn)(world, object);
    }
}

/// All children that the object with this uid controls, of the kinds that go when they are not wanted any more.
pub(crate) fn owned_by(reader: &mut Reader, uid: &str) -> Vec<(Kind, ChildEntry)> {
    let key = owner_key(uid);
    let mut all: Vec<(Kind, ChildEntry)> = Vec::new();
    for row in ROWS.iter().filter(|row| row.pruned) {
        for child in (row.owned)(reader, &key) {
            if !all.iter().any(|(kind, other)| *kind == row.kind && other.name == child.name) {
                all.push((row.kind, child));
            }
        }
    }
    all
}

fn get_of<W: Watched<Kept = Kept<F>>, F>(reader: &mut Reader, name: &str) -> Option<ChildEntry> {
    let entry = reader.get::<W>(name)?;
    Some(ChildEntry { name: name.into(), meta: entry.meta, observed: entry.kept.observed })
}

fn owned_of<W: Watched<Kept = Kept<F>>, F>(reader: &mut Reader, key: &str) -> Vec<ChildEntry> {
    let found = reader.by_index::<W>(key).into_iter();
    found.map(|(name, entry)| ChildEntry { name, meta: entry.meta, observed: entry.kept.observed }).collect()
}
