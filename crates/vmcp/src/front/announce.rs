//! Announcements that lists have changed, to clients whose own view has.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use skep_gateway::message::ListFilters;
use skep_mcp::List;

use super::{Front, lists::has_items};
use crate::{
    backend::Caller,
    catalog::{Catalog, Entry, field},
    session::ClientSession,
};

/// A client that listens, as backends and policies see it.
pub(super) struct Listener {
    pub(super) session: Arc<ClientSession>,
    pub(super) caller: Caller,
    pub(super) filters: ListFilters,
}

impl Front {
    /// Notifications of the lists that have changed for a client since it was sent them, or that they have changed.
    pub(super) async fn announcements(&self, listener: &Listener) -> Vec<Bytes> {
        let session = &listener.session;
        let now = self.views.announced(session, &listener.caller).await;
        let mut changed = Vec::new();
        for (list, name) in [
            (List::Tools, "tools"),
            (List::Prompts, "prompts"),
            (List::Resources, "resources"),
            (List::ResourceTemplates, "resources"),
        ] {
            // A client that has not seen any has nothing to see again.
            let Some(before) = session.shown(list).filter(|before| !Arc::ptr_eq(before, &now)) else {
                continue;
            };
            session.show(list, &now);
            if self.differs(list, &before, &now, &listener.filters).await && !changed.contains(&name) {
                changed.push(name);
            }
        }
        let notification =
            |name| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}/list_changed"}}"#).into();
        changed.into_iter().map(notification).collect()
    }

    /// Whether a list is another one, as far as its reader may see it. Policies decide about what has changed alone: a list may be
    /// long, and have many readers.
    async fn differs(&self, list: List, before: &Catalog, now: &Catalog, filters: &ListFilters) -> bool {
        let old: HashSet<&str> = self.shown_entries(list, before).collect();
        let new: HashSet<&str> = self.shown_entries(list, now).collect();
        // Of a tool that has changed, policies remember the hints that come last.
        let changed: Vec<&str> = old.difference(&new).chain(new.difference(&old)).copied().collect();
        if changed.is_empty() || filters.is_empty() {
            return !changed.is_empty();
        }
        let message =
            format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"{}":[{}]}}}}"#, field(list), changed.join(","));
        // What cannot be filtered is not seen.
        filters.seen(message.into_bytes()).await.is_ok_and(|seen| has_items(&seen, list))
    }

    /// What a client is sent of a list before its filters. Clients that search are sent few of the tools, unless the description of
    /// the one that runs scripts has all of them.
    fn shown_entries<'a>(&'a self, list: List, catalog: &'a Catalog) -> impl Iterator<Item = &'a str> {
        let search = self.search.as_ref().filter(|_| list == List::Tools && self.scripts.is_none());
        let is_shown = move |entry: &&Entry| search.is_none_or(|search| search.is_pinned(&entry.key));
        catalog.table(list).iter().filter(is_shown).map(Entry::json)
    }
}
