//! Pages of a list. Items have a stable order, so a cursor is the last key of the page before: whatever is added or
//! removed meanwhile, no item is skipped and none is repeated.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use skep_mcp::Era;

use super::Entry;
use crate::limits;

/// A part of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// The items, as an array.
    pub(crate) items: String,
    /// Where the next page starts, if there is one.
    pub(crate) next: Option<String>,
}

/// A cursor that no page returned.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidCursor;

impl Page {
    /// The page at this cursor, of items in the order of their keys.
    pub(super) fn after<'a>(
        cursor: Option<&str>,
        entries: impl Iterator<Item = &'a Entry>,
        era: Era,
    ) -> Result<Self, InvalidCursor> {
        let last = cursor.map(decoded).transpose()?;
        let mut rest = entries.skip_while(|entry| last.as_deref().is_some_and(|last| *entry.key <= *last));
        let mut page = Self { items: "[".into(), next: None };
        let mut last = None;
        for entry in rest.by_ref().take(limits::PAGE_ITEMS) {
            if last.is_some() {
                page.items.push(',');
            }
            page.items.push_str(entry.json_for(era));
            last = Some(&entry.key);
            if page.items.len() >= limits::PAGE_BYTES {
                break;
            }
        }
        page.items.push(']');
        page.next = rest.next().and(last).map(|key| URL_SAFE_NO_PAD.encode(&**key));
        Ok(page)
    }
}

fn decoded(cursor: &str) -> Result<String, InvalidCursor> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| InvalidCursor)?;
    String::from_utf8(bytes).ok().filter(|key| !key.is_empty()).ok_or(InvalidCursor)
}
