//! Names that several backends have.

use std::{collections::BTreeMap, sync::Arc};

use skep_api::vmcp::{Aggregation, ConflictResolution};
use tracing::warn;

use super::{Item, NAMED, table::Origin};

/// The prefix of backends that no order of priority names.
const DEFAULT_PREFIX: &str = "{workload}_";

/// An item of a backend, which may be offered.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) origin: Origin,
    /// The name that it is offered under.
    pub(super) name: String,
    pub(super) json: Box<str>,
    /// Whether clients see it. Others can be used by workflows only.
    pub(super) is_listed: bool,
}

impl Candidate {
    pub(super) fn new(backend: &Arc<str>, item: &Item) -> Self {
        Self {
            origin: Origin { backend: backend.clone(), name: item.key.clone() },
            name: item.key.clone().into(),
            json: item.json.clone(),
            is_listed: true,
        }
    }

    fn prefixed(mut self, format: &str) -> Self {
        self.name = format!("{}{}", format.replace("{workload}", &self.origin.backend), self.name);
        self
    }
}

/// How names are made unique.
pub(super) struct Names<'a> {
    strategy: ConflictResolution,
    prefix: &'a str,
    order: &'a [String],
}

impl<'a> Names<'a> {
    pub(super) fn new(aggregation: &'a Aggregation) -> Self {
        let config = aggregation.conflict_resolution_config.as_ref();
        Self {
            strategy: aggregation.conflict_resolution.unwrap_or_default(),
            prefix: config.and_then(|config| config.prefix_format.as_deref()).unwrap_or(DEFAULT_PREFIX),
            order: config.map(|config| &*config.priority_order).unwrap_or_default(),
        }
    }

    /// The tools under unique names, and the names that would have to be overridden.
    pub(super) fn tools(&self, tools: Vec<Candidate>) -> (Vec<Candidate>, Vec<String>) {
        match self.strategy {
            ConflictResolution::Prefix => {
                (first_of_each(tools.into_iter().map(|tool| tool.prefixed(self.prefix))), Vec::new())
            }
            ConflictResolution::Priority => {
                let resolved = by_name(tools).into_values().flat_map(|rivals| self.by_priority(rivals));
                (first_of_each(resolved), Vec::new())
            }
            ConflictResolution::Manual => {
                let is_of_one = |rivals: &Vec<Candidate>| {
                    rivals.windows(2).all(|pair| pair[0].origin.backend == pair[1].origin.backend)
                };
                let (unique, rivals): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    by_name(tools).into_iter().partition(|(_, rivals)| is_of_one(rivals));
                (first_of_each(unique.into_values().flatten()), rivals.into_keys().collect())
            }
        }
    }

    /// The prompts under unique names. If names are still not unique, none of them is offered: a client could not know
    /// which one it gets.
    pub(super) fn prompts(&self, prompts: Vec<Candidate>) -> Vec<Candidate> {
        let named = prompts.into_iter().map(|prompt| match self.strategy {
            ConflictResolution::Priority if self.rank(&prompt).is_some() => prompt,
            ConflictResolution::Priority => prompt.prefixed(DEFAULT_PREFIX),
            ConflictResolution::Prefix | ConflictResolution::Manual => prompt.prefixed(self.prefix),
        });
        let resolved = by_name(named).into_iter().filter_map(|(name, mut rivals)| {
            rivals.sort_by_key(|rival| self.rank(rival));
            if rivals.len() > 1 && rivals.iter().any(|rival| self.rank(rival).is_none()) {
                warn!(prompt = name, "several backends have this prompt; none is offered");
                return None;
            }
            rivals.into_iter().next()
        });
        resolved.collect()
    }

    /// Resources and templates keep their addresses: the first backend in the order of priority, and then of names, has
    /// each. They are in this order.
    pub(super) fn addresses(&self, items: Vec<Candidate>) -> Vec<Candidate> {
        let place = |item: &Candidate| (self.rank(item).unwrap_or(usize::MAX), item.origin.backend.clone());
        let (mut best, mut lost) = (Vec::new(), Vec::new());
        for mut rivals in by_name(items).into_values() {
            rivals.sort_by_key(place);
            let mut rivals = rivals.into_iter();
            best.extend(rivals.next());
            lost.extend(rivals.map(|rival| rival.origin.to_string()));
        }
        if !lost.is_empty() {
            let named = lost.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            warn!(
                count = lost.len(),
                addresses = named,
                "resources are hidden: other backends have their addresses"
            );
        }
        best.sort_by_key(place);
        best
    }

    /// The tool of the backend that comes first. If none of them has a place in the order, each gets a prefix.
    fn by_priority(&self, rivals: Vec<Candidate>) -> Vec<Candidate> {
        if rivals.len() == 1 {
            return rivals;
        }
        match rivals.iter().filter(|rival| self.rank(rival).is_some()).min_by_key(|rival| self.rank(rival)) {
            Some(best) => vec![best.clone()],
            None => rivals.into_iter().map(|rival| rival.prefixed(DEFAULT_PREFIX)).collect(),
        }
    }

    /// The place of a backend in the order of priority.
    fn rank(&self, candidate: &Candidate) -> Option<usize> {
        let is_prioritised = self.strategy == ConflictResolution::Priority;
        self.order.iter().position(|name| **name == *candidate.origin.backend).filter(|_| is_prioritised)
    }
}

fn by_name(candidates: impl IntoIterator<Item = Candidate>) -> BTreeMap<String, Vec<Candidate>> {
    let mut names: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        names.entry(candidate.name.clone()).or_default().push(candidate);
    }
    names
}

/// The first of several that have one name, for example `a_` and `b` beside `a` and `_b`.
fn first_of_each(candidates: impl IntoIterator<Item = Candidate>) -> Vec<Candidate> {
    by_name(candidates).into_values().filter_map(|rivals| rivals.into_iter().next()).collect()
}
