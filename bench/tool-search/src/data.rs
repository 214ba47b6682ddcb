//! Files of tools and queries.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use skep_tool_search::Tool;

/// One file.
#[derive(Deserialize)]
pub(crate) struct Set {
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) tools: Vec<Value>,
    pub(crate) queries: Vec<Task>,
}

/// A query, and the names of the tools that should be found.
#[derive(Deserialize)]
pub(crate) struct Task {
    pub(crate) text: String,
    pub(crate) relevant: Vec<String>,
}

impl Set {
    /// All files of a folder, in the order of their names.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        let mut paths: Vec<_> =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let read = |path: &std::path::PathBuf| -> Result<Self> {
            let text = std::fs::read(path)?;
            let mut set: Self = serde_json::from_slice(&text)?;
            set.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(set)
        };
        paths.iter().map(|path| read(path).with_context(|| path.display().to_string())).collect()
    }

    /// The tools as a search sees them.
    pub(crate) fn search_tools(&self) -> Vec<Tool<'_>> {
        self.tools.iter().map(tool).collect()
    }
}

fn tool(tool: &Value) -> Tool<'_> {
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned().into();
    let parameters = tool["inputSchema"]["properties"].as_object().into_iter().flatten();
    Tool {
        name: text(&tool["name"]),
        title: text(&tool["title"]),
        description: text(&tool["description"]),
        server: text(&tool["server"]),
        parameters: parameters
            .map(|(name, schema)| (name.as_str().into(), text(&schema["description"])))
            .collect(),
    }
}
