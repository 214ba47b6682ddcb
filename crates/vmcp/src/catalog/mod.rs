//! What a virtual server offers: the lists of its backends, joined under names that are unique.
//!
//! Computed once for each set of lists, and shared by all sessions that see the same. Nothing here does I/O.

mod composites;
mod conflicts;
mod index;
mod lists;
mod page;
mod rename;
mod table;
mod tools;
mod uri_template;

use std::{collections::HashSet, sync::Arc};

use skep_api::vmcp::{Aggregation, ConflictResolution};
use skep_mcp::List;
use tokio::sync::OnceCell;
use tracing::warn;

use crate::{
    limits,
    scripts::{self, EXECUTE_TOOL_SCRIPT},
    search::ToolIndex,
};
pub(crate) use composites::{Composite, LeftOut, NotOffered};
use conflicts::{Candidate, Names};
pub(crate) use lists::{Item, Lists, field, page as list_page};
#[cfg(test)]
use page::InvalidCursor;
pub(crate) use page::Page;
pub(crate) use rename::described;
pub(crate) use table::{BackendTool, Entry, Origin, Provider, Table};
use tools::ToolRules;
use uri_template::UriTemplate;

/// How many tools a line of the log names.
const NAMED: usize = 20;
/// How many resource templates are compared with each other.
const COMPARED: usize = 100;

/// One backend, with what it offers.
#[derive(Clone)]
pub(crate) struct Member {
    /// The name of the backend.
    pub(crate) backend: Arc<str>,
    pub(crate) lists: Arc<Lists>,
}

/// What a virtual server offers.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    tools: Table,
    /// The composite tools that are not offered.
    pub(crate) left_out: Vec<LeftOut>,
    prompts: Table,
    resources: Table,
    templates: Table,
    /// The templates in the order in which a URI is compared with them.
    compared: Vec<Box<str>>,
    /// Tools of backends that clients would see if no other tool had the name.
    pub(crate) hidden: Vec<Origin>,
    /// Names that several backends have, where each must have an override and does not.
    unresolved: Vec<String>,
    /// Whether it is of no backend at all.
    is_of_none: bool,
    /// The index of its tools, once they have been searched.
    pub(crate) search: OnceCell<Arc<ToolIndex>>,
}

impl Catalog {
    /// The catalog of these backends, which are in the order of their names.
    ///
    /// No backend decides what clients get under a name that the administrator has given to a composite tool, offered or not:
    /// policies for that name are about it. Nor under that of one of the virtual server's own tools.
    pub(crate) fn new(
        members: &[Member],
        aggregation: &Aggregation,
        composites: &[Arc<Composite>],
        own_tools: &[&str],
    ) -> Self {
        let names = Names::new(aggregation);
        let rules = ToolRules::new(aggregation);
        let candidates = |list: List| -> Vec<Candidate> {
            let items = members.iter().flat_map(|member| {
                member.lists.of(list).iter().map(|item| Candidate::new(&member.backend, item))
            });
            items.collect()
        };
        let tools: Vec<Candidate> =
            candidates(List::Tools).into_iter().map(|tool| rules.applied(tool)).collect();
        let origins = |tools: &[Candidate]| -> HashSet<Origin> {
            tools.iter().filter(|tool| tool.is_listed).map(|tool| tool.origin.clone()).collect()
        };
        let listed = origins(&tools);
        let (mut tools, unresolved) = names.tools(tools);
        // Policies do not decide about these names, so that no workflow may reach such a tool either.
        tools.retain(|tool| !own_tools.contains(&&*tool.name));
        for tool in &mut tools {
            tool.is_listed &= !composites.iter().any(|composite| *composite.name == *tool.name);
        }
        let offered = origins(&tools);
        let mut hidden: Vec<Origin> = listed.into_iter().filter(|origin| !offered.contains(origin)).collect();
        hidden.sort();
        if !hidden.is_empty() {
            let named: Vec<String> = hidden.iter().take(NAMED).map(Origin::to_string).collect();
            warn!(
                count = hidden.len(),
                tools = named.join(", "),
                "tools are hidden: others have their names"
            );
        }
        let tools = Table::named(tools);
        let (mut own, left_out) = composites::offered(composites, &tools, own_tools);
        if own_tools.contains(&EXECUTE_TOOL_SCRIPT) {
            own.push(Entry::own(EXECUTE_TOOL_SCRIPT, Provider::Scripts, scripts::tool()));
        }
        let templates = names.addresses(candidates(List::ResourceTemplates));
        warn_of_overlaps(&templates);
        Self {
            tools: tools.with(own),
            left_out,
            hidden,
            prompts: Table::named(names.prompts(candidates(List::Prompts))),
            resources: Table::by_key(names.addresses(candidates(List::Resources))),
            compared: templates.iter().map(|template| template.origin.name.clone()).collect(),
            templates: Table::by_key(templates),
            unresolved,
            is_of_none: members.is_empty(),
            search: OnceCell::new(),
        }
    }

    /// What is offered in a list.
    pub(crate) fn table(&self, list: List) -> &Table {
        match list {
            List::Tools => &self.tools,
            List::Prompts => &self.prompts,
            List::Resources => &self.resources,
            List::ResourceTemplates => &self.templates,
        }
    }

    /// Where a resource is read: at the backend that has it, or else at the first in the order of priority whose template fits.
    pub(crate) fn resource(&self, uri: &str) -> Option<&Entry> {
        // A request compares it with very many templates.
        let is_short = uri.len() <= limits::URI;
        let mut compared = self.compared.iter();
        let fitting =
            || self.templates.get(compared.find(|template| UriTemplate::new(template).matches(uri))?);
        let expanded = || is_short.then(fitting).flatten();
        self.resources.get(uri).or_else(|| self.templates.get(uri)).or_else(expanded)
    }

    /// Whether no backend has been listed, so that there is nothing in it.
    pub(crate) fn is_of_none(&self) -> bool {
        self.is_of_none
    }

    /// Why the tools cannot be listed, if they cannot.
    pub(crate) fn conflict(&self) -> Option<String> {
        let name = self.unresolved.first()?;
        Some(format!(
            "aggregation.conflictResolution is {}, and several backends have a tool {name:?}: give each of them \
             another name in aggregation.tools[].overrides",
            ConflictResolution::Manual.as_str()
        ))
    }
}

/// Logs which templates of different backends fit the same resources, as far as one of them fits the text of the other.
fn warn_of_overlaps(templates: &[Candidate]) {
    let compared = &templates[..templates.len().min(COMPARED)];
    let fits = |one: &Candidate, other: &Candidate| UriTemplate::new(&one.name).matches(&other.name);
    let pairs = compared.iter().enumerate().flat_map(|(place, first)| {
        let later = compared.iter().skip(place + 1);
        later.map(move |second| (first, second))
    });
    let overlaps = pairs.filter(|(first, second)| {
        first.origin.backend != second.origin.backend && (fits(first, second) || fits(second, first))
    });
    for (first, second) in overlaps.take(NAMED) {
        let (first, second) = (first.origin.to_string(), second.origin.to_string());
        warn!(
            first,
            second, "resource templates of two backends overlap: resources of both are read at the first"
        );
    }
}

#[cfg(test)]
mod tests;
