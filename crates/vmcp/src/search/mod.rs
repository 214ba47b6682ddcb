//! The tool search: a client sees find_tool and call_tool instead of a list that is too long for its model.
//!
//! Each catalog has one [`ToolIndex`], which all sessions with that view share. A search joins words with meaning, where a
//! model or a service makes vectors ([`Meaning`]); without one, or while it fails, words alone find tools. What call_tool
//! calls is [unwrapped](InnerCall) from its message before the middlewares see that, so that nothing treats it otherwise
//! than a direct call.

mod embeddings;
mod index;
mod inner_call;
mod meaning;
mod own_tools;
mod service;

use std::{collections::HashSet, path::Path, sync::Arc};

use skep_api::vmcp::Optimizer;
use skep_tool_search::StaticModel;

use crate::ConfigError;
use embeddings::Embeddings;
pub(crate) use index::ToolIndex;
pub(crate) use inner_call::{CallToolError, InnerCall};
pub(crate) use meaning::Meaning;
use own_tools::own_tools;
pub(crate) use own_tools::{CALL_TOOL, FIND_TOOL};
use service::EmbeddingService;

/// How many tools a search returns, unless it is configured.
const MAX_RESULTS: usize = 8;
/// How much meaning counts, and how far a result may be, unless it is configured.
const RATIO: f32 = 0.5;
const MAX_DISTANCE: f32 = 1.0;

/// The tool search of a virtual server.
pub(crate) struct Search {
    /// How many tools a search returns.
    pub(crate) max_results: usize,
    /// find_tool and call_tool as clients see them, as JSON.
    pub(crate) own_tools: Vec<String>,
    pinned: HashSet<String>,
    pub(crate) meaning: Meaning,
}

impl Search {
    /// The names of the tools that are the search's own.
    pub(crate) const OWN_TOOLS: [&str; 2] = [FIND_TOOL, CALL_TOOL];

    pub(crate) fn new(config: &Optimizer) -> Result<Self, ConfigError> {
        let number = |text: &Option<String>, default: f32| {
            text.as_deref().and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let max = config.max_tools_to_return.and_then(|count| usize::try_from(count).ok());
        Ok(Self {
            max_results: max.filter(|count| *count > 0).unwrap_or(MAX_RESULTS),
            own_tools: own_tools(config),
            pinned: config.pinned_tools.iter().cloned().collect(),
            meaning: Meaning {
                source: source(config)?,
                ratio: number(&config.hybrid_search_semantic_ratio, RATIO),
                max_distance: number(&config.semantic_distance_threshold, MAX_DISTANCE),
            },
        })
    }

    /// Whether clients see a tool of this name without a search.
    pub(crate) fn is_pinned(&self, tool: &str) -> bool {
        self.pinned.contains(tool)
    }

    /// Embeds tools for ever, where there is a service that does.
    pub(crate) async fn run(&self) {
        match &self.meaning.source {
            meaning::Source::Service(embeddings) => embeddings.run().await,
            meaning::Source::None | meaning::Source::Model(_) => std::future::pending().await,
        }
    }
}

/// What makes vectors. A service takes precedence over a model, as it is the better of the two.
fn source(config: &Optimizer) -> Result<meaning::Source, ConfigError> {
    let is_set = |text: &&str| !text.is_empty();
    if let Some(url) = config.embedding_service.as_deref().filter(is_set) {
        let service = EmbeddingService::new(url, config)
            .map_err(|error| ConfigError::new(format!("optimizer.embeddingService: {error}")))?;
        return Ok(meaning::Source::Service(Arc::new(Embeddings::new(service))));
    }
    match config.embedding_model_path.as_deref().filter(is_set) {
        Some(path) => {
            let model = StaticModel::open(Path::new(path));
            let wrong = |error| ConfigError::new(format!("optimizer.embeddingModelPath: {path}: {error}"));
            Ok(meaning::Source::Model(Arc::new(model.map_err(wrong)?)))
        }
        None => Ok(meaning::Source::None),
    }
}
