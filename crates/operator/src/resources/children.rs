//! Children of any kind that the operator creates: one row per kind, or several where objects of one kind are watched with
//! different selectors.

use kube::core::DynamicObject;
use skep_converge::{Kind, Meta, Observed};
use skep_world::{Entry, Reader, Watched, World};

use super::{
    CachedChild, ConfigMaps, Deployments, ManagedDeployments, ManagedStatefulSets, RoleBindings, Roles,
    Secrets, ServiceAccounts, Services, StatefulSets, owner_key,
};

/// A live child.
pub(crate) struct ChildEntry {
    pub(crate) name: String,
    pub(crate) meta: Meta,
    pub(crate) observed: Observed,
    /// The server that it belongs to by its labels, if it has no controller.
    pub(crate) server: Option<Box<str>>,
    /// Whether it runs pods of an older template.
    pub(crate) is_rolling: bool,
}

impl ChildEntry {
    fn new<F>(name: String, entry: Entry<CachedChild<F>>) -> Self {
        let CachedChild { observed, server, is_rolling, .. } = entry.cached;
        Self { name, meta: entry.meta, observed, server, is_rolling }
    }
}

/// How children of one kind are read.
struct Row {
    kind: Kind,
    selects: fn(&DynamicObject) -> bool,
    get: fn(&mut Reader, &str) -> Option<ChildEntry>,
    owned: fn(&mut Reader, &str) -> Vec<ChildEntry>,
    record_write: fn(&World, &DynamicObject),
    /// Whether a child is deleted when it is no longer desired.
    pruned: bool,
}

impl Row {
    fn of<W: Watched<Cached = CachedChild<F>>, F>() -> Self {
        Self {
            kind: W::kind(),
            selects: W::selects,
            get: get_of::<W, F>,
            owned: owned_of::<W, F>,
            record_write: World::record_write::<W>,
            pruned: true,
        }
    }
}

/// Few and cheap to build, so they are built where they are needed.
fn all_rows() -> [Row; 10] {
    [
        Row::of::<Deployments, _>(),
        Row::of::<ManagedDeployments, _>(),
        Row::of::<Services, _>(),
        Row::of::<ServiceAccounts, _>(),
        Row::of::<Roles, _>(),
        Row::of::<RoleBindings, _>(),
        Row::of::<ConfigMaps, _>(),
        // They are created once, and stay as long as their owner exists.
        Row { pruned: false, ..Row::of::<Secrets, _>() },
        // Proxies create these.
        Row { pruned: false, ..Row::of::<StatefulSets, _>() },
        Row::of::<ManagedStatefulSets, _>(),
    ]
}

fn rows(kind: Kind) -> impl Iterator<Item = Row> {
    debug_assert!(all_rows().iter().any(|row| row.kind == kind), "{} has no row", kind.kind);
    all_rows().into_iter().filter(move |row| row.kind == kind)
}

/// The child of that kind and name, in the newest cached state.
pub(crate) fn get(reader: &mut Reader, kind: Kind, name: &str) -> Option<ChildEntry> {
    let newer =
        |one: ChildEntry, other: ChildEntry| if one.meta.is_older_than(&other.meta) { other } else { one };
    rows(kind).filter_map(|row| (row.get)(reader, name)).reduce(newer)
}

/// Whether a child of this name is watched.
pub(crate) fn is_known(reader: &mut Reader, kind: &str, name: &str) -> bool {
    all_rows().iter().any(|row| row.kind.kind == kind && (row.get)(reader, name).is_some())
}

/// Updates the cache with the response to a write.
pub(crate) fn record_write(world: &World, kind: Kind, object: &DynamicObject) {
    for row in rows(kind).filter(|row| (row.selects)(object)) {
        (row.record_write)(world, object);
    }
}

/// All children of the object with this uid, of the kinds that are pruned: what was applied for it, and what another operator made
/// under one of these names. Other programs create further objects that it controls, so that they are deleted with it.
pub(crate) fn owned_by(reader: &mut Reader, uid: &str, names: &[(Kind, String)]) -> Vec<(Kind, ChildEntry)> {
    let key = owner_key(uid);
    let is_named = |kind: Kind, name: &str| names.iter().any(|named| named.0 == kind && named.1 == name);
    let mut all: Vec<(Kind, ChildEntry)> = Vec::new();
    for row in all_rows().iter().filter(|row| row.pruned) {
        let is_ours = |child: &ChildEntry| {
            child.observed.owned.is_some() || child.observed.takeover && is_named(row.kind, &child.name)
        };
        for child in (row.owned)(reader, &key).into_iter().filter(is_ours) {
            if !all.iter().any(|(kind, other)| *kind == row.kind && other.name == child.name) {
                all.push((row.kind, child));
            }
        }
    }
    all
}

fn get_of<W: Watched<Cached = CachedChild<F>>, F>(reader: &mut Reader, name: &str) -> Option<ChildEntry> {
    reader.get::<W>(name).map(|entry| ChildEntry::new(name.into(), entry))
}

fn owned_of<W: Watched<Cached = CachedChild<F>>, F>(reader: &mut Reader, key: &str) -> Vec<ChildEntry> {
    reader.by_index::<W>(key).into_iter().map(|(name, entry)| ChildEntry::new(name, entry)).collect()
}
