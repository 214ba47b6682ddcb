//! Reading the lists of a backend, page by page.

use std::collections::HashSet;

use serde_json::json;
use skep_mcp::{List, Raw};

use super::{Backend, BackendError, Caller, Link};
use crate::{
    catalog::{Item, Lists, list_page},
    limits,
};

/// The lists, and the methods that return them.
const LISTS: [(List, &str); 4] = [
    (List::Tools, "tools/list"),
    (List::Prompts, "prompts/list"),
    (List::Resources, "resources/list"),
    (List::ResourceTemplates, "resources/templates/list"),
];
/// The code of JSON-RPC for a method that a server does not have.
const METHOD_NOT_FOUND: i64 = -32601;

impl Backend {
    /// Reads all lists that the backend declares. If one of them fails, all do: a part would look like the whole.
    pub(crate) async fn lists(&self, link: &Link, caller: &Caller) -> Result<Lists, BackendError> {
        let declared = LISTS.iter().filter(|(list, _)| link.capabilities.has(*list));
        let read = declared.map(|(list, method)| async move {
            match self.list(link, caller, *list, method).await {
                // Older servers have resources and no templates.
                Err(BackendError::Rpc { code: METHOD_NOT_FOUND, .. }) if *list == List::ResourceTemplates => {
                    Ok((*list, Vec::new()))
                }
                items => items.map(|items| (*list, items)),
            }
        });
        let mut lists = Lists::default();
        for (list, items) in futures::future::try_join_all(read).await? {
            *lists.of_mut(list) = items;
        }
        if lists.len() > limits::ITEMS {
            return Err(BackendError::TooMany("items"));
        }
        if lists.bytes() > limits::LIST_BYTES {
            return Err(BackendError::TooMany("bytes"));
        }
        if caller.holder.is_some() {
            let mut memory = self.budget_of(caller).share();
            // As they were received, and as clients see them.
            memory.grow(2 * lists.bytes()).map_err(|_| BackendError::NoMemory)?;
            lists.memory = memory.into();
        }
        Ok(lists)
    }

    async fn list(
        &self,
        link: &Link,
        caller: &Caller,
        list: List,
        method: &str,
    ) -> Result<Vec<Item>, BackendError> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        let (mut keys, mut cursors) = (HashSet::new(), HashSet::new());
        let mut params = None;
        loop {
            let result = self.call(link, caller, method, params.as_ref()).await?;
            let result = Raw::spelled(&result).ok_or(BackendError::Malformed)?;
            let page = list_page(result, list).map_err(|_| BackendError::Malformed)?;
            // Of several with one name, nobody could say which is meant.
            let known = items.len();
            items.extend(page.into_iter().filter(|item| keys.insert(item.key.clone())));
            bytes += items.iter().skip(known).map(Item::bytes).sum::<usize>();
            if bytes > limits::LIST_BYTES {
                return Err(BackendError::TooMany("bytes"));
            }
            let Some(next) = result.get("nextCursor").and_then(Raw::as_text).filter(|next| !next.is_empty())
            else {
                return Ok(items);
            };
            // A cursor that was there before would lead in a circle.
            if items.len() > limits::ITEMS
                || cursors.len() >= limits::PAGES
                || !cursors.insert(next.to_string())
            {
                return Err(BackendError::TooMany("pages"));
            }
            params = Some(json!({"cursor": next}));
        }
    }
}
