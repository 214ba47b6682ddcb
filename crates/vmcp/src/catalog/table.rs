//! One list of a virtual server.

use std::sync::Arc;

use super::{
    conflicts::Candidate,
    page::{InvalidCursor, Page},
    rename::{Changes, changed},
};

/// An item that is offered, and where it is.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name, URI or URI template that clients use.
    pub(crate) key: Box<str>,
    /// The backend that has it.
    pub(crate) backend: Arc<str>,
    /// What it is there.
    pub(crate) original: Box<str>,
    /// All of it, as clients see it.
    pub(super) json: Box<str>,
    is_listed: bool,
}

impl Entry {
    /// All of it, as clients see it.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    /// Whether parameters of a tool are also sent in headers, since 2026-07-28.
    pub(crate) fn mirrors_parameters(&self) -> bool {
        self.json.contains("\"x-mcp-header\"")
    }
}

/// Items in the order of their keys.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Entry>);

impl Table {
    /// Items that have their names in their JSON.
    pub(super) fn named(candidates: Vec<Candidate>) -> Self {
        let renamed = candidates.into_iter().map(|mut candidate| {
            if *candidate.name != *candidate.original {
                let changes = Changes { name: Some(&candidate.name), ..Changes::default() };
                candidate.json = changed(&candidate.json, changes);
            }
            candidate
        });
        Self::by_key(renamed.collect())
    }

    pub(super) fn by_key(candidates: Vec<Candidate>) -> Self {
        let mut entries: Vec<Entry> = candidates.into_iter().map(Entry::from).collect();
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        Self(entries)
    }

    /// The item that clients know by this key, if they can see it.
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        let index = self.0.binary_search_by(|entry| (*entry.key).cmp(key)).ok()?;
        self.0.get(index).filter(|entry| entry.is_listed)
    }

    /// The tool that a step calls: by the name that clients use, or as workload.tool. Clients need not see it.
    pub(crate) fn step(&self, name: &str) -> Option<&Entry> {
        let index = self.0.binary_search_by(|entry| (*entry.key).cmp(name)).ok();
        let is_named = |entry: &&Entry| {
            let tool = name.strip_prefix(&*entry.backend).and_then(|rest| rest.strip_prefix('.'));
            tool.is_some_and(|tool| *tool == *entry.original)
        };
        let of_backend = |entry: &&Entry| !entry.backend.is_empty();
        let found = index.and_then(|index| self.0.get(index)).filter(of_backend);
        found.or_else(|| self.0.iter().filter(of_backend).find(is_named))
    }

    /// The same with these items, of which none replaces one that clients do not see.
    pub(super) fn with(mut self, candidates: Vec<Candidate>) -> Self {
        self.0.extend(candidates.into_iter().map(Entry::from));
        self.0.sort_by(|one, other| (&one.key, !one.is_listed).cmp(&(&other.key, !other.is_listed)));
        self
    }

    /// All items that clients can see.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| entry.is_listed)
    }

    /// One page of the list.
    pub(crate) fn page(&self, cursor: Option<&str>) -> Result<Page, InvalidCursor> {
        Page::after(cursor, self.0.iter().filter(|entry| entry.is_listed))
    }
}

impl From<Candidate> for Entry {
    fn from(candidate: Candidate) -> Self {
        let Candidate { backend, original, name, json, is_listed } = candidate;
        Self { key: name.into(), backend, original, json, is_listed }
    }
}
