//! What one backend offers, as it was received.

use std::{fmt, sync::Arc};

use skep_gateway::body::Share;
use skep_mcp::{Fault, Kind, List, Raw};
use tracing::debug;

use super::rename::{with, without};

/// The lists of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) tools: Vec<Item>,
    pub(crate) prompts: Vec<Item>,
    pub(crate) resources: Vec<Item>,
    pub(crate) templates: Vec<Item>,
    pub(crate) memory: Memory,
}

/// What the lists of one caller take of the memory for bodies, while anyone has them. Equal lists may take different shares.
#[derive(Clone, Default)]
pub(crate) struct Memory(Option<Arc<Share>>);

impl From<Share> for Memory {
    fn from(share: Share) -> Self {
        Self(Some(Arc::new(share)))
    }
}

impl PartialEq for Memory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Memory {}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "counted" } else { "not counted" })
    }
}

/// One tool, prompt, resource or resource template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its name, URI or URI template.
    pub(crate) key: Box<str>,
    /// All of it, as it was received.
    pub(crate) json: Box<str>,
}

impl Item {
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + self.json.len()
    }
}

impl Lists {
    pub(crate) fn of(&self, list: List) -> &[Item] {
        match list {
            List::Tools => &self.tools,
            List::Prompts => &self.prompts,
            List::Resources => &self.resources,
            List::ResourceTemplates => &self.templates,
        }
    }

    pub(crate) fn of_mut(&mut self, list: List) -> &mut Vec<Item> {
        match list {
            List::Tools => &mut self.tools,
            List::Prompts => &mut self.prompts,
            List::Resources => &mut self.resources,
            List::ResourceTemplates => &mut self.templates,
        }
    }

    fn all(&self) -> [&[Item]; 4] {
        [&self.tools, &self.prompts, &self.resources, &self.templates]
    }

    pub(crate) fn len(&self) -> usize {
        self.all().map(<[Item]>::len).iter().sum()
    }

    /// How many bytes they have.
    pub(crate) fn bytes(&self) -> usize {
        self.all().into_iter().flatten().map(Item::bytes).sum()
    }
}

/// The field of a result that has a list.
pub(crate) fn field(list: List) -> &'static str {
    match list {
        List::Tools => "tools",
        List::Prompts => "prompts",
        List::Resources => "resources",
        List::ResourceTemplates => "resourceTemplates",
    }
}

/// The field by which an item is identified.
pub(crate) fn key_field(list: List) -> &'static str {
    match list {
        List::Tools | List::Prompts => "name",
        List::Resources => "uri",
        List::ResourceTemplates => "uriTemplate",
    }
}

/// The items of one page. One without a key cannot be used, and is left out, and so is a tool whose arguments are no object: clients
/// would reject the whole list.
pub(crate) fn page(result: Raw<'_>, list: List) -> Result<Vec<Item>, Fault> {
    let items = result.get(field(list)).map(Raw::items).transpose()?.unwrap_or_default();
    let item = |raw: Raw<'_>| {
        let key = raw.get(key_field(list))?.as_text()?;
        let json = if list == List::Tools { callable(raw)? } else { raw.as_str().into() };
        Some(Item { key: key.into(), json })
    };
    Ok(items.into_iter().filter_map(item).collect())
}

/// The tool with a schema of its arguments, unless that is for something else.
fn callable(tool: Raw<'_>) -> Option<Box<str>> {
    const INPUT: &str = "inputSchema";
    const OBJECT: &str = r#"{"type":"object"}"#;
    let Some(schema) = tool.get(INPUT) else { return Some(with(tool.as_str(), INPUT, OBJECT)) };
    match schema.get("type").map(|name| name.as_text()) {
        Some(Some(name)) if name == "object" => Some(tool.as_str().into()),
        None if schema.kind() == Kind::Object => {
            let schema = with(schema.as_str(), "type", r#""object""#);
            Some(with(&without(tool.as_str(), INPUT), INPUT, &schema))
        }
        _ => {
            debug!(
                tool = tool.get("name").map(|name| name.as_str()),
                "the arguments of a tool are no object"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_keeps_its_bytes_and_one_without_a_name_is_left_out() {
        let result = r#"{"prompts":[{"name":"a","x":1e2, "_meta":{}},{"title":"nameless"},{"name":"b"}]}"#;
        let prompts = page(Raw::spelled(result).unwrap(), List::Prompts).unwrap();
        let prompts: Vec<_> = prompts.iter().map(|item| (&*item.key, &*item.json)).collect();
        assert_eq!(prompts, [("a", r#"{"name":"a","x":1e2, "_meta":{}}"#), ("b", r#"{"name":"b"}"#)]);
    }

    #[test]
    fn every_tool_has_a_schema_of_an_object() {
        for (tool, seen) in [
            (
                r#"{"name":"a","inputSchema":{ "type":"object"}}"#,
                Some(r#"{"name":"a","inputSchema":{ "type":"object"}}"#),
            ),
            (r#"{"name":"a"}"#, Some(r#"{"name":"a","inputSchema":{"type":"object"}}"#)),
            (
                r#"{"inputSchema":{"x":1},"name":"a"}"#,
                Some(r#"{"name":"a","inputSchema":{"x":1,"type":"object"}}"#),
            ),
            (r#"{"name":"a","inputSchema":null}"#, None),
            (r#"{"name":"a","inputSchema":[]}"#, None),
            (r#"{"name":"a","inputSchema":{"type":"string"}}"#, None),
            (r#"{"name":"a","inputSchema":{"type":["object"]}}"#, None),
        ] {
            let result = format!(r#"{{"tools":[{tool}]}}"#);
            let tools = page(Raw::spelled(&result).unwrap(), List::Tools).unwrap();
            assert_eq!(tools.first().map(|tool| &*tool.json), seen, "{tool}");
        }
    }
}
