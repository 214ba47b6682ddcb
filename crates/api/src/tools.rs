//! The metadata of a tool as clients see it.

use std::collections::{BTreeMap, btree_map::Entry};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{apply, skip_serializing_none};

use crate::unset;

/// Hints about what a tool does, for clients that decide whether to prompt before they call it. Nothing enforces
/// them.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A display title.
    pub title: Option<String>,
    /// Whether the tool only reads.
    pub read_only_hint: Option<bool>,
    /// Whether the tool may delete or overwrite something. It has no meaning for a tool that only reads.
    pub destructive_hint: Option<bool>,
    /// Whether a second call with the same arguments has no further effect.
    pub idempotent_hint: Option<bool>,
    /// Whether the tool interacts with external systems, such as a web search.
    pub open_world_hint: Option<bool>,
}

/// Overrides of a tool's metadata. Fields that are not set keep the server's values.
#[apply(Option<String> => #[serde(default, deserialize_with = "unset::non_zero")])]
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOverride {
    /// The name to offer the tool under.
    pub name: Option<String>,
    /// The description to offer the tool with.
    pub description: Option<String>,
    /// Hints to offer the tool with. Those not set keep the server's values.
    pub annotations: Option<ToolAnnotations>,
}

/// The overrides that give a tool the name of another one: each tool, that name, and the one that has it before. Clients could not
/// tell them apart.
pub fn same_names(overrides: &BTreeMap<String, ToolOverride>) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut known = BTreeMap::new();
    overrides.iter().filter_map(move |(tool, change)| {
        let name = change.name.as_deref().filter(|name| !name.is_empty())?;
        match known.entry(name) {
            Entry::Vacant(free) => {
                free.insert(&**tool);
                None
            }
            Entry::Occupied(first) => Some((&**tool, name, *first.get())),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_two_tools_would_have_is_found() {
        let overrides = [("a", "x"), ("b", ""), ("c", "y"), ("d", "x"), ("e", "")];
        let overrides = overrides.map(|(tool, name)| {
            (tool.to_owned(), ToolOverride { name: Some(name.to_owned()), ..ToolOverride::default() })
        });
        assert_eq!(same_names(&overrides.into()).collect::<Vec<_>>(), [("d", "x", "a")]);
    }
}
