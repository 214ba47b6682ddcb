//! The index of the tools in one catalog.

use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;
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
        let documents: Vec<(Value, &str)> = tools
            .inspect(|(json, _)| bytes += json.len())
            .map(|(json, backend)| (serde_json::from_str(json).unwrap_or_default(), backend))
            .collect();
        let tools: Vec<Tool<'_>> = documents.iter().map(|(tool, backend)| searched(tool, backend)).collect();
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

/// A tool as the search sees it.
fn searched<'a>(tool: &'a Value, backend: &'a str) -> Tool<'a> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let title = match text(&tool["title"]) {
        "" => text(&tool["annotations"]["title"]),
        title => title,
    };
    let parameters = tool["inputSchema"]["properties"].as_object().into_iter().flatten();
    Tool {
        name: text(&tool["name"]).into(),
        title: title.into(),
        description: text(&tool["description"]).into(),
        parameters: parameters
            .map(|(name, schema)| (name.as_str().into(), text(&schema["description"]).into()))
            .collect(),
        server: backend.into(),
    }
}
