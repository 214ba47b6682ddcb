//! What makes vectors, and how much they count.

use std::sync::Arc;

use skep_gateway::identity::Holder;
use skep_tool_search::{Hit, Query, Semantic, StaticModel, ToolVectors};

use super::{ToolIndex, embeddings::Embeddings};

/// How meaning is searched for.
pub(crate) struct Meaning {
    pub(super) source: Source,
    pub(super) ratio: f32,
    pub(super) max_distance: f32,
}

/// What makes vectors.
#[derive(Clone)]
pub(super) enum Source {
    /// Nothing does: words alone are searched for.
    None,
    /// A model in this process.
    Model(Arc<StaticModel>),
    /// A service.
    Service(Arc<Embeddings>),
}

/// What a search found.
pub(crate) struct Found {
    /// The places of tools in the list of the catalog, best first.
    pub(crate) places: Vec<usize>,
    /// Whether words alone were compared, because the embedding service failed, or has not embedded most of the tools yet.
    pub(crate) lacks_vectors: bool,
}

impl Meaning {
    /// The index of these tools, each as JSON with the name of its backend.
    pub(crate) fn index<'a>(&self, tools: impl Iterator<Item = (&'a str, &'a str)>) -> ToolIndex {
        ToolIndex::new(tools, &self.source)
    }

    /// Has the tools of an index embedded that are not yet.
    pub(crate) fn embed(&self, index: &Arc<ToolIndex>) {
        if let Source::Service(embeddings) = &self.source {
            embeddings.want(index);
        }
    }

    /// The tools that fit, best first.
    pub(crate) async fn search(&self, index: &ToolIndex, query: &Query<'_>, holder: Option<Holder>) -> Found {
        let vector = match &self.source {
            Source::None => None,
            Source::Model(model) => model.vector(&query.whole()),
            Source::Service(embeddings) => embeddings.query(query.whole(), holder).await,
        };
        let tools = index.vectors();
        let semantic = vector.as_ref().filter(|_| is_complete(&tools)).map(|query| Semantic {
            tools: &tools,
            query,
            ratio: self.ratio,
            max_distance: self.max_distance,
        });
        // Only a service has texts to embed.
        let lacks_vectors = semantic.is_none() && !index.texts.is_empty();
        let hits = index.index.search(query, semantic.as_ref(), usize::MAX);
        Found { places: hits.into_iter().map(|Hit { tool, .. }| tool).collect(), lacks_vectors }
    }
}

/// Whether vectors can be compared: with few of them, tools without one would always come last.
fn is_complete(vectors: &[Option<ToolVectors>]) -> bool {
    !vectors.is_empty() && vectors.iter().filter(|vector| vector.is_some()).count() * 2 > vectors.len()
}
