//! What one backend offers, as it was received.

use skep_mcp::{Fault, List, Raw};

/// The lists of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) tools: Vec<Item>,
    pub(crate) prompts: Vec<Item>,
    pub(crate) resources: Vec<Item>,
    pub(crate) templates: Vec<Item>,
}

/// One tool, prompt, resource or resource template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its name, URI or URI template.
    pub(crate) key: Box<str>,
    /// All of it, as it was received.
    pub(crate) json: Box<str>,
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

    pub(crate) fn len(&self) -> usize {
        [&self.tools, &self.prompts, &self.resources, &self.templates].map(Vec::len).iter().sum()
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

/// The items of one page. One without a key cannot be used, and is left out.
pub(crate) fn page(result: Raw<'_>, list: List) -> Result<Vec<Item>, Fault> {
    let items = result.get(field(list)).map(Raw::items).transpose()?.unwrap_or_default();
    let item = |raw: Raw<'_>| {
        let key = raw.get(key_field(list))?.as_text()?;
        Some(Item { key: key.into(), json: raw.as_str().into() })
    };
    Ok(items.into_iter().filter_map(item).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_keeps_its_bytes_and_one_without_a_name_is_left_out() {
        let result = r#"{"tools":[{"name":"a","x":1e2, "_meta":{}},{"title":"nameless"},{"name":"b"}]}"#;
        let tools = page(Raw::spelled(result).unwrap(), List::Tools).unwrap();
        let tools: Vec<_> = tools.iter().map(|item| (&*item.key, &*item.json)).collect();
        assert_eq!(tools, [("a", r#"{"name":"a","x":1e2, "_meta":{}}"#), ("b", r#"{"name":"b"}"#)]);
    }
}
