//! Children of any kind that this operator makes: one row per kind.

use kube::core::DynamicObject;
use skep_converge::{Kind, Meta, Observed};
use skep_world::{Reader, Watched, World};

use crate::watched::{
    ConfigMaps, Deployments, Kept, RoleBindings, Roles, Secrets, ServiceAccounts, Services, StatefulSets,
    owner_key,
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
    get: fn(&mut Reader, &str) -> Option<ChildEntry>,
    owned: fn(&mut Reader, &str) -> Vec<ChildEntry>,
    observe: fn(&World, &DynamicObject),
    /// Whether a child goes when it is not wanted any more.
    pruned: bool,
}

impl Row {
    const fn of<W: Watched<Kept = Kept<F>>, F>() -> Self {
        Self {
            kind: W::KIND,
            get: get_of::<W, F>,
            owned: owned_of::<W, F>,
            observe: World::observe::<W>,
            pruned: true,
        }
    }
}

const ROWS: [Row; 8] = [
    Row::of::<Deployments, _>(),
    Row::of::<Services, _>(),
    Row::of::<ServiceAccounts, _>(),
    Row::of::<Roles, _>(),
    Row::of::<RoleBindings, _>(),
    Row::of::<ConfigMaps, _>(),
    // They are made once, and are wanted as long as their owner is there.
    Row { pruned: false, ..Row::of::<Secrets, _>() },
    // Proxies make these, so what they are is for proxies to say.
    Row { pruned: false, ..Row::of::<StatefulSets, _>() },
];

fn row(kind: Kind) -> Option<&'static Row> {
    let row = ROWS.iter().find(|row| row.kind == kind);
    debug_assert!(row.is_some(), "{} is made but has no row", kind.kind);
    row
}

/// The child of that kind and name.
pub(crate) fn get(reader: &mut Reader, kind: Kind, name: &str) -> Option<ChildEntry> {
    row(kind).and_then(|row| (row.get)(reader, name))
}

/// Takes in how a child is after a write.
pub(crate) fn observe(world: &World, kind: Kind, object: &DynamicObject) {
    if let Some(row) = row(kind) {
        (row.observe)(world, object);
    }
}

/// All children that the object with this uid controls, of the kinds that go when they are not wanted any more.
pub(crate) fn owned_by(reader: &mut Reader, uid: &str) -> Vec<(Kind, ChildEntry)> {
    let key = owner_key(uid);
    let rows = ROWS.iter().filter(|row| row.pruned);
    rows.flat_map(|row| (row.owned)(reader, &key).into_iter().map(|child| (row.kind, child))).collect()
}

fn get_of<W: Watched<Kept = Kept<F>>, F>(reader: &mut Reader, name: &str) -> Option<ChildEntry> {
    let entry = reader.get::<W>(name)?;
    Some(ChildEntry { name: name.into(), meta: entry.meta, observed: entry.kept.observed })
}

fn owned_of<W: Watched<Kept = Kept<F>>, F>(reader: &mut Reader, key: &str) -> Vec<ChildEntry> {
    let found = reader.by_index::<W>(key).into_iter();
    found.map(|(name, entry)| ChildEntry { name, meta: entry.meta, observed: entry.kept.observed }).collect()
}
