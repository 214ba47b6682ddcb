//! Which tools come from which backend. Nothing here does I/O.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use skep_mcp::List;

use crate::catalog::Catalog;

/// How many tools of a backend are listed, as for a single server.
const OF_BACKEND: usize = 200;
/// How many are listed of all backends: an object has a limited size.
const OF_ALL: usize = 2_000;
/// The longest name.
const NAME: usize = 128;

/// The tools of each backend.
pub(super) struct ToolsOf<'a> {
    /// By the names that clients use, with those at the backend.
    offered: BTreeMap<&'a str, Vec<(&'a str, &'a str)>>,
    hidden: BTreeMap<&'a str, Vec<&'a str>>,
    /// How many more can be listed.
    left: usize,
}

impl<'a> ToolsOf<'a> {
    pub(super) fn new(catalog: &'a Catalog) -> Self {
        let mut offered: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for tool in catalog.table(List::Tools).iter() {
            if let Some(origin) = tool.origin() {
                offered.entry(&origin.backend).or_default().push((&tool.key, &origin.name));
            }
        }
        let mut hidden: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for origin in &catalog.hidden {
            hidden.entry(&origin.backend).or_default().push(&origin.name);
        }
        Self { offered, hidden, left: OF_ALL }
    }

    /// Adds the tools of a backend to its state.
    pub(super) fn describe(&mut self, backend: &Arc<str>, state: &mut Value) {
        let offered = self.offered.get(&**backend).map(Vec::as_slice).unwrap_or_default();
        state["toolCount"] = offered.len().into();
        let listed: Vec<Value> = offered
            .iter()
            .take(OF_BACKEND.min(self.left))
            .map(|(name, original)| {
                let mut tool = json!({"name": truncated(name)});
                if name != original {
                    tool["originalName"] = truncated(original).into();
                }
                tool
            })
            .collect();
        let hidden = self.hidden.get(&**backend).map(Vec::as_slice).unwrap_or_default();
        let room = OF_BACKEND.min(self.left - listed.len());
        let hidden: Vec<Value> = hidden.iter().take(room).map(|name| truncated(name).into()).collect();
        self.left -= listed.len() + hidden.len();
        if !listed.is_empty() {
            state["tools"] = listed.into();
        }
        if !hidden.is_empty() {
            state["hiddenTools"] = hidden.into();
        }
    }
}

/// The start of a name, without control characters.
fn truncated(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(NAME).collect()
}

#[cfg(test)]
mod tests {
    use skep_api::vmcp::{Aggregation, ConflictResolution, ConflictResolutionConfig};

    use super::*;
    use crate::catalog::{Item, Lists, Member};

    fn member(backend: &str, tools: impl IntoIterator<Item = String>) -> Member {
        let item = |name: String| Item { json: json!({"name": name}).to_string().into(), key: name.into() };
        let lists = Lists { tools: tools.into_iter().map(item).collect(), ..Lists::default() };
        Member { backend: backend.into(), lists: Arc::new(lists) }
    }

    fn states(members: &[Member], aggregation: &Aggregation) -> Vec<Value> {
        let catalog = Catalog::new(members, aggregation, &[], &[]);
        let mut tools = ToolsOf::new(&catalog);
        let state = |member: &Member| {
            let mut state = json!({});
            tools.describe(&member.backend, &mut state);
            state
        };
        members.iter().map(state).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_tool_is_listed_with_its_backend_and_one_that_another_hides_is_reported() {
        let members = [member("a", names(&["read", "write"])), member("b", names(&["read", "list"]))];
        let prefixed = states(&members, &Aggregation::default());
        assert_eq!(
            prefixed[0],
            json!({"toolCount": 2, "tools": [
                {"name": "a_read", "originalName": "read"}, {"name": "a_write", "originalName": "write"},
            ]})
        );
        let priority = Aggregation {
            conflict_resolution: Some(ConflictResolution::Priority),
            conflict_resolution_config: Some(ConflictResolutionConfig {
                priority_order: names(&["b", "a"]),
                ..ConflictResolutionConfig::default()
            }),
            ..Aggregation::default()
        };
        assert_eq!(
            states(&members, &priority),
            [
                json!({"toolCount": 1, "tools": [{"name": "write"}], "hiddenTools": ["read"]}),
                json!({"toolCount": 2, "tools": [{"name": "list"}, {"name": "read"}]}),
            ]
        );
    }

    #[test]
    fn very_many_tools_are_counted_and_some_are_listed() {
        let many = |backend: &str| member(backend, (0..5_000).map(|number| format!("{number:0200}")));
        let members: Vec<Member> = (0..30).map(|number| many(&format!("b{number:02}"))).collect();
        let states = states(&members, &Aggregation::default());
        let listed = |state: &Value| state["tools"].as_array().map(Vec::len).unwrap_or_default();
        assert!(states.iter().all(|state| state["toolCount"] == 5_000));
        assert_eq!(listed(&states[0]), OF_BACKEND);
        assert_eq!(states.iter().map(listed).sum::<usize>(), OF_ALL);
        assert!(json!(states).to_string().len() < 700_000);
    }
}
