//! One list of a virtual server.

use std::{fmt, sync::Arc};

use skep_gateway::{message::ToolHints, middleware::tool_hints};
use skep_mcp::{Era, Raw};

use super::{
    composites::Composite,
    conflicts::Candidate,
    page::{InvalidCursor, Page},
    rename::{Changes, changed, without},
};
use crate::views::Found;

/// An item that is offered, and where it is.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The name, URI or URI template that clients use.
    pub(crate) key: Box<str>,
    pub(crate) provider: Provider,
    /// All of it, as clients see it.
    json: Box<str>,
    /// The same for clients before 2026-07-28, where that is different.
    older: Option<Box<str>>,
    is_listed: bool,
}

/// Who provides an item.
#[derive(Clone, Debug)]
pub(crate) enum Provider {
    Backend(Origin),
    Composite(Arc<Composite>),
    /// The tool that runs scripts.
    Scripts,
}

/// Where an item of a backend comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Origin {
    pub(crate) backend: Arc<str>,
    /// The name, URI or URI template there.
    pub(crate) name: Box<str>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.backend, self.name)
    }
}

/// A tool of a backend, which clients need not see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackendTool<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) origin: &'a Origin,
}

impl Entry {
    /// A tool of the virtual server itself.
    pub(super) fn own(name: &str, provider: Provider, json: String) -> Self {
        Self { key: name.into(), provider, json: json.into(), older: None, is_listed: true }
    }

    /// All of it, as clients see it.
    pub(crate) fn json(&self) -> &str {
        &self.json
    }

    /// Its hints, read without a tree: a hostile backend may send very many values.
    pub(crate) fn hints(&self) -> ToolHints {
        tool_hints(Raw::spelled(&self.json).and_then(|tool| tool.get("annotations")))
    }

    /// The same for clients of this era.
    pub(crate) fn json_for(&self, era: Era) -> &str {
        self.older.as_deref().filter(|_| era == Era::Legacy).unwrap_or(&self.json)
    }

    /// Where it comes from, if a backend provides it.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        match &self.provider {
            Provider::Backend(origin) => Some(origin),
            Provider::Composite(_) | Provider::Scripts => None,
        }
    }

    /// Who has it. Nobody has all that a script may call.
    pub(crate) fn found(&self) -> Option<Found> {
        let backend = match &self.provider {
            Provider::Backend(origin) => Some(origin.backend.clone()),
            Provider::Composite(_) => None,
            Provider::Scripts => return None,
        };
        Some(Found { backend, is_named: true })
    }

    /// The workflow that it runs, if it is a composite tool.
    pub(crate) fn composite(&self) -> Option<&Arc<Composite>> {
        match &self.provider {
            Provider::Composite(composite) => Some(composite),
            Provider::Backend(_) | Provider::Scripts => None,
        }
    }

    fn as_backend_tool(&self) -> Option<BackendTool<'_>> {
        Some(BackendTool { entry: self, origin: self.origin()? })
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
            if *candidate.name != *candidate.origin.name {
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
        self.named_so(key).find(|entry| entry.is_listed)
    }

    /// The tool that a step calls: as workload.tool, or by the name that clients use. It is always one of a backend, so that
    /// no workflow runs another. Where a name begins with that of a workload, no tool of another one is meant, whatever that calls
    /// its tools.
    pub(crate) fn step(&self, name: &str) -> Option<BackendTool<'_>> {
        let within = |tool: &BackendTool<'_>| {
            name.strip_prefix(&*tool.origin.backend).and_then(|rest| rest.strip_prefix('.'))
        };
        let mut tools = self.0.iter().filter_map(Entry::as_backend_tool);
        if let Some(tool) = tools.find(|tool| within(tool).is_some_and(|rest| *rest == *tool.origin.name)) {
            return Some(tool);
        }
        let found = self.named_so(name).find_map(Entry::as_backend_tool)?;
        let mut others = self.0.iter().filter_map(Entry::as_backend_tool);
        let is_of_another =
            others.any(|tool| tool.origin.backend != found.origin.backend && within(&tool).is_some());
        (!is_of_another).then_some(found)
    }

    /// The items of this key: one that clients see, and one of a backend that it hides.
    fn named_so(&self, key: &str) -> impl Iterator<Item = &Entry> {
        let first = self.0.partition_point(|entry| *entry.key < *key);
        self.0.iter().skip(first).take_while(move |entry| *entry.key == *key)
    }

    /// The same with these items.
    pub(super) fn with(mut self, own: Vec<Entry>) -> Self {
        self.0.extend(own);
        self.0.sort_by(|one, other| one.key.cmp(&other.key));
        self
    }

    /// All items that clients can see.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| entry.is_listed)
    }

    /// One page of the list.
    pub(crate) fn page(&self, cursor: Option<&str>, era: Era) -> Result<Page, InvalidCursor> {
        Page::after(cursor, self.0.iter().filter(|entry| entry.is_listed), era)
    }
}

impl From<Candidate> for Entry {
    fn from(candidate: Candidate) -> Self {
        let Candidate { origin, name, json, is_listed } = candidate;
        let older = older(&json);
        Self { key: name.into(), provider: Provider::Backend(origin), json, older, is_listed }
    }
}

/// A tool as clients before 2026-07-28 know it, if that is different: the results of tools are objects there. One tool with another
/// schema would make them reject the whole list.
fn older(json: &str) -> Option<Box<str>> {
    const OUTPUT: &str = "outputSchema";
    if !json.contains(OUTPUT) {
        return None;
    }
    let item = Raw::spelled(json)?;
    let is_object = item.get(OUTPUT)?.get("type").and_then(Raw::as_text).is_some_and(|name| name == "object");
    (!is_object).then(|| without(json, OUTPUT))
}
