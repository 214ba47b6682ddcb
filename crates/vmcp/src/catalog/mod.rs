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
    scripts::{self, EXECUTE_TOOL_SCRIPT},
    search::ToolIndex,
};
use composites::Composites;
pub(crate) use composites::{Composite, LeftOut, NotOffered};
use conflicts::{Candidate, Names};
pub(crate) use lists::{Item, Lists, field, page as list_page};
#[cfg(test)]
use page::InvalidCursor;
pub(crate) use page::Page;
pub(crate) use rename::described;
pub(crate) use table::{Entry, Table};
use tools::ToolRules;
use uri_template::UriTemplate;

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
    composites: Composites,
    /// The composite tools that are not offered.
    pub(crate) left_out: Vec<LeftOut>,
    prompts: Table,
    resources: Table,
    templates: Table,
    /// Tools of backends that clients would see if no other had the name: each with its backend.
    pub(crate) hidden: Vec<(Arc<str>, Box<str>)>,
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
    /// No tool of theirs has the name of one of the virtual server's own.
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
        let place = |tool: &Candidate| (tool.backend.clone(), tool.original.clone());
        let listed: Vec<_> = tools.iter().filter(|tool| tool.is_listed).map(place).collect();
        let (mut tools, unresolved) = names.tools(tools);
        // Policies do not decide about these names, so that no workflow may reach such a tool either.
        tools.retain(|tool| {
            let is_own = own_tools.contains(&&*tool.name);
            if is_own {
                warn!(
                    tool = &*tool.name,
                    "the virtual server has a tool of this name; that of a backend is hidden"
                );
            }
            !is_own
        });
        let offered: HashSet<_> = tools.iter().map(place).collect();
        let hidden = listed.into_iter().filter(|place| !offered.contains(place)).collect();
        let tools = Table::named(tools);
        let (mut composed, composites, left_out) = composites::offered(composites, &tools, own_tools);
        if own_tools.contains(&EXECUTE_TOOL_SCRIPT) {
            composed.push(Candidate::own(EXECUTE_TOOL_SCRIPT, scripts::tool()));
        }
        Self {
            tools: tools.with(composed),
            composites,
            left_out,
            hidden,
            prompts: Table::named(names.prompts(candidates(List::Prompts))),
            resources: Table::by_key(names.addresses(candidates(List::Resources))),
            templates: Table::by_key(names.addresses(candidates(List::ResourceTemplates))),
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

    /// The composite tool of this name, if it is offered.
    pub(crate) fn composite(&self, name: &str) -> Option<&Arc<Composite>> {
        self.composites.get(name)
    }

    /// Where a resource is read: at the backend that has it, or else at the one whose template fits.
    pub(crate) fn resource(&self, uri: &str) -> Option<&Entry> {
        let fits = |entry: &&Entry| UriTemplate::new(&entry.key).matches(uri);
        self.resources
            .get(uri)
            .or_else(|| self.templates.get(uri))
            .or_else(|| self.templates.iter().find(fits))
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

#[cfg(test)]
mod tests;
