//! The index of the tools in one catalog.

use std::sync::{Arc, PoisonError, RwLock};

use skep_mcp::{Raw, Text};
use skep_tool_search::{Index, Tool, ToolVectors};

use super::{embeddings::Key, meaning::Source};

/// An index, and what is known of each of its tools. Their order is that of the catalog's list.
#[derive(Debug)]
pub(crate) struct ToolIndex {
    pub(super) index: Index,
    /// The vectors that there are so far.
    pub(super) vectors: RwLock<Arc<[Option<ToolVectors>]>>,
    /// What an embedding service makes vectors of, and by which they are known.
    pub(super) texts: Vec<(Key, String)>,
    /// How long the list of all tools is, in bytes.
    pub(crate) bytes: usize,
}

impl ToolIndex {
    /// The index of these tools, each as JSON with the name of its backend.
    pub(super) fn new<'a>(tools: impl Iterator<Item = (&'a str, &'a str)>, source: &Source) -> Self {
        let mut bytes = 0;
        let tools: Vec<Tool<'_>> = tools
            .inspect(|(json, _)| bytes += json.len())
            .map(|(json, backend)| searched(json, backend))
            .collect();
        let vectors: Vec<Option<ToolVectors>> = match source {
            Source::Model(model) => tools.iter().map(|tool| model.tool(tool)).collect(),
            Source::None | Source::Service(_) => Vec::new(),
        };
        let texts = match source {
            Source::Service(_) => tools.iter().map(|tool| Key::of(tool.text())).collect(),
            Source::None | Source::Model(_) => Vec::new(),
        };
        Self { index: Index::new(&tools), vectors: RwLock::new(vectors.into()), texts, bytes }
    }

    pub(super) fn vectors(&self) -> Arc<[Option<ToolVectors>]> {
        self.vectors.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_vectors(&self, vectors: Vec<Option<ToolVectors>>) {
        *self.vectors.write().unwrap_or_else(PoisonError::into_inner) = vectors.into();
    }
}

/// A tool as the search sees it. A hostile backend may send very many values: no tree is built.
fn searched<'a>(json: &'a str, backend: &'a str) -> Tool<'a> {
    let tool = Raw::spelled(json);
    let member = |object: Option<Raw<'a>>, key: &str| object.and_then(|object| object.get(key));
    let text = |object, key: &str| member(object, key).and_then(Raw::as_text).unwrap_or_default();
    let title = match text(tool, "title") {
        title if title.is_empty() => text(member(tool, "annotations"), "title"),
        title => title,
    };
    let mut parameters = Vec::new();
    if let Some(properties) = member(member(tool, "inputSchema"), "properties") {
        let parameter = |name: Text<'a>, schema| {
            parameters.push((name.decoded(), text(Some(schema), "description")));
        };
        // What is stored has been scanned before.
        properties.for_each_entry(parameter).ok();
    }
    Tool {
        name: text(tool, "name"),
        title,
        description: text(tool, "description"),
        parameters,
        server: backend.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_searched_without_its_tree() {
        let json = r#"{"name":"a_pay","description":"Pays \"all\"","annotations":{"title":"Pay"},
            "inputSchema":{"maximum":1e999,"properties":{"sum":{"description":"how much"},"to":true}}}"#;
        let tool = searched(json.trim(), "a");
        assert_eq!((&*tool.name, &*tool.title, &*tool.description), ("a_pay", "Pay", "Pays \"all\""));
        let parameters: Vec<_> = tool.parameters.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(parameters, [("sum", "how much"), ("to", "")]);
    }
}
